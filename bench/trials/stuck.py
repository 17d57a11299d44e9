"""Requests that never end: what the log says of them, what becomes of their worker, and what their client gets."""

from __future__ import annotations

import re
import socket
import threading
import time
from dataclasses import dataclass

from bench.load import Job
from bench.speeches import SPEECHES
from bench.trials.findings import Table
from bench.trials.harness import PATIENCE, Gateways, Trial, list_family, serving, wait_until

SUMMARY = "Requests stuck in every way there is: each is named with its stack, killed in its time, and answered 504."
LENGTH = "about 20 seconds"
SLOW_AFTER, KILLED_AFTER = 1.0, 2.0
LATEST = KILLED_AFTER + 2.0
"""Seconds from request to kill: RequestTimeout is kept to within two seconds."""
WORKERS = 12
POOL = (
    f'ProcessManager = "static"\nMaxServers = {WORKERS}\n'
    f"SlowRequestTimeout = {SLOW_AFTER}\nRequestTimeout = {KILLED_AFTER}"
)
WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")


@dataclass(frozen=True, slots=True)
class Case:
    """One stuck request. ``frame``: what its stack shows; ``status``: what the client gets, 0 for a cut response."""

    what: str
    path: str
    frame: str
    status: int = 504
    wire: str = "http"
    killed: bool = True


CASES = (
    Case("in time.sleep", "/stuck/sleep", r"<lambda> \("),
    Case("in a lock", "/stuck/lock", r"wait_for_lock \("),
    Case("in a read from a silent database", "/stuck/database", r"wait_for_database \("),
    Case("in a regular expression, holding the interpreter", "/stuck/pattern", r"hold_by_pattern \("),
    Case("in a multiplication, holding the interpreter", "/stuck/number", r"hold_by_number \("),
    Case(
        "in sleep(3) of C, holding the interpreter (the question for its stack ends it)", "/stuck/foreign",
        r"wait_in_foreign_code \(", 200, killed=False,
    ),
    Case("after half a response", "/half", r"application \(", 0),
    *(Case(f"in time.sleep, asked over {wire}", f"/stuck/sleep?{wire}", r"<lambda> \(", wire=wire)
      for wire in WIRES[1:]),
)  # fmt: skip


def ask(case: Case, port: int) -> tuple[int, float]:
    """Return the status that the client of a stuck request gets, 0 for none or a cut, and after how many seconds."""
    speech = SPEECHES[case.wire]
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
        sock.sendall(speech.format_request(Job(port, case.path, 0, "", PATIENCE)))
        data = b""
        while piece := sock.recv(65536):
            data += piece
            if speech.delimited and 0 <= speech.find_end(data, 0) <= len(data):
                break
        seconds = time.monotonic() - began
    try:
        return speech.open(data)[0] if case.status else read_cut(data), seconds
    except Exception:  # noqa: BLE001 - whatever else came is no answer
        return 0, seconds


def read_cut(data: bytes) -> int:
    """Return 0 for an HTTP answer of less than the 100 bytes that were announced."""
    body = data.partition(b"\r\n\r\n")[2]
    return 0 if len(body) < 100 else int(data[9:12])


def look_up(log: str, case: Case) -> tuple[str, str, bool]:
    """Return (the line that names the request, its stack's, whether its worker was killed) from the error log."""
    named = re.search(rf"worker (\d+) \(pool main\) is slow: GET {re.escape(case.path)} for ([\d.]+) s", log)
    if named is None:
        return "", "", False
    after = log[named.end() :]
    stack = re.search(rf"worker {named[1]}, (thread \d+, newest call first: .*|no stack.*)", after)
    killed = re.search(rf"worker {named[1]} .*was killed by SIGKILL while busy with GET {re.escape(case.path)} ", log)
    return f"after {named[2]} s", stack[1] if stack else "", killed is not None


def run(trial: Trial) -> None:
    """Run the trial."""
    answers: dict[str, tuple[int, float]] = {}
    with serving(POOL, WIRES) as server:
        wait_until(lambda: server.status().get("idle") == WORKERS, "the workers")
        before = set(list_family(server.pid)) - {server.pid}

        def stick(case: Case) -> None:
            answers[case.path] = ask(case, server.ports[case.wire])

        threads = [threading.Thread(target=stick, args=(case,), daemon=True) for case in CASES]
        for number, thread in enumerate(threads):
            trial.tell(f"stuck {CASES[number].what}", number, len(CASES))
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        trial.tell("all answered", len(CASES), len(CASES))
        killed = sum(case.killed for case in CASES)
        server.wait_for_log("was killed by SIGKILL", killed)
        wait_until(lambda: server.status().get("idle") == WORKERS, "the replacements")
        judge(trial, server, answers)
        after = set(list_family(server.pid)) - {server.pid}
        replaced = f"{len(before - after)} of {len(before)} workers are others, {len(after)} serve"
        trial.findings.claim("each killed worker is replaced, and no other", len(before - after) == killed, replaced)


def judge(trial: Trial, server: Gateways, answers: dict[str, tuple[int, float]]) -> None:
    """Claim what was promised of each request."""
    log = server.read_log()
    rows: list[tuple[str, ...]] = []
    for case in CASES:
        status, seconds = answers.get(case.path, (-1, 0.0))
        named, stack, killed = look_up(log, case)
        shown = re.search(case.frame, stack)
        right = (status, killed) == (case.status, case.killed) and bool(named and shown) and seconds < LATEST
        words = {0: "a response cut short", -1: "nothing"}.get(status, str(status))
        trial.findings.claim(f"stuck {case.what}", right, f"{words} after {seconds:.1f} s; named {named or 'nowhere'}")
        newest = stack.partition("first: ")[2].split(", ")[0] or stack or "none"
        newest = re.sub(r"\(.*/", "(", newest)
        rows.append((case.what, words, f"{seconds:.1f} s", named, newest, "yes" if killed else "no"))
    columns = ("stuck", "its client got", "after", "named in the log", "newest call of its stack", "killed")
    trial.findings.tables.append(
        Table(f"RequestTimeout {KILLED_AFTER:g} s, SlowRequestTimeout {SLOW_AFTER:g} s", columns, rows)
    )
