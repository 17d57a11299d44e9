"""The load generator: a process of its own that asks for one page again and again, and checks every answer.

Run as ``python -m bench.load``: it reads one job a line (JSON) from standard input and writes one result a line. Knows
an address, a request, the answer that is right, and the clock; nothing of modes, servers or rounds.

Every answer's status and length is checked, and the whole body of every ``SAMPLE``-th. At the first wrong answer the
job ends: a server that sends the wrong page fast has no rate. Times are per request, from before the connection is
made (or, on a kept one, before the request is sent) until the last byte, or until the end of the connection where the
request asked for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from _socket import AF_INET, IPPROTO_TCP, SOCK_STREAM, TCP_NODELAY, socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import cycle
from time import perf_counter_ns
from types import FrameType

from bench.speeches import SPEECHES, Speech, WrongAnswer, check_answer, vary_requests
from bench.stats import count_values

SAMPLE = 64
READ_SIZE = 65536
MAX_ANSWER = 1 << 24
GRACE = 10.0


@dataclass(frozen=True, slots=True)
class Job:
    """What to ask, how, and for how long.

    ``seconds`` bounds the time in which requests are begun, ``count`` their number (0: no bound). ``length`` and
    ``digest`` (SHA-256, hexadecimal) are the right body's; with a ``length`` of -1 only the status is checked.
    ``timeout`` is how many seconds the last answers may take beyond ``seconds``. ``core`` pins the generator, -1 does
    not. ``speech`` is the protocol (``bench.speeches``).
    """

    port: int
    path: str
    length: int
    digest: str
    seconds: float
    host: str = "127.0.0.1"
    count: int = 0
    concurrency: int = 1
    keep_alive: bool = False
    timeout: float = GRACE
    core: int = -1
    speech: str = "http"


@dataclass(slots=True)
class Result:
    """What came of a job. ``latencies`` is a histogram in microseconds; ``error`` is ``""`` or what was wrong first."""

    requests: int = 0
    seconds: float = 0.0
    connections: int = 0
    error: str = ""
    latencies: list[list[int]] = field(default_factory=list)


def check_status(speech: Speech, data: bytes, _job: Job, _thoroughly: bool) -> None:
    """Raise ``WrongAnswer`` unless ``data`` is a whole 200 answer: for pages of which no two are alike."""
    status = speech.open(data)[0]
    if status != 200:
        raise WrongAnswer(f"status {status}, not 200")


class Overdue(Exception):
    """The time for the whole job is over and answers are still missing."""


def receive_to_end(connection: socket) -> bytes:
    """Return everything until the peer closes."""
    data = connection.recv(READ_SIZE)
    more = connection.recv(READ_SIZE)
    if not more:
        return data
    pieces, size = [data], len(data)
    while more:
        pieces.append(more)
        size += len(more)
        if size > MAX_ANSWER:
            raise WrongAnswer(f"an answer longer than {MAX_ANSWER} bytes")
        more = connection.recv(READ_SIZE)
    return b"".join(pieces)


def receive_answer(connection: socket, speech: Speech, length: int) -> bytes:
    """Return one answer that tells its end; shorter when the peer closed early, longer when it sent too much."""
    find_end = speech.find_end
    first = connection.recv(READ_SIZE)
    end = find_end(first, length)
    if 0 <= end <= len(first):
        return first
    data = bytearray(first)
    while end < 0 or len(data) < end:
        more = connection.recv(READ_SIZE)
        if not more or len(data) > MAX_ANSWER:
            break
        data += more
        if end < 0:
            end = find_end(data, length)
    return bytes(data)


def run_one_by_one(job: Job, latencies: list[int]) -> int:
    """Ask with one connection at a time, blocking; append latencies in ns, return how many connections it took."""
    speech, address = SPEECHES[job.speech], (job.host, job.port)
    requests, delimited = cycle(vary_requests(speech, job)), job.keep_alive or speech.delimited
    limit = job.count or sys.maxsize
    keep, length = job.keep_alive, job.length
    check = check_answer if length >= 0 else check_status
    connection: socket | None = None
    connections = asked = 0
    now = perf_counter_ns()
    end = now + int(job.seconds * 1e9)
    try:
        while now < end and asked < limit:
            begin = now
            if connection is None:
                connection = socket(AF_INET, SOCK_STREAM, 0)
                connection.connect(address)
                connections += 1
                if keep:
                    connection.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            connection.send(next(requests))
            data = receive_answer(connection, speech, length) if delimited else receive_to_end(connection)
            if not keep:
                connection.close()
                connection = None
            now = perf_counter_ns()
            check(speech, data, job, asked % SAMPLE == 0)
            latencies.append(now - begin)
            asked += 1
            if connection is not None and speech.closes(data, length):
                connection.close()
                connection = None
    finally:
        if connection is not None:
            connection.close()
    return connections


class Crowd:
    """Several connections at once, each with one request under way, watched by epoll."""

    def __init__(self, job: Job, latencies: list[int]) -> None:
        self.job = job
        self.latencies = latencies
        self.speech = SPEECHES[job.speech]
        self.requests = cycle(vary_requests(self.speech, job))
        self.delimited = job.keep_alive or self.speech.delimited
        self.check = check_answer if job.length >= 0 else check_status
        self.address = (job.host, job.port)
        self.epoll = select.epoll()
        self.open: dict[int, socket] = {}
        self.data: dict[int, bytes] = {}
        self.begun: dict[int, int] = {}
        self.connections = self.asked = self.answered = 0

    def connect(self) -> None:
        """Begin one request on a new connection."""
        begin = perf_counter_ns()
        connection = socket(AF_INET, SOCK_STREAM, 0)
        fd = connection.fileno()
        self.open[fd] = connection
        connection.connect(self.address)
        self.connections += 1
        self.begin(fd, begin)
        self.epoll.register(fd, select.EPOLLIN)

    def begin(self, fd: int, begin: int) -> None:
        """Send the request on an open connection."""
        self.data[fd] = b""
        self.begun[fd] = begin
        self.asked += 1
        self.open[fd].send(next(self.requests))

    def drop(self, fd: int) -> None:
        """Close one connection."""
        self.open.pop(fd).close()
        self.data.pop(fd, None)
        self.begun.pop(fd, None)

    def receive(self, fd: int) -> bool:
        """Take what has come on one connection; return True when its answer is complete and right."""
        more = self.open[fd].recv(READ_SIZE)
        data = self.data[fd] + more if self.data[fd] else more
        self.data[fd] = data
        if more and len(data) <= MAX_ANSWER:
            if not self.delimited:
                return False
            end = self.speech.find_end(data, self.job.length)
            if end < 0 or len(data) < end:
                return False
        self.check(self.speech, data, self.job, self.answered % SAMPLE == 0)
        self.answered += 1
        return True

    def close(self) -> None:
        """Close everything."""
        for fd in list(self.open):
            self.drop(fd)
        self.epoll.close()


def run_crowd(job: Job, latencies: list[int]) -> int:
    """Ask over ``job.concurrency`` connections at once; append latencies in ns, return how many it took."""
    crowd = Crowd(job, latencies)
    limit = job.count or sys.maxsize
    end = perf_counter_ns() + int(job.seconds * 1e9)
    try:
        for _ in range(min(job.concurrency, limit)):
            crowd.connect()
        while crowd.open:
            for fd, _ in crowd.epoll.poll():
                if not crowd.receive(fd):
                    continue
                now = perf_counter_ns()
                latencies.append(now - crowd.begun[fd])
                again = now < end and crowd.asked < limit
                if again and job.keep_alive and not crowd.speech.closes(crowd.data[fd], job.length):
                    crowd.begin(fd, now)
                    continue
                crowd.drop(fd)
                if again:
                    crowd.connect()
    finally:
        crowd.close()
    return crowd.connections


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``Overdue`` in the block when it takes longer: one timer for a job costs no request anything."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Overdue(f"answers were still missing {seconds:g} s after the start")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_job(job: Job) -> Result:
    """Do a job and return what came of it; a wrong answer or a lost connection is the result's ``error``."""
    if job.core >= 0:
        os.sched_setaffinity(0, {job.core})
    latencies: list[int] = []
    result = Result()
    start = perf_counter_ns()
    try:
        with time_limit(job.seconds + job.timeout):
            run = run_crowd if job.concurrency > 1 else run_one_by_one
            result.connections = run(job, latencies)
    except (WrongAnswer, Overdue) as error:
        result.error = str(error)
    except OSError as error:
        result.error = f"{error.strerror or error} (after {len(latencies)} answers)"
    result.seconds = (perf_counter_ns() - start) / 1e9
    result.requests = len(latencies)
    result.latencies = count_values(latency // 1000 for latency in latencies)
    return result


def main() -> None:
    """Do jobs until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us, by closing our input
    for line in sys.stdin:
        print(json.dumps(asdict(run_job(Job(**json.loads(line))))), flush=True)


if __name__ == "__main__":
    main()
