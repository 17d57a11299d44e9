"""What a full pool answers.

Every worker is busy for five seconds, and 200 more requests come. What is beyond MaxQueue is to be answered 503 at
once, nobody is to wait longer than QueueTimeout, and the status port is to answer meanwhile.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from bench.answers import ask
from bench.servers import Recipe, find_free_port, serve_command, start_server
from bench.trials.crowd import Client, Heard, run_crowd
from bench.trials.harness import Trial, open_folder

SUMMARY = (
    "200 requests come while every worker is busy: 503 at once beyond MaxQueue, after QueueTimeout for the others."
)
LENGTH = "about 10 seconds"
APP = "bench/trials/recording.py"
WORKERS, QUEUE, TIMEOUT, SLEEP = 4, 20, 2.0, 5.0
REQUESTS = 200
SETTLING = 0.5
AT_ONCE = 50.0
"""Milliseconds within which what is beyond MaxQueue is answered."""
LATE = 250.0
"""Milliseconds beyond QueueTimeout that an answer may come later, on a machine that is busy with 200 clients."""


def serve_full(record: Path, status: int) -> Recipe:
    """Return how to start the pool."""
    words = (
        APP, "--process-manager", "static", "--max-servers", str(WORKERS), "--max-queue", str(QUEUE),
        "--queue-timeout", str(TIMEOUT), "--status-listen", f"127.0.0.1:{status}", "--environment", f"RECORD={record}",
    )  # fmt: skip
    return Recipe("full", "gateways", lambda port: serve_command(port, *words))


def run(trial: Trial) -> None:
    """Run the trial."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        status = find_free_port()
        server = start_server(serve_full(folder / "record", status), None)
        stack.callback(server.stop)
        trial.tell(f"{WORKERS} workers are made busy for {SLEEP:g} s, then {REQUESTS} requests come")
        for number in range(WORKERS):
            client = Client(server.port, keep=False)
            client.ask(number, f"/sleep/{SLEEP}/{number}")
            stack.callback(client.close)
        time.sleep(SETTLING)
        clients = [Client(server.port, keep=False) for _ in range(REQUESTS)]
        requests = ((number, f"/{number}") for number in range(WORKERS, WORKERS + REQUESTS))
        heard = run_crowd(clients, requests, lambda: 0.0, SLEEP)
        begin = time.monotonic()
        ask("http", status, "/ping", SLEEP)
        judge(trial, heard, (time.monotonic() - begin) * 1000)


def judge(trial: Trial, heard: Heard, ping: float) -> None:
    """Claim what a full pool promises."""
    claim = trial.findings.claim
    half = TIMEOUT * 500
    early = [time for status, time, _ in heard.answers if status == 503 and time < half]
    late = [time for status, time, _ in heard.answers if status == 503 and time >= half]
    claim("what is beyond MaxQueue is answered 503", len(early) == REQUESTS - QUEUE, f"{len(early)} of {REQUESTS}")
    slowest, longest = max(early, default=0.0), max(late, default=0.0)
    claim(f"within {AT_ONCE:g} ms", slowest <= AT_ONCE, f"the slowest {slowest:.1f} ms")
    claim("what has waited for QueueTimeout is answered 503", len(late) == QUEUE, len(late))
    claim(f"and nobody waits longer than {TIMEOUT:g} s", longest <= TIMEOUT * 1000 + LATE, f"{longest:.0f} ms")
    claim(f"/ping is answered meanwhile, within {AT_ONCE:g} ms", ping <= AT_ONCE, f"{ping:.1f} ms")
