"""The metrics: valid by the library's own parsers, named as the rules of the field want, and kept over everything."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ROOT, wait_until
from tests.test_status import ask, make_report, watched

pytest.importorskip("prometheus_client")

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from gateways.process.ledger import REASONS
from gateways.process.measures import BOUNDS
from gateways.process.metrics import COUNTERS, GAUGES, format_metrics
from gateways.process.status import plan_answer

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def read_families(accept: str = "") -> dict[str, Metric]:
    media_type, body = format_metrics(make_report(), accept)
    parse = parse_openmetrics if "openmetrics" in media_type else parse_text
    return {family.name: family for family in parse(body.decode())}


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_the_library_reads_what_it_has_written(accept: str) -> None:
    families = read_families(accept)
    assert len(families) == len(COUNTERS) + len(GAUGES) + 4
    assert {"gateways_requests", "gateways_workers", "gateways_request_duration_seconds"} <= set(families)


@pytest.mark.parametrize("family", read_families().values(), ids=lambda family: family.name)
def test_names_follow_the_rules_of_the_field(family: Metric) -> None:
    """What ``promtool check metrics`` finds fault with."""
    assert re.fullmatch(r"gateways(_[a-z]+)+", family.name)
    assert family.type in ("counter", "gauge", "histogram")
    assert family.documentation.endswith(".")
    assert not re.search(r"_(total|count|sum|bucket|info|counter|gauge|histogram)$", family.name)
    assert not re.search(r"(milli|micro|minutes|hours|kilo|mega|percent|_ms|_kb|_mb)", family.name)
    names = {sample.name for sample in family.samples}
    suffixes = {"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"}}[family.type]
    assert names == {family.name + suffix for suffix in suffixes}
    for sample in family.samples:
        assert set(sample.labels) <= {"pool", "outcome", "reason", "state", "kind", "le"}
        assert ("le" in sample.labels) == sample.name.endswith("_bucket")


def test_the_histogram_counts_what_is_at_most_its_bound() -> None:
    family = read_families()["gateways_request_duration_seconds"]
    buckets = {float(s.labels["le"]): s.value for s in family.samples if s.name.endswith("_bucket")}
    assert sorted(buckets) == [*BOUNDS, float("inf")]
    assert [buckets[bound] for bound in (0.0001, 0.0025, 0.005, 60.0, float("inf"))] == [14, 14, 16, 16, 17]
    values = {sample.name.rpartition("_")[2]: sample.value for sample in family.samples if "le" not in sample.labels}
    assert values == {"count": 17, "sum": 63.5}


def test_every_reason_is_there_before_it_happens() -> None:
    samples = read_families()["gateways_workers_ended"].samples
    assert {sample.labels["reason"]: sample.value for sample in samples} == {
        **dict.fromkeys(REASONS, 0.0), "requests": 1.0, "request_timeout": 1.0
    }  # fmt: skip


def test_a_scraper_gets_the_format_that_it_accepts() -> None:
    for accept, media_type in ((b"", b"text/plain"), (OPENMETRICS.encode(), b"application/openmetrics-text")):
        answer = plan_answer(b"GET /metrics HTTP/1.1\r\nAccept: " + accept + b"\r\n\r\n", make_report)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: " + media_type)


def test_without_the_library_a_sentence_names_it() -> None:
    program = """
import sys
sys.modules["prometheus_client"] = None
from gateways.process.status import plan_answer
sys.stdout.buffer.write(plan_answer(b"GET /metrics HTTP/1.1\\r\\n\\r\\n", lambda: None))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, timeout=30)
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 501 ")
    assert "install it" in body
    assert "prometheus_client" in body
    assert body.count("\n") == 1


def read_value(number: int, name: str, **labels: str) -> float:
    for family in parse_text(ask(number, "/metrics").decode()):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    raise AssertionError(f"no {name} {labels}")


def test_counts_outlive_workers_and_reloads(tmp_path: Path) -> None:
    options = ("--max-requests-per-child", "4", "--max-requests-jitter", "0")
    with watched(tmp_path, *options) as (server, number):
        for _ in range(10):
            assert server.get("/")[0] == 200
        assert server.get("/status/404")[0] == 404
        wait_until(lambda: read_value(number, "gateways_requests_total", outcome="2xx") == 10, "ten requests")
        assert read_value(number, "gateways_requests_total", outcome="4xx") == 1
        wait_until(lambda: read_value(number, "gateways_workers_ended_total", reason="requests") >= 1, "a worker's end")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("generation 2 of pool main serves")
        wait_until(lambda: read_value(number, "gateways_workers_ended_total", reason="reload") >= 1, "their end")
        assert read_value(number, "gateways_requests_total", outcome="2xx") == 10
        assert read_value(number, "gateways_request_duration_seconds_count") == 11
        assert read_value(number, "gateways_request_duration_seconds_sum") > 0
        assert read_value(number, "gateways_reloads_total") == 1
        assert read_value(number, "gateways_last_reload_successful") == 1
        assert read_value(number, "gateways_memory_bytes", kind="own") > 1 << 20


def test_a_refused_request_is_counted(tmp_path: Path) -> None:
    with watched(tmp_path, wanted=["refused a request with 400"]) as (server, number):
        server.exchange(b"NONSENSE\r\n\r\n")
        wait_until(lambda: read_value(number, "gateways_requests_refused_total") == 1, "it")
