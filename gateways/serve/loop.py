"""The loop of one serving process: wait for listeners and kept connections, and serve one exchange at a time.

A connection that waits - for the head of a request, for a short body, for the next request - costs the process
nothing but a line in epoll: the process is idle, and accepts. Only a request that can run makes it busy.

Knows sockets, wires, mounts and the clock; no pid, no signal, no scoreboard but three stores in it.
"""

from __future__ import annotations

import errno
import os
import select
from time import monotonic

from gateways.core.errors import ConnectionLost, LocalProtocolError, RemoteProtocolError, ScriptError
from gateways.core.response import format_status
from gateways.serve.connection import BODY, HEAD, IDLE, LINGERING, RECEIVE, Connection
from gateways.serve.exchange import DONE, NEW, NOT_MOUNTED, Exchange
from gateways.serve.listener import Listener
from gateways.serve.logged import LoggedExchange
from gateways.serve.sharing import NOTHING_SHARED
from gateways.serve.watched import watch_exchanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import AccessLog, Log, Slot, Watch
    from gateways.core.limits import TimeLimits
    from gateways.core.mounts import MountTable
    from gateways.core.request import Request
    from gateways.serve.sharing import Sharing

MAX_CONNECTIONS = 1000
"""Connections that one process keeps waiting; beyond them the one nearest its deadline is closed."""
MAX_LINGER_BYTES = 16 << 20
"""Bytes that a closing connection is read on, within ``times.linger``: a front server that is still sending a request
body reads our answer only afterwards, and takes a reset for a failure (nginx, Apache: 502, 503)."""
HEAD_RECEIVE = 16384
"""Bytes of one receive while a head is waited for: a buffer of 64 KiB would cost more than the head is long."""
_BATCH = 64
_BURST = 16
_EXCLUSIVE_IN = select.EPOLLIN | select.EPOLLEXCLUSIVE
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ConnectionLoop:
    """Serves connections until told to stop.

    ``max_requests``: requests after which this process wants to be replaced, 0 for never. ``leaving`` is called once
    when it stops accepting, in place of ``slot.closing``. ``one_connection``: accept one connection, be busy as long as
    it lasts, and end with it. ``access``: what takes a note of each request, if anything. ``watch``: who is told of
    each request before it runs and before it is answered, if anybody. ``sharing``: how waiting connections get to other
    processes while this one is busy, if they do. ``wakeups``: descriptors of others to watch, each
    with the function to call when it is readable. ``stop_kind`` is ``""``, ``"retire"`` (kept connections get one more
    answer, within the keep-alive time) or ``"stop"`` (idle connections are closed at once).
    """

    def __init__(
        self,
        listeners: list[Listener],
        mounts: MountTable,
        times: TimeLimits,
        slot: Slot,
        log: Log,
        max_requests: int = 0,
        leaving: Callable[[], None] | None = None,
        one_connection: bool = False,
        access: AccessLog | None = None,
        watch: Watch | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self.listeners = {listener.fd: listener for listener in listeners}
        self.mounts = mounts
        self.times = times
        self.slot = slot
        self.log = log
        self.max_requests = max_requests
        self.served = 0
        self.stop_kind = ""
        self._recycling = False
        self._one_connection = one_connection
        self._taken = False
        self.connections: dict[int, Connection] = {}
        self.wakeups: dict[int, Callable[[], object]] = {}
        self._leaving = leaving or slot.closing
        self._access = access
        self._open_exchange: Callable[[Connection, Request, MountTable, Log], Exchange]
        self._open_exchange = Exchange if access is None else LoggedExchange
        if watch is not None:
            self._open_exchange = watch_exchanges(watch, access is not None)
        self._sharing = sharing
        self._shared = NOTHING_SHARED if sharing is None else sharing.shared
        self._epoll = select.epoll()
        self._keep_alive = times.keep_alive or float("inf")
        self._next_sweep = 0.0
        self._accept_singly = 0
        self._pulse: Callable[[], float | None] | None = None
        self._longest_wait: float | None = None

    # The loop.

    def watch(self, fd: int, function: Callable[[], object]) -> None:
        """Call ``function`` whenever ``fd`` is readable or hung up."""
        self.wakeups[fd] = function
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fd: int) -> None:
        """Undo ``watch``, before ``fd`` is closed."""
        del self.wakeups[fd]
        self._epoll.unregister(fd)

    def pulse(self, seconds: float | None, function: Callable[[], float | None]) -> None:
        """Call ``function`` after each wait; before ``run``.

        No wait lasts longer than ``seconds``, and later than ``function`` has returned; None for no limit.
        """
        self._pulse = function
        self._longest_wait = seconds

    def run(self) -> None:
        """Serve until stopped and every connection is done with."""
        for fd in self.listeners:
            # Exclusive: one waiting process is woken for a connection, not all of them.
            self._epoll.register(fd, _EXCLUSIVE_IN)
        self.slot.idle()
        poll = self._epoll.poll
        connections = self.connections
        shared = self._shared
        pulse = self._pulse
        idle_wait = self._longest_wait
        wait = 1.0 if idle_wait is None else min(1.0, idle_wait)
        while connections or not (self.stop_kind or self._taken):
            events = poll(wait if connections else idle_wait, _BATCH)
            if pulse is not None:
                idle_wait = pulse()
                wait = 1.0 if idle_wait is None else min(1.0, idle_wait)
            # Listeners first: with the wake-up for it, this process took the new connection out of its siblings'
            # sight, so it must not make it wait behind its own kept connections.
            if len(events) > 1:
                listeners = self.listeners
                for fd, _ in events:
                    if fd in listeners and listeners is self.listeners:
                        self._accept(listeners[fd])
                if shared[1]:
                    self._rejoin()
            for fd, _ in events:
                connection = connections.get(fd)
                if connection is not None:
                    self._receive(connection)
                elif len(events) == 1 and fd in self.listeners:
                    self._accept_waiting(self.listeners[fd])
                elif fd in self.wakeups:
                    self.wakeups[fd]()
                if shared[1]:
                    # A request was a long one: what waited meanwhile may have gone to another process.
                    self._rejoin()
            if connections and monotonic() >= self._next_sweep:
                self._sweep(monotonic())
        if not self.stop_kind:
            self._leaving()
        self._epoll.close()

    def stop(self, kind: str) -> None:
        """Stop accepting, and end when the connections are done with; ``kind`` as in ``stop_kind``."""
        if self.stop_kind != "stop":
            # A worker that leaves by itself is replaced, and the new one looks at the listeners; for one that is told
            # to leave nobody comes, and the wake-up for a waiting connection may have come to it alone.
            self._leave_listeners(accept=not self.is_spent)
            self.stop_kind = kind
            self._leaving()
        if kind == "stop":
            for connection in list(self.connections.values()):
                if self._shared[1]:
                    self._rejoin()
                if connection.registered and connection.is_blank:
                    connection.last = True
                    self._receive(connection)
                    if connection.fd in self.connections:
                        self._close(connection)

    @property
    def is_spent(self) -> bool:
        """True when this process has served as many requests as it may, or was asked to be recycled."""
        return self._recycling or 0 < self.max_requests <= self.served

    def _leave_listeners(self, accept: bool) -> None:
        listeners = list(self.listeners.values())
        self.listeners = {}
        for listener in listeners:
            self._epoll.unregister(listener.fd)
            if accept:
                # What was handed to this pool's processes has nobody else to go to.
                while self._accept(listener) and listener.is_handed:
                    pass

    # One connection.

    def _accept_waiting(self, listener: Listener) -> None:
        """Accept the connection that woke us, and, while more are waiting, a bounded number of them.

        Each saves a look at epoll (`bench floor`, close c=10: 2 of 31 us a request). After a look in vain the next
        wake-ups accept one each.
        """
        self._accept(listener)
        if self._accept_singly:
            self._accept_singly -= 1
            return
        for _ in range(_BURST):
            if listener.fd not in self.listeners or not self._accept(listener):
                self._accept_singly = _BURST
                return

    def _accept(self, listener: Listener) -> bool:
        """Accept a connection and serve what has come on it. False when none was waiting."""
        try:
            fd, peer = listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _OUT_OF_DESCRIPTORS:
                self._make_room(error)
            return False
        connection = Connection(fd, listener.wire(peer), self.times, listener.number)
        if listener.is_handed:
            connection.handed = True
            connection.mark = listener.mark
        if self._one_connection:
            # Busy from here on, not only while a request runs: the next connection needs another process.
            self._taken = True
            self.slot.busy()
            self._leave_listeners(accept=False)
        if self.stop_kind:
            connection.last = True
        self._receive(connection)
        return True

    def adopt(self, connection: Connection) -> None:
        """Serve a connection that somebody else has accepted."""
        self._receive(connection)

    def _make_room(self, error: OSError) -> None:
        if self.connections:
            self.log.warning("cannot accept: %s; closing the idle connection nearest its deadline", error)
            self._close(min(self.connections.values(), key=lambda connection: connection.deadline))
        else:
            self.log.error("cannot accept: %s; raise the limit on open files", error)
            select.poll().poll(100)

    def _receive(self, connection: Connection) -> None:
        try:
            data = os.read(connection.fd, HEAD_RECEIVE if connection.request is None else RECEIVE)
        except BlockingIOError:
            if not connection.registered:
                self._wait(connection)
            return
        except OSError:
            self._close(connection)
            return
        if connection.phase == LINGERING:
            connection.received += len(data)
            if not data or connection.received > MAX_LINGER_BYTES:
                self._close(connection)
            return
        if connection.phase == BODY:
            connection.received += len(data)
        connection.wire.receive(data)
        self._advance(connection, bool(data))

    def _advance(self, connection: Connection, open_for_input: bool) -> None:
        """Serve every request that has arrived completely; then wait for the next, or close."""
        wire = connection.wire
        try:
            while True:
                request = connection.request or wire.take_request()
                if request is None:
                    break
                if request.content_length != 0 and not wire.body_ready():
                    connection.request = request
                    break
                connection.request = None
                if not self._serve(connection, request):
                    return
                if not wire.buffered:
                    if open_for_input and connection.registered:
                        # What the general case below comes to, for the common one.
                        connection.phase = IDLE
                        connection.deadline = monotonic() + self._keep_alive
                        return
                    break
        except RemoteProtocolError as error:
            self._refuse(connection, error)
            return
        except ConnectionLost:
            self._close(connection)
            return
        except Exception:
            self.log.exception("a connection failed")
            self._close(connection)
            return
        if open_for_input:
            output = wire.take_output()
            if output:
                self._send_output(connection, output)
            self._wait(connection)
        else:
            self._close(connection)

    def _send_output(self, connection: Connection, output: bytes) -> None:
        try:
            connection.send(output)
        except ConnectionLost:
            pass  # the coming receive finds the connection closed, and closes it

    def _wait(self, connection: Connection) -> None:
        """Leave a connection to epoll until more of a request comes, or its deadline."""
        now = monotonic()
        times = self.times
        if connection.request is not None:
            if connection.phase != BODY:
                connection.phase = BODY
                connection.began = now
                connection.received = 0
            connection.deadline = now + times.body if times.body else float("inf")
        elif connection.wire.has_partial_request or (connection.phase == HEAD and not connection.registered):
            if connection.phase != HEAD or not connection.registered:
                connection.phase = HEAD
                connection.deadline = now + times.head if times.head else float("inf")
        else:
            connection.phase = IDLE
            connection.deadline = now + self._keep_alive
        if not connection.registered:
            if len(self.connections) >= MAX_CONNECTIONS:
                self._close(min(self.connections.values(), key=lambda other: other.deadline))
            connection.registered = True
            self.connections[connection.fd] = connection
            self._epoll.register(connection.fd, select.EPOLLIN)
        if self._sharing is not None:
            self._sharing.untold[connection] = None

    def _close(self, connection: Connection) -> None:
        """Close at once."""
        if connection.registered:
            del self.connections[connection.fd]
            connection.registered = False
            # Closing would do, unless another process has a copy: the doorman, or a child that a script forked.
            self._epoll.unregister(connection.fd)
            if self._sharing is not None:
                self._sharing.forget(connection)
        connection.close()

    def _rejoin(self) -> None:
        """Give up the connections that other processes have taken while this one was busy."""
        assert self._sharing is not None
        for connection in self._sharing.rejoin():
            connection.handed = False  # only our copy goes: another process serves it
            self._close(connection)

    def _linger(self, connection: Connection) -> None:
        """Close in steps (RFC 9112 9.6): an unread request must not turn into a reset that eats the response."""
        try:
            connection.shut_down()
        except OSError:
            self._close(connection)
            return
        connection.request = None
        connection.received = 0
        connection.phase = LINGERING
        connection.deadline = monotonic() + self.times.linger
        if self._sharing is not None:
            self._sharing.forget(connection)
        if not connection.registered:
            connection.registered = True
            self.connections[connection.fd] = connection
            self._epoll.register(connection.fd, select.EPOLLIN)

    def _sweep(self, now: float) -> None:
        """Close or answer what has waited past its deadline. At most once a second."""
        self._next_sweep = now + 1.0
        for connection in [each for each in self.connections.values() if self._is_late(each, now)]:
            silent = connection.phase == HEAD and not connection.wire.has_partial_request
            if silent or connection.phase in (IDLE, LINGERING):
                self._close(connection)
            else:
                what = "head" if connection.phase == HEAD else "body"
                error = RemoteProtocolError(f"the request {what} came too slowly", 408, "RFC 9110 15.5.9")
                self._refuse(connection, error)

    def _is_late(self, connection: Connection, now: float) -> bool:
        return now >= connection.deadline or (connection.phase == BODY and connection.too_slow(now))

    def _refuse(self, connection: Connection, error: RemoteProtocolError) -> None:
        """Answer a request that broke the rules, and close: no later byte is parsed."""
        self.slot.count_refusal()
        self.log.warning("refused a request with %d: %s", error.status, ascii(str(error))[1:-1])
        fields = [("Content-Type", "text/plain; charset=utf-8")]
        body = f"{format_status(error.status)}\n{error.message}\n".encode("ascii", "backslashreplace")
        if self._access is not None:
            self._access.write_refused(connection.find_peer(), format_status(error.status), len(body))
        try:
            connection.send(connection.wire.format_response(format_status(error.status), fields, body, True))
        except ConnectionLost:
            self._close(connection)
            return
        self._linger(connection)

    # One exchange.

    def _serve(self, connection: Connection, request: Request) -> bool:
        """Run the application for one request. True when the connection can take another."""
        slot = self.slot
        sharing = self._sharing
        if sharing is not None:
            if sharing.untold:
                sharing.tell(connection)
            sharing.shared[0] = connection.mark
        slot.begin(request.method, request.target)
        self.served += 1
        if self.served == self.max_requests or self.stop_kind:
            connection.last = True
            if not connection.wire.announces_end:
                connection.hold_back()
        exchange = self._open_exchange(connection, request, self.mounts, self.log)
        try:
            mount = self.mounts.take(request)
            if mount is None:
                exchange.fail(404, NOT_MOUNTED)
            else:
                mount.model.run(exchange)
            if exchange.state != DONE:
                exchange.finish()
        except ConnectionLost as error:
            self._lose(exchange, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 the edge around the application
            self._fail(exchange, error)
        if self._access is not None:
            self._access.write(exchange)
        if exchange._cleanups:
            exchange.run_cleanups()
        slot.count_request(exchange.status)
        reusable = connection.wire.finish() and not connection.last
        keep = reusable and not connection.broken
        if not keep:
            self._end(connection)
        if exchange.recycling:
            self._recycling = True
        if (self.served == self.max_requests or exchange.recycling) and not self.stop_kind:
            self.stop("retire")
        elif not (self.stop_kind or self._taken):
            slot.idle()
        if keep:
            connection.began = 0.0
            connection.phase = IDLE
            if self.stop_kind:
                connection.last = True
        return keep

    def _end(self, connection: Connection) -> None:
        wire = connection.wire
        if connection.broken or (not wire.buffered and wire.body_complete() and not connection.may_lose_response()):
            self._close(connection)
        else:
            self._linger(connection)

    def _lose(self, exchange: Exchange, error: ConnectionLost) -> None:
        self.log.info("%s: %s", exchange.describe(), error)
        exchange.connection.last = True
        if exchange.state == NEW:
            exchange.status = ""
        if not exchange.connection.broken:
            self._answer(exchange, 408, "")

    def _fail(self, exchange: Exchange, error: BaseException) -> None:
        if isinstance(error, RemoteProtocolError):
            self.log.warning("%s: refused with %d: %s", exchange.describe(), error.status, error)
            exchange.connection.last = True
            self._answer(exchange, error.status, error.message)
        elif isinstance(error, (LocalProtocolError, ScriptError)):
            self.log.error("%s: %s", exchange.describe(), error)
            self._answer(exchange, error.status, error.hint)
        else:
            self.log.exception("%s: the application failed: %r", exchange.describe(), error)
            self._answer(exchange, 500, "")

    def _answer(self, exchange: Exchange, status: int, message: str) -> None:
        try:
            exchange.fail(status, message)
        except ConnectionLost:
            exchange.connection.broken = True
