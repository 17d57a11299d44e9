"""Load that comes and goes, and the pool that follows it."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.trials.clients import Crowd
from bench.trials.findings import Course, Table
from bench.trials.harness import Gateways, Trial, Watcher, serving, wait_until

SUMMARY = "From nothing to 50 slow requests at a time and back, three times: the pool follows, within its limits."
LENGTH = "about 4 minutes, --quick 50 seconds"
LIMITS = {"StartServers": 2, "MinSpareServers": 2, "MaxSpareServers": 6, "MaxServers": 40}
QUICK_LIMITS = {**LIMITS, "MaxSpareServers": 4, "MaxServers": 16}
CROWD, QUICK_CROWD = 50, 20
PATH = "/sleep/0.5"
SPIKE, QUICK_SPIKE = 15.0, 8.0
SPIKES, QUICK_SPIKES = 3, 1
REST = 5.0
PAUSE = 0.25
SHRINKING = 90.0
"""Seconds in which a pool has to shrink: it retires one worker a second."""


class Scene:
    """One pool under spikes, and its course. ``most``: the most that served at a time."""

    def __init__(self, server: Gateways, course: Course, limits: dict[str, int]) -> None:
        self.server = server
        self.course = course
        self.limits = limits
        self.most = 0
        self.demand = 0
        self.asked = 0
        self.failed = 0
        self.rows: list[tuple[str, ...]] = []

    def look(self, seconds: float) -> None:
        """Note what the status port shows."""
        status = self.server.status()
        if not status:
            return
        serving_now = status["idle"] + status["busy"] + status["starting"]
        self.most = max(self.most, serving_now)
        self.course.add(seconds, asked=self.demand, busy=status["busy"], serving=serving_now, leaving=status["closing"])

    def count_serving(self) -> int:
        """Return how many serve now, those on their way out included."""
        status = self.server.status()
        return len(status["workers"]) if status else -1

    def spike(self, size: int, seconds: float, floor: int, watcher: Watcher) -> bool:
        """Let a crowd come and go; return whether the pool went down to ``floor`` afterwards."""
        began = watcher.now
        crowd = Crowd(self.server.ports["http"], size, PATH)
        self.demand = size
        time.sleep(seconds)
        peak = self.count_serving()
        crowd.stop()
        self.demand = 0
        ended = watcher.now
        self.asked += crowd.tally.asked
        self.failed += len(crowd.tally.failures)
        shrunk = self.wait_down(floor)
        self.rows.append(
            (f"{began:.0f} s", str(size), str(peak), f"{watcher.now - ended:.0f} s", str(self.count_serving()))
        )
        return shrunk

    def wait_down(self, floor: int) -> bool:
        """Wait until no more than ``floor`` workers are left."""
        try:
            wait_until(lambda: 0 <= self.count_serving() <= floor, "the pool's rest", SHRINKING, PAUSE)
        except Exception:  # noqa: BLE001 - it did not, and the claim says so
            return False
        return True


def play(trial: Trial, manager: str, floor: str, show: Callable[[str], None]) -> Scene:
    """Let spikes come over a pool of one kind; ``floor``: the limit to which it has to return."""
    limits = QUICK_LIMITS if trial.quick else LIMITS
    size, seconds, times = (QUICK_CROWD, QUICK_SPIKE, QUICK_SPIKES) if trial.quick else (CROWD, SPIKE, SPIKES)
    lines = [f"{name} = {value}" for name, value in limits.items()]
    pool = "\n".join([f'ProcessManager = "{manager}"', "ProcessIdleTimeout = 3", *lines])
    least = limits[floor] if floor else 0
    with serving(pool) as server:
        course = Course(f"The pool under {manager}", "processes", bounds={"MaxServers": limits["MaxServers"]})
        if floor:
            course.bounds[floor] = limits[floor]
        scene = Scene(server, course, limits)
        with Watcher(scene.look, PAUSE) as watcher:
            shrunk = scene.wait_down(least)
            for number in range(times):
                show(f"{manager}: spike {number + 1} of {times}")
                shrunk = scene.spike(size, seconds, least, watcher) and shrunk
                time.sleep(REST)
        judge(trial, scene, manager, shrunk, floor or "none")
    return scene


def judge(trial: Trial, scene: Scene, manager: str, shrunk: bool, floor: str) -> None:
    """Claim what was promised of one pool."""
    found = trial.findings
    most = scene.limits["MaxServers"]
    found.claim(f"{manager}: every request is answered", not scene.failed and scene.asked > 0,
                f"{scene.asked:,} requests, {scene.failed} failed")  # fmt: skip
    found.claim(f"{manager}: the pool grows to what it may", scene.most == most, f"{scene.most} of {most}")
    found.claim(f"{manager}: never more than MaxServers serve", scene.most <= most, f"at most {scene.most}")
    found.claim(f"{manager}: it returns to {floor if floor != 'none' else 'no worker at all'} after each spike",
                shrunk, ", ".join(row[-1] for row in scene.rows) + " workers")  # fmt: skip
    found.courses.append(scene.course)
    columns = ("spike at", "clients", "workers at its end", "time to rest", "workers at rest")
    found.tables.append(Table(f"Spikes under {manager}", columns, scene.rows))


def run(trial: Trial) -> None:
    """Run the trial."""
    steps = 2 * (QUICK_SPIKES if trial.quick else SPIKES)
    done = iter(range(1, steps + 1))
    for manager, floor in (("dynamic", "MaxSpareServers"), ("ondemand", "")):
        play(trial, manager, floor, lambda text: trial.tell(text, next(done), steps))
