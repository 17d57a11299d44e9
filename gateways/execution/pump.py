"""Moves bytes between one child process and one exchange until both are done: the same for ``cgi`` and ``zygote``.

Every direction is polled together, so that neither a flood on standard error nor a body that nobody reads can stop the
reply (C08, C09). Knows a child's pipes, an exchange and the clock; not how the child was made.
"""

from __future__ import annotations

import os
import select
import signal
from enum import Enum
from time import monotonic

from gateways.core.errors import ConnectionLost, ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import Exchange
    from gateways.execution.child import Child
    from gateways.execution.reply import Reply
    from gateways.execution.scriptlog import ScriptLog
    from gateways.execution.spool import RequestBody

PIECE = 65536
HOLD = 0.02
"""Seconds a complete head waits for the end of the output, so that a short reply leaves whole, with its length."""
GRACE = 0.2
"""Seconds from the script's exit until its reply is over although another process holds its output (B108); and from
the end of its output until its reply is over although it still runs (C10)."""
HALF_CLOSE_GRACE = 5.0
"""Seconds that a script may go on for a peer that has closed its sending side: it is gone, or waits for the reply."""
_TICK = 0.05
_MAX_REST = 64
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Stop(Enum):
    """Why a run ended early."""

    TIME = "its time limit passed"
    CLIENT = "the client is gone"


class Pump:
    """One child's run. ``body``: what it reads. ``time_limit``: seconds, 0: none."""

    def __init__(
        self, exchange: Exchange, child: Child, reply: Reply, log: ScriptLog, body: RequestBody, time_limit: float
    ) -> None:
        self._exchange = exchange
        self._child = child
        self._reply = reply
        self._log = log
        self._body = body
        self._deadline = monotonic() + time_limit if time_limit else 0.0
        self._input = b""
        self._poller = select.poll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._flush_at = 0.0
        self._settle_at = 0.0
        self._gone_at = 0.0
        self._exited = False
        self.output_over = False

    def run(self) -> Stop | None:
        """Move bytes until the reply is complete, and return ``None``; or return why it never will be.

        Raise what the exchange and the reply raise. The child may still run afterwards.
        """
        child, pipes = self._child, self._child.pipes
        self._watch(pipes.input, select.POLLOUT, self._feed)
        self._watch(pipes.output, select.POLLIN, self._take_output)
        self._watch(pipes.errors, select.POLLIN, self._take_errors)
        self._watch(child.pidfd, select.POLLIN, self._notice_exit)
        self._watch(self._exchange.fileno(), select.POLLRDHUP, self._notice_peer)
        return self._turn(lambda: (self._exited and self.output_over) or self._is_due(self._settle_at))

    def linger(self) -> Stop | None:
        """After the reply: wait for a child that still runs, logging what it says, within its time limit."""
        for name in ("input", "output"):
            self._forget(name)
        self._forget_peer()
        self._flush_at = self._settle_at = self._gone_at = 0.0
        return self._turn(lambda: self._exited)

    def _turn(self, is_over: Callable[[], bool]) -> Stop | None:
        while not is_over():
            for descriptor, events in self._poller.poll(self._plan_wait()):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    handler(events)
            if self._child.pidfd < 0 and not self._exited and self._child.has_ended():
                self._notice_exit(0)
            if self._is_due(self._flush_at):
                self._flush_at = 0.0
                self._reply.flush()
            if self._is_due(self._gone_at):
                return Stop.CLIENT
            if self._is_due(self._deadline) and not is_over():
                return Stop.TIME
        return None

    @staticmethod
    def _is_due(time: float) -> bool:
        return time != 0.0 and monotonic() >= time

    def _watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        if descriptor >= 0:
            self._poller.register(descriptor, events)
            self._handlers[descriptor] = handler

    def _forget(self, name: str) -> None:
        """Stop polling one end of the child's pipes, and close it: in this order, or the number is another's."""
        descriptor = getattr(self._child.pipes, name)
        if descriptor >= 0:
            self._poller.unregister(descriptor)
            del self._handlers[descriptor]
            self._child.pipes.close(name)

    def _forget_peer(self) -> None:
        descriptor = self._exchange.fileno()
        if descriptor in self._handlers:
            self._poller.unregister(descriptor)
            del self._handlers[descriptor]

    def _plan_wait(self) -> float | None:
        """Return the milliseconds until the next thing to do by the clock; ``None`` for no such thing."""
        times = [time for time in (self._deadline, self._flush_at, self._settle_at, self._gone_at) if time]
        if self._child.pidfd < 0 and not self._exited:
            times.append(monotonic() + _TICK)
        return max(0.0, (min(times) - monotonic()) * 1000) if times else None

    def _settle(self) -> None:
        if not self._settle_at:
            self._settle_at = monotonic() + GRACE

    def _take_output(self, _events: int) -> None:
        data = read_ready(self._child.pipes.output)
        if data is None:
            return
        if not data:
            self._forget("output")
            self.output_over = True
            self._settle()
            return
        self._reply.write(data)
        if self._exited:  # the pipe may hold more: a slow client is no reason to lose it
            self._settle_at = monotonic() + GRACE
        self._plan_flush()

    def _plan_flush(self) -> None:
        """Let a complete head wait for a moment, and as long as the peer owes a body that the script may still read.

        nginx sends no more of a body once the answer to it has begun, and a simple client reads no answer before it has
        sent everything: ``git push`` failed so. What is long is sent all the same.
        """
        owed = self._body.owed and self._child.pipes.input >= 0
        if not owed and not self._flush_at and self._reply.is_waiting():
            self._flush_at = monotonic() + HOLD

    def _take_errors(self, _events: int) -> None:
        data = read_ready(self._child.pipes.errors)
        if data:
            self._log.write(data)
        elif data is not None:
            self._forget("errors")

    def _feed(self, events: int) -> None:
        """Give the child the next bytes of the body; close its input at the body's end, or when it has closed it."""
        if events & select.POLLERR:
            self._forget_input()
            return
        if not self._input:
            self._input = self._body.read(PIECE)
            if not self._input:
                self._forget_input()
                return
            if not self._body.owed:
                self._plan_flush()
        try:
            written = os.write(self._child.pipes.input, self._input)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._forget_input()
            return
        self._input = self._input[written:]

    def _forget_input(self) -> None:
        self._forget("input")
        self._plan_flush()

    def _notice_exit(self, _events: int) -> None:
        """The child has ended: take the rest of what it said, which is all there already."""
        self._exited = True
        child = self._child
        if child.pidfd in self._handlers:
            self._poller.unregister(child.pidfd)
            del self._handlers[child.pidfd]
        for _ in range(_MAX_REST):
            data = read_ready(child.pipes.errors) if child.pipes.errors >= 0 else None
            if not data:
                break
            self._log.write(data)
        self._settle()

    def _notice_peer(self, events: int) -> None:
        """The peer closed its connection, or only its sending side."""
        if events & _GONE:
            self._forget_peer()
            self._gone_at = monotonic()
        else:
            self._poller.modify(self._exchange.fileno(), 0)
            self._gone_at = monotonic() + HALF_CLOSE_GRACE


