"""A supervisor with a serve function of a few lines, run as a script by the process tests; not a test itself.

``process_driver.py DIRECTORY``: ``limits.json`` there holds the limits, read on every load. ``load`` and ``boot`` there
say how loading and starting go. A connection sends one word: ``pid`` is answered with the pid, ``hold`` too and keeps
the worker busy until the peer sends more, ``die`` kills the worker, ``exit`` ends it with status 3.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import resource
import select
import signal
import sys
from functools import partial
from pathlib import Path

from gateways.core.errors import ConfigurationError
from gateways.process.limits import PoolLimits
from gateways.process.listeners import OpenListeners, parse_address
from gateways.process.pool import Pool
from gateways.process.privileges import look_up_identity
from gateways.process.supervisor import Supervisor
from gateways.process.worker import Worker

DIRECTORY = Path()
LISTENERS = OpenListeners()
EATEN: list[bytearray] = []


def told(name: str) -> str:
    file = DIRECTORY / name
    return file.read_text() if file.exists() else ""


def load() -> list[Pool]:
    how = told("load")
    if how == "refuse":
        raise ConfigurationError("gateways.conf:3: no such directive: Foo")
    if how == "raise":
        raise ZeroDivisionError("a fault in load")
    pools = []
    # ``pools`` names the pools; each may have ``limits.json.NAME``, ``addresses.NAME`` and ``boot.NAME`` of its own.
    for name in (told("pools") or "app").split():
        addresses = json.loads(told(f"addresses.{name}") or told("addresses"))
        listeners = LISTENERS.acquire([parse_address(text) for text in addresses])
        for listener in listeners:
            logging.info("listening on %s", listener.getsockname())
        limits = PoolLimits(**json.loads(told(f"limits.json.{name}") or told("limits.json")))
        user = told("user")
        identity = look_up_identity(*user.split(":")) if user else None
        pools.append(Pool(name, limits, listeners, partial(serve, name), identity))
    if told("processes"):
        become_limited()
    return pools


def boot(name: str) -> None:
    how = told(f"boot.{name}") or told("boot")
    if how == "raise":
        raise ImportError("no module named nothing")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        sys.exit(4)
    if how == "hang" or (how == "hang but one" and not lead()):
        logging.info("hanging %d", os.getpid())
        with open(DIRECTORY / "gate", "rb") as gate:  # a FIFO: opening waits for its writer
            gate.read()


def lead() -> bool:
    """True for the first who asks."""
    try:
        os.close(os.open(DIRECTORY / "leader", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def serve(name: str, worker: Worker) -> None:
    boot(name)
    worker.ready()
    logging.info("ready %d random %r", os.getpid(), random.random())
    listeners = {listener.fileno(): listener for listener in worker.listeners}
    poller = select.poll()
    for fd in (*listeners, worker.wake_fd, worker.lifeline_fd):
        poller.register(fd, select.POLLIN)
    while not worker.stop_requested and not worker.spent:
        for fd, _ in poller.poll():
            if fd == worker.lifeline_fd:
                return
            if fd == worker.wake_fd:
                worker.clear_wake()
            else:
                answer(worker, listeners[fd])
        if worker.one_connection and worker.slot.requests:
            break
    worker.slot.closing()
    logging.info("leaving %d %s", os.getpid(), worker.stop_requested or "spent")


def answer(worker: Worker, listener) -> None:
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return
    worker.slot.busy()
    with connection:
        word = connection.recv(10)
        worker.slot.begin("GET", f"/{word.decode()}")
        if word == b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == b"exit":
            os._exit(3)
        connection.sendall(b"%d" % os.getpid())
        if word == b"hold":
            connection.recv(10)
            connection.sendall(b"+")
        if word == b"eat":
            EATEN.append(bytearray(b"x" * (64 << 20)))
        if word == b"stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if word == b"gil":
            hold_interpreter()
    worker.slot.count_request()
    if not worker.one_connection:
        worker.slot.idle()


def hold_interpreter() -> None:
    """Be inside C code that never lets go of the interpreter: a pattern that tries 2 ** 60 ways."""
    re.match("(a+)+$", "a" * 60 + "b")


def start_foreign() -> None:
    """A child that the supervisor knows nothing of, which ends with a status that means something elsewhere."""
    pid = os.fork()
    if pid == 0:
        os._exit(int(told("foreign")))
    logging.info("foreign %d", pid)


def become_limited() -> None:
    """Become, for good, a user who may have only so many processes."""
    DIRECTORY.chmod(0o755)
    resource.setrlimit(resource.RLIMIT_NPROC, (int(told("processes")),) * 2)
    os.setgroups(())
    os.setgid(59999)
    os.setuid(20000 + os.getpid() % 30000)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    os.chdir(sys.argv[1])
    if terminal := os.environ.get("PROCESS_DRIVER_TERMINAL"):
        os.open(terminal, os.O_RDWR)  # the first terminal that the leader of a session opens becomes its own
    if told("foreign"):
        start_foreign()
    sys.exit(Supervisor(load, logging.getLogger()).run())
