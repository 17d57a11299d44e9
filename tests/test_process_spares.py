"""The spare arithmetic as tables: what a cycle does, what a death does at once, how a generation takes over."""

from __future__ import annotations

import pytest

from gateways.process.limits import PoolLimits
from gateways.process.spares import Census, Plan, Renewal, plan_cycle, plan_renewal, plan_replacements

APACHE = PoolLimits(start_servers=5, min_spare_servers=5, max_spare_servers=10, max_servers=256)
SMALL = PoolLimits(start_servers=1, min_spare_servers=1, max_spare_servers=2, max_servers=4)
FIXED = PoolLimits.fixed(4)

CYCLES = [
    # id, limits, idle (with the starting), busy, rate -> plan
    ("enough idle: nothing", APACHE, 5, 0, 1, Plan()),
    ("at MaxSpare: nothing", APACHE, 10, 100, 1, Plan()),
    ("enough idle again: the rate falls back", APACHE, 6, 50, 32, Plan(spawn_rate=1)),
    ("one above MaxSpare: retire one", APACHE, 11, 0, 1, Plan(retire=1)),
    ("far above MaxSpare: still one a cycle", APACHE, 200, 0, 1, Plan(retire=1)),
    ("too many idle: the rate falls back", APACHE, 11, 9, 16, Plan(retire=1, spawn_rate=1)),
    ("short, first cycle", APACHE, 4, 6, 1, Plan(spawn=1, spawn_rate=2)),
    ("short, second cycle", APACHE, 0, 11, 2, Plan(spawn=2, spawn_rate=4)),
    ("short, third cycle", APACHE, 0, 13, 4, Plan(spawn=4, spawn_rate=8)),
    ("short, fourth cycle: worth a line", APACHE, 0, 17, 8, Plan(spawn=8, spawn_rate=16, loud=True)),
    ("short, fifth cycle", APACHE, 0, 25, 16, Plan(spawn=16, spawn_rate=32, loud=True)),
    ("short, sixth cycle", APACHE, 0, 41, 32, Plan(spawn=32, spawn_rate=32, loud=True)),
    ("the rate never exceeds 32", APACHE, 0, 73, 32, Plan(spawn=32, spawn_rate=32, loud=True)),
    ("only as many as fit below MaxServers", APACHE, 2, 248, 32, Plan(spawn=6, spawn_rate=32, loud=True)),
    ("at MaxServers", APACHE, 1, 255, 32, Plan(at_ceiling=True)),
    ("above MaxServers, after a reload with a lower one", APACHE, 1, 300, 1, Plan(at_ceiling=True)),
    ("a small pool grows by one", SMALL, 0, 1, 1, Plan(spawn=1, spawn_rate=2)),
    ("a small pool shrinks by one", SMALL, 3, 0, 1, Plan(retire=1)),
    ("a fixed pool, all busy: no news", FIXED, 0, 4, 1, Plan()),
    ("a fixed pool, one missing", FIXED, 2, 1, 1, Plan(spawn=1, spawn_rate=2)),
    ("nobody is left", APACHE, 0, 0, 1, Plan(spawn=1, spawn_rate=2)),
]


@pytest.mark.parametrize(
    ("limits", "idle", "busy", "rate", "plan"), [row[1:] for row in CYCLES], ids=[row[0] for row in CYCLES]
)
def test_one_cycle(limits: PoolLimits, idle: int, busy: int, rate: int, plan: Plan) -> None:
    assert plan_cycle(Census(idle, busy), limits, rate) == plan


STATIC = PoolLimits(manager="static", max_servers=4)
ONDEMAND = PoolLimits(manager="ondemand", max_servers=4)
FORK = PoolLimits(manager="fork", max_servers=4)

MANAGED = [
    # id, limits, idle (with the starting), busy, resting, waiting -> plan
    ("static: none yet", STATIC, 0, 0, 0, False, Plan(spawn=4)),
    ("static: one missing, however many are busy", STATIC, 0, 3, 0, False, Plan(spawn=1)),
    ("static: as many as there shall be", STATIC, 1, 3, 0, False, Plan()),
    ("static: one too many, after TTOU", STATIC, 2, 3, 0, False, Plan(retire=1)),
    ("static: rest is no reason to go", STATIC, 4, 0, 4, False, Plan()),
    ("ondemand: nothing comes", ONDEMAND, 0, 0, 0, False, Plan()),
    ("ondemand: a connection waits", ONDEMAND, 0, 0, 0, True, Plan(spawn=1)),
    ("ondemand: a connection waits, others are busy", ONDEMAND, 0, 3, 0, True, Plan(spawn=1)),
    ("ondemand: a connection waits, the pool is full", ONDEMAND, 0, 4, 0, True, Plan(at_ceiling=True)),
    ("ondemand: two have rested", ONDEMAND, 3, 0, 2, False, Plan(retire=2)),
    ("ondemand: too many after TTOU, only the idle go", ONDEMAND, 1, 5, 0, False, Plan(retire=1)),
    ("fork: a connection waits", FORK, 0, 1, 0, True, Plan(spawn=1)),
    ("fork: one has waited in vain", FORK, 1, 1, 1, False, Plan(retire=1)),
]


