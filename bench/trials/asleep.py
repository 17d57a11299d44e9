"""An idle supervisor, and how often it wakes up."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from bench.trials.findings import Table
from bench.trials.harness import Gateways, Trial, list_family, serving, wait_until

SUMMARY = "An idle supervisor with one pool sleeps: fewer than ten wake-ups in ten seconds, and its workers none."
LENGTH = "25 seconds"
MOST_WAKES = 10
SECONDS = 10.0
SETTLING = 3.0


def read_wakes(pid: int) -> int:
    """Return how often a process has gone to sleep by itself so far: it has woken as often (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[0])


def count_calls(pid: int, seconds: float) -> int | None:
    """Return how many system calls a process makes in a time, by strace; None where there is none to ask."""
    program = shutil.which("strace")
    if program is None:
        return None
    tracer = subprocess.Popen([program, "-qq", "-p", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(seconds)
    tracer.send_signal(signal.SIGINT)
    _, said = tracer.communicate()
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if "(" in line]
    return len(lines) if tracer.returncode in (0, 130, -2) and lines else None


def watch(server: Gateways, trial: Trial, seconds: float) -> list[tuple[str, int]]:
    """Return how often each process of a server has woken in a time."""
    pids = list_family(server.pid)
    before = {pid: read_wakes(pid) for pid in pids}
    for second in range(int(seconds)):
        trial.tell(f"{second + 1} of {seconds:g} s", second + 1, seconds)
        time.sleep(1)
    names = dict.fromkeys(pids, "worker") | {server.pid: "supervisor"}
    return [(names[pid], read_wakes(pid) - before[pid]) for pid in pids]


def run(trial: Trial) -> None:
    """Run the trial."""
    seconds = 4.0 if trial.quick else SECONDS
    most = MOST_WAKES * seconds / SECONDS
    with serving("StartServers = 5") as server:
        wait_until(lambda: server.status().get("idle") == 5, "five workers")
        time.sleep(SETTLING)
        wakes = watch(server, trial, seconds)
        calls = count_calls(server.pid, seconds)
    worst = max(count for name, count in wakes if name == "worker")
    found = trial.findings
    found.claim(f"the supervisor wakes fewer than {most:g} times in {seconds:g} s", wakes[0][1] < most, wakes[0][1])
    found.claim(f"no worker wakes in {seconds:g} s", worst == 0, f"at most {worst} times")
    found.tables.append(Table("Wake-ups", ("process", "times"), [(name, str(count)) for name, count in wakes]))
    if calls is not None:
        found.notes.append(f"strace counted {calls} system calls of the supervisor in {seconds:g} s")
