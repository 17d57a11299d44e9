"""The limits of a pool: what is refused, what yields, and each worker's own request limit."""

from __future__ import annotations

from typing import Any

import pytest

from gateways.core.errors import ConfigurationError
from gateways.process.limits import PoolLimits

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no servers at all", {"max_servers": 0}, "MaxServers must be between 1 and 10000"),
    ("a mistyped MaxServers", {"max_servers": 100_000}, "MaxServers must be between 1 and 10000"),
    ("no start", {"start_servers": 0}, "StartServers must be at least 1"),
    ("no spare", {"min_spare_servers": 0}, "MinSpareServers must be at least 1"),
    ("a start above the ceiling", {"start_servers": 65}, "StartServers must not exceed MaxServers"),
    ("spares above the ceiling", {"min_spare_servers": 65, "max_spare_servers": 70}, "MinSpareServers must not exceed"),
    ("crossed spares", {"max_spare_servers": 4}, "MaxSpareServers must not be less than MinSpareServers"),
    ("negative requests", {"max_requests_per_child": -1}, "MaxRequestsPerChild must be 0"),
    ("a jitter above one", {"max_requests_jitter": 1.5}, "MaxRequestsJitter must be a fraction"),
    ("a jitter that is no number", {"max_requests_jitter": float("nan")}, "MaxRequestsJitter must be a fraction"),
    ("a negative time", {"graceful_timeout": -1.0}, "GracefulTimeout must be between"),
    ("no attempt", {"max_boot_failures": 0}, "MaxBootFailures must be at least 1"),
]


@pytest.mark.parametrize(("given", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_contradicts_is_refused_in_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        PoolLimits(**given)
    assert "start_servers=" in str(caught.value)


FITTED: list[tuple[str, dict[str, Any], tuple[int, int, int, int]]] = [
    # id, given -> start, min spare, max spare, max
    ("nothing given", {}, (5, 5, 10, 64)),
    ("a ceiling of one", {"max_servers": 1}, (1, 1, 10, 1)),
    ("a ceiling of three", {"max_servers": 3}, (3, 3, 10, 3)),
    ("many to start", {"start_servers": 100}, (100, 5, 10, 100)),
    ("many spares", {"min_spare_servers": 20}, (5, 20, 20, 64)),
    ("few spares", {"max_spare_servers": 2}, (5, 2, 2, 64)),
]


@pytest.mark.parametrize(("given", "numbers"), [row[1:] for row in FITTED], ids=[row[0] for row in FITTED])
def test_defaults_yield_to_what_is_given(given: dict[str, Any], numbers: tuple[int, int, int, int]) -> None:
    limits = PoolLimits.fit(**given)
    assert (
        limits.start_servers, limits.min_spare_servers, limits.max_spare_servers, limits.max_servers,
    ) == numbers  # fmt: skip


def test_what_is_given_never_yields() -> None:
    with pytest.raises(ConfigurationError, match="StartServers must not exceed MaxServers"):
        PoolLimits.fit(start_servers=3, max_servers=2)


def test_a_fixed_pool_has_one_number() -> None:
    limits = PoolLimits.fixed(3)
    assert {limits.start_servers, limits.min_spare_servers, limits.max_spare_servers, limits.max_servers} == {3}


JITTER = [
    # id, MaxRequestsPerChild, jitter, chance -> limit (P06: never above what was asked for, 0 stays 0)
    ("P06 no limit", 0, 0.5, 0.99, 0),
    ("P06 no jitter", 100, 0.0, 0.99, 100),
    ("P06 the least", 100, 0.1, 0.0, 100),
    ("P06 the most", 100, 0.1, 0.999, 90),
    ("P06 a small limit has none", 3, 0.1, 0.999, 3),
    ("P06 never none", 5, 1.0, 0.999999, 1),
    ("P06 one stays one", 1, 1.0, 0.999999, 1),
]


@pytest.mark.parametrize(
    ("most", "jitter", "chance", "limit"), [row[1:] for row in JITTER], ids=[row[0] for row in JITTER]
)
def test_a_workers_own_request_limit(most: int, jitter: float, chance: float, limit: int) -> None:
    limits = PoolLimits(max_requests_per_child=most, max_requests_jitter=jitter)
    assert limits.plan_max_requests(chance) == limit


@pytest.mark.parametrize(
    ("most", "jitter", "limit", "due"),
    [
        (0, 0.1, 0, 0),
        (1, 0.5, 1, 0),
        (3, 0.1, 3, 0),
        (1000, 0.0, 1000, 0),
        (1000, 0.1, 1000, 900),
        (1000, 0.1, 900, 800),
        (1000, 1.0, 2, 1),
    ],
)
def test_p06_a_worker_asks_for_its_successor_before_its_limit(most: int, jitter: float, limit: int, due: int) -> None:
    assert PoolLimits(max_requests_per_child=most, max_requests_jitter=jitter).plan_due(limit) == due


@pytest.mark.parametrize(
    ("manager", "first", "fewest"), [("dynamic", 5, 4), ("static", 9, 9), ("ondemand", 1, 0), ("fork", 1, 0)]
)
def test_what_a_manager_starts_with(manager: str, first: int, fewest: int) -> None:
    limits = PoolLimits(5, 4, 6, 9, manager=manager)
    assert (limits.first_servers, limits.fewest_idle) == (first, fewest)


def test_all_managers_but_dynamic_look_at_max_servers_only() -> None:
    for manager in ("static", "ondemand", "fork"):
        assert PoolLimits(manager=manager, max_servers=1).max_servers == 1
    with pytest.raises(ConfigurationError, match="ProcessManager must be one of"):
        PoolLimits(manager="threads")


def test_a_shifted_pool_has_more_or_fewer_and_never_none() -> None:
    limits = PoolLimits(2, 1, 3, 4)
    more, fewer = limits.shift(2), limits.shift(-3)
    assert (more.start_servers, more.min_spare_servers, more.max_spare_servers, more.max_servers) == (4, 3, 5, 6)
    assert (fewer.start_servers, fewer.min_spare_servers, fewer.max_spare_servers, fewer.max_servers) == (1, 1, 1, 1)