@pytest.mark.parametrize(
    ("limits", "idle", "busy", "resting", "waiting", "plan"), [r[1:] for r in MANAGED], ids=[r[0] for r in MANAGED]
)
def test_one_cycle_of_each_manager(
    limits: PoolLimits, idle: int, busy: int, resting: int, waiting: bool, plan: Plan
) -> None:
    assert plan_cycle(Census(idle, busy, resting, waiting), limits, 1) == plan


@pytest.mark.parametrize("limits", [APACHE, SMALL, FIXED], ids=["apache", "small", "fixed"])
def test_a_cycle_does_at_most_one_kind_of_action_and_never_passes_the_ceiling(limits: PoolLimits) -> None:
    for idle in range(limits.max_servers + 1):
        for busy in range(limits.max_servers + 1 - idle):
            for rate in (1, 2, 4, 8, 16, 32):
                plan = plan_cycle(Census(idle, busy), limits, rate)
                assert not (plan.spawn and plan.retire)
                assert plan.retire in (0, 1)
                assert idle + busy + plan.spawn <= limits.max_servers
                assert 1 <= plan.spawn_rate <= 32


def test_a_flood_is_met_within_seven_cycles_and_the_ebb_goes_one_by_one() -> None:
    serving, rate, spawned = 5, 1, []
    while serving < 100:  # every worker is busy, every new one becomes busy
        plan = plan_cycle(Census(0, serving), APACHE, rate)
        serving, rate = serving + plan.spawn, plan.spawn_rate
        spawned.append(plan.spawn)
    assert spawned == [1, 2, 4, 8, 16, 32, 32]
    while plan_cycle(Census(serving, 0), APACHE, 1).retire:
        serving -= 1
    assert serving == APACHE.max_spare_servers


REPLACEMENTS = [
    # id, limits, died, idle, busy -> at once
    ("nobody died", APACHE, 0, 1, 1, 0),
    ("one died, spares are short", APACHE, 1, 4, 0, 1),
    ("one died, spares are enough", APACHE, 1, 7, 0, 0),
    ("many died, only the spares that are missing", APACHE, 9, 2, 0, 3),
    ("all died", APACHE, 5, 0, 0, 5),
    ("one died at the ceiling", SMALL, 1, 0, 4, 0),
    ("one died below the ceiling, no spare", SMALL, 1, 0, 3, 1),
    ("a fixed pool keeps its number", FIXED, 2, 1, 1, 2),
]


@pytest.mark.parametrize(
    ("limits", "died", "idle", "busy", "expected"), [row[1:] for row in REPLACEMENTS], ids=[r[0] for r in REPLACEMENTS]
)
def test_what_is_replaced_at_once(limits: PoolLimits, died: int, idle: int, busy: int, expected: int) -> None:
    assert plan_replacements(died, idle, busy, limits) == expected


RENEWALS = [
    # id, target, starting, ready, old -> step
    ("the first start", 5, 0, 0, 0, Renewal(5, 0)),
    ("started, nothing ready: no old one goes", 5, 5, 0, 5, Renewal(0, 0)),
    ("one ready: one old one goes", 5, 4, 1, 5, Renewal(0, 1)),
    ("two ready while one has gone", 5, 3, 2, 4, Renewal(0, 1)),
    ("all ready: the rest goes", 5, 0, 5, 3, Renewal(0, 3)),
    ("more old ones than wanted: the surplus goes with the first", 2, 1, 1, 5, Renewal(0, 4)),
    ("a new one has died: its place is filled, no old one goes", 5, 2, 2, 3, Renewal(1, 0)),
    ("over", 5, 0, 5, 0, Renewal(0, 0)),
    ("the pool has grown meanwhile", 5, 1, 7, 0, Renewal(0, 0)),
]


@pytest.mark.parametrize(
    ("target", "starting", "ready", "old", "step"), [row[1:] for row in RENEWALS], ids=[row[0] for row in RENEWALS]
)
def test_one_step_of_a_change_of_generation(target: int, starting: int, ready: int, old: int, step: Renewal) -> None:
    assert plan_renewal(target, starting, ready, old) == step