def read_ready(descriptor: int) -> bytes | None:
    """Return what a pipe holds; ``b""`` at its end; ``None`` when there is nothing yet."""
    try:
        return os.read(descriptor, PIECE)
    except BlockingIOError:
        return None


def run_child(
    exchange: Exchange, child: Child, reply: Reply, log: ScriptLog, body: RequestBody, time_limit: float,
    judge: Callable[[int | None], str],
) -> None:  # fmt: skip
    """Run a child and answer the exchange; whatever happens, the child is collected and its pipes closed.

    ``judge(status)`` says why a child that ended with that
    wait status has no complete reply, ``""`` when it has. A child that goes on after its reply is over is waited for
    after the response, within ``time_limit``. Raise ``ScriptError`` when there is no complete reply (504: time limit).
    """
    pump = Pump(exchange, child, reply, log, body, time_limit)
    lingers = False
    try:
        stop = pump.run()
        if stop is not None:
            if stop is Stop.CLIENT:  # no fault of the script: whoever drives the exchange notes it
                raise ConnectionLost(f"{log.name} was ended: {stop.value}")
            log.note(f"was ended: {stop.value}")
            reply.raise_failure()
            raise ScriptError(f"{log.name}: {stop.value} ({time_limit:g} seconds)", 504)
        if not pump.output_over:
            child.signal_group(signal.SIGTERM)
        lingers = not child.has_ended()
        fault = judge(None) if lingers else judge(child.collect())
        if fault:
            raise ScriptError(f"{log.name}: {fault}")
        reply.finish()
    except ScriptError as error:
        error.hint = log.hint
        raise
    finally:
        if lingers:
            exchange.add_cleanup(lambda: end_lingering(pump, child, log))
        else:
            end_child(child, log)


def end_lingering(pump: Pump, child: Child, log: ScriptLog) -> None:
    """Wait for a child whose reply is over; end it when its time limit passes."""
    try:
        stop = pump.linger()
        if stop is not None:
            log.note(f"was ended after its reply: {stop.value}")
    finally:
        end_child(child, log)


def end_child(child: Child, log: ScriptLog) -> None:
    """Collect a child, by force if it still runs, and close what belongs to it."""
    if not child.has_ended():
        child.kill()
    child.collect()
    log.finish()
    child.close()
