"""Signals as numbers from a pipe: each once, in order, none lost to a fork, everything as before at the end."""

from __future__ import annotations

import os
import signal

from gateways.process.signals import Bell, SignalQueue, signals_blocked

NUMBERS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)


def test_signals_arrive_in_order_and_each_once() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    queue = SignalQueue(NUMBERS)
    queue.install()
    try:
        assert queue.take() == []
        for number in (signal.SIGUSR2, signal.SIGHUP, signal.SIGUSR2, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        queue.wait(10.0)
        assert queue.take() == [signal.SIGUSR2, signal.SIGHUP, signal.SIGUSR1]
        assert queue.take() == []
    finally:
        queue.restore()
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_p09_a_storm_does_not_fill_anything() -> None:
    queue = SignalQueue(NUMBERS)
    queue.install()
    try:
        for _ in range(20_000):
            os.kill(os.getpid(), signal.SIGHUP)
        seen = set()
        while taken := queue.take():
            seen.update(taken)
        assert seen == {signal.SIGHUP}
    finally:
        queue.restore()


def test_p09_a_blocked_signal_is_let_through_and_blocked_again_at_the_end() -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        queue = SignalQueue(NUMBERS)
        queue.install()
        os.kill(os.getpid(), signal.SIGUSR1)
        queue.wait(10.0)
        assert queue.take() == [signal.SIGUSR1]
        queue.restore()
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_a_bell_wakes_and_is_cleared_by_the_wait() -> None:
    queue, bell = SignalQueue(()), Bell()
    bell.ring()
    queue.wait(10.0, bell)
    assert bell.take() == b""
    bell.close()
    queue.close()


def test_a_bell_may_be_rung_without_end() -> None:
    bell = Bell()
    for _ in range(70_000):
        bell.ring()
    assert len(bell.take()) == 4096
    os.close(bell.read_fd)
    bell.ring()
    os.close(bell.write_fd)


def test_signals_wait_while_they_are_blocked() -> None:
    queue = SignalQueue(NUMBERS)
    queue.install()
    try:
        with signals_blocked():
            os.kill(os.getpid(), signal.SIGUSR1)
            assert queue.take() == []
        queue.wait(10.0)
        assert queue.take() == [signal.SIGUSR1]
    finally:
        queue.restore()
