"""The supervisor's report as Prometheus metrics, in whichever of its formats is asked for.

The one module that imports ``prometheus_client``, and only imported where somebody asks for metrics. Reads the report;
keeps nothing: every count is the pool's own, which a reload does not lose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf

from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateways.process.ledger import REASONS
from gateways.process.measures import BOUNDS, OUTCOMES
from gateways.process.report import STATES, PoolReport, Report

PREFIX = "gateways_"
Values = Callable[[PoolReport, Report], Iterator[tuple[tuple[str, ...], float]]]


def format_metrics(report: Report, accept: str) -> tuple[str, bytes]:
    """Return (media type, body) of a report for a scraper that accepts ``accept``."""
    registry = CollectorRegistry()
    registry.register(ReportCollector(report))
    encode, media_type = choose_encoder(accept)
    return media_type, encode(registry)


class ReportCollector(Collector):
    """One report, as the library wants it."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Yield every family, each with a sample for each pool."""
        report = self._report
        yield GaugeMetricFamily(PREFIX + "uptime_seconds", "How long the supervisor has run.", value=report.uptime)
        yield CounterMetricFamily(PREFIX + "reloads", "Reloads that were asked for.", value=report.reloads)
        yield GaugeMetricFamily(
            PREFIX + "last_reload_successful", "Whether the last reload took effect, 1 or 0.",
            value=not report.reload_failed,
        )  # fmt: skip
        for name, words, labels, values in COUNTERS:
            yield self._fill(CounterMetricFamily(PREFIX + name, words, labels=["pool", *labels]), values)
        for name, words, labels, values in GAUGES:
            yield self._fill(GaugeMetricFamily(PREFIX + name, words, labels=["pool", *labels]), values)
        yield self._collect_durations()

    def _fill(self, family: Metric, values: Values) -> Metric:
        for pool in self._report.pools:
            for labels, value in values(pool, self._report):
                family.add_metric([pool.name, *labels], value)  # type: ignore[attr-defined]
        return family

    def _collect_durations(self) -> Metric:
        family = HistogramMetricFamily(
            PREFIX + "request_duration_seconds",
            "From the call of the application to the end of its response.",
            labels=["pool"],
        )
        for pool in self._report.pools:
            family.add_metric([pool.name], list_buckets(pool.measures.durations), pool.measures.seconds)
        return family


def list_buckets(durations: Sequence[int]) -> list[tuple[str, float]]:
    """Return the classes of duration as a histogram's buckets: each counts what is at most its bound."""
    buckets = []
    total = 0
    for bound, count in zip((*BOUNDS, inf), durations, strict=True):
        total += count
        buckets.append(("+Inf" if bound == inf else str(bound), float(total)))
    return buckets


def one(value: Callable[[PoolReport], float | None]) -> Values:
    """Return what gives one value of a pool, or none where it is not known."""

    def values(pool: PoolReport, _report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
        found = value(pool)
        if found is not None:
            yield (), found

    return values


def give_outcomes(pool: PoolReport, _report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the requests by how they ended."""
    for name, count in zip(OUTCOMES, pool.measures.outcomes, strict=True):
        yield (name,), count


def give_ends(pool: PoolReport, _report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the workers that have ended, by why; every reason, so that a rate begins at 0."""
    for reason in REASONS:
        yield (reason,), pool.ledger.ended[reason]


def give_states(pool: PoolReport, _report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the workers by state."""
    states = [line.state.name.lower() for line in pool.workers]
    for state in STATES:
        yield (state,), states.count(state)


def give_memory(pool: PoolReport, report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the memory of a pool's processes: their own, and their part of what they share."""
    pids = [*(line.pid for line in pool.workers), *pool.helpers]
    memories = [weight.memory for weight in map(report.weights.get, pids) if weight and weight.memory]
    if memories:
        own = sum(memory.own for memory in memories)
        yield ("own",), own
        yield ("shared",), max(0, sum(memory.part for memory in memories) - own)


def give_cpu(pool: PoolReport, report: Report) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the processor time of a pool's workers, the dead included: it never goes down."""
    weights = [report.weights[line.pid] for line in pool.workers if line.pid in report.weights]
    yield (), pool.ledger.cpu + sum(weight.cpu or 0.0 for weight in weights)


COUNTERS: tuple[tuple[str, str, tuple[str, ...], Values], ...] = (
    ("requests", "Requests, by the class of their status; none: the client had gone.", ("outcome",), give_outcomes),
    ("requests_refused", "What came and could not be read as a request.", (), one(lambda pool: pool.measures.refused)),
    ("slow_requests", "Requests that took longer than SlowRequestTimeout.", (), one(lambda pool: pool.ledger.slow)),
    ("connections_turned_away", "Connections that were answered 503 because the pool was full.", (),
     one(lambda pool: pool.door.turned_away)),
    ("connections_timed_out", "Those of them that had waited for QueueTimeout.", (),
     one(lambda pool: pool.door.timed_out)),
    ("connections_passed", "Connections that were passed from a busy worker to a free one.", (),
     one(lambda pool: pool.door.passed)),
    ("workers_started", "Workers that were started.", (), one(lambda pool: pool.ledger.started)),
    ("workers_ended", "Workers that have ended, by why.", ("reason",), give_ends),
    ("workers_cpu_seconds", "Processor time of workers, those that have ended included.", (), give_cpu),
)  # fmt: skip
"""Name without its _total, what it counts, labels beside the pool, and what gives its values."""
GAUGES: tuple[tuple[str, str, tuple[str, ...], Values], ...] = (
    ("workers", "Workers, by what they do.", ("state",), give_states),
    ("workers_limit", "MaxServers.", (), one(lambda pool: pool.max_servers)),
    ("memory_bytes", "Memory of the pool's processes: their own, and what they share.", ("kind",), give_memory),
    ("generation", "How often the pool was loaded.", (), one(lambda pool: pool.generation)),
    ("queue_connections", "Connections that wait in the kernel for a worker.", (),
     one(lambda pool: pool.queue.length if pool.queue else None)),
    ("queue_limit_connections", "How many may.", (), one(lambda pool: pool.queue.limit if pool.queue else None)),
    ("handed_connections", "Connections that wait for the next free worker outside of the kernel's queue.", (),
     one(lambda pool: pool.door.waiting)),
)  # fmt: skip
"""The same for what goes up and down."""
