"""One process that serves by itself: the same serve function, asked to stop by signals, leaving no trace."""

from __future__ import annotations

import logging
import os
import select
import signal

import pytest

from gateways.process.limits import PoolLimits
from gateways.process.listeners import open_listener, parse_address
from gateways.process.pool import Pool
from gateways.process.single import WATCHED, run_single
from gateways.process.worker import Worker

LOG = logging.getLogger("test")


def dispositions() -> list[object]:
    return [signal.getsignal(number) for number in WATCHED]


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (signal.SIGTERM, "stop"),
        (signal.SIGINT, "stop"),
        (signal.SIGQUIT, "retire"),
        (signal.SIGUSR1, "retire"),
        (signal.SIGHUP, ""),
    ],
    ids=["TERM", "INT", "QUIT", "USR1", "HUP"],
)
def test_a_signal_wakes_and_says_what_is_wanted(number: int, word: str) -> None:
    seen: list[str] = []

    def serve(worker: Worker) -> None:
        worker.ready()
        os.kill(os.getpid(), number)
        assert select.select([worker.wake_fd, worker.lifeline_fd], [], [], 10)[0] == [worker.wake_fd]
        worker.clear_wake()
        assert select.select([worker.wake_fd], [], [], 0)[0] == []
        seen.append(worker.stop_requested)

    before = dispositions(), sorted(os.listdir("/proc/self/fd"))
    assert run_single(Pool("app", PoolLimits(), [], serve), LOG) == 0
    assert seen == [word]
    assert (dispositions(), sorted(os.listdir("/proc/self/fd"))) == before


def test_stop_wins_over_retire_whichever_comes_first() -> None:
    def serve(worker: Worker) -> None:
        worker.ready()
        os.kill(os.getpid(), signal.SIGQUIT)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGQUIT)
        assert worker.stop_requested == "stop"

    run_single(Pool("app", PoolLimits(), [], serve), LOG)


def test_p09_what_the_application_did_to_signals_while_loading_is_undone() -> None:
    def serve(worker: Worker) -> None:
        for number in (signal.SIGTERM, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        worker.ready()
        os.kill(os.getpid(), signal.SIGTERM)
        assert select.select([worker.wake_fd], [], [], 10)[0]
        assert worker.stop_requested == "stop"

    run_single(Pool("app", PoolLimits(), [], serve), LOG)


def test_a_second_interrupt_interrupts() -> None:
    def serve(worker: Worker) -> None:
        worker.ready()
        os.kill(os.getpid(), signal.SIGINT)
        assert worker.stop_requested == "stop"
        os.kill(os.getpid(), signal.SIGINT)

    before = dispositions()
    with pytest.raises(KeyboardInterrupt):
        run_single(Pool("app", PoolLimits(), [], serve), LOG)
    assert dispositions() == before


def test_what_serve_raises_is_the_callers_and_the_listeners_are_closed() -> None:
    listener = open_listener(parse_address("127.0.0.1:0"))

    def serve(worker: Worker) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_single(Pool("app", PoolLimits(), [listener], serve), LOG)
    assert listener.fileno() == -1


def test_the_request_limit_does_not_end_the_only_process() -> None:
    def serve(worker: Worker) -> None:
        worker.slot.count_request()
        assert not worker.spent

    run_single(Pool("app", PoolLimits(max_requests_per_child=1), [], serve), LOG)
