"""One accepted connection: its socket, its wire, its deadlines, and blocking input and output within time limits.

Knows one socket and the clock. Does not know which requests there are, what runs them, or any pid.

A connection is a descriptor in non-blocking mode: a socket object would cost a system call and two allocations more for
each. Only an empty or a full socket buffer leads to ``poll``.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import termios
from time import monotonic

from gateways.core.errors import ConnectionLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Wire
    from gateways.core.limits import TimeLimits
    from gateways.core.request import Request

RECEIVE = 65536
"""Bytes asked of one receive."""
LARGE = 32768
"""From this many bytes on, head and body are sent as two buffers instead of being joined."""
_NOTHING = bytes(4)
_RESET = struct.pack("ii", 1, 0)

# What a waiting connection waits for; decides what happens at its deadline.
IDLE, HEAD, BODY, LINGERING = range(4)


class Connection:
    """An accepted socket and its wire.

    ``deadline``: the monotonic time, in seconds, at which waiting ends. ``phase``: what is waited for.
    ``request``: a request whose body is still being received. ``last``: this exchange is the connection's last.
    ``origin``: the number of the listener that it came by. ``mark``: what it is called where it is shared, or 0.
    ``handed``: it was another process's, which may hold a copy of it for long: no close of ours alone ends it.
    """

    __slots__ = (
        "began",
        "broken",
        "deadline",
        "fd",
        "handed",
        "last",
        "mark",
        "origin",
        "phase",
        "received",
        "registered",
        "request",
        "times",
        "wire",
    )

    def __init__(self, fd: int, wire: Wire, times: TimeLimits, origin: int = 0) -> None:
        self.fd = fd
        self.wire = wire
        self.times = times
        self.origin = origin
        self.request: Request | None = None
        self.last = False
        self.broken = False
        self.registered = False
        self.mark = 0
        self.handed = False
        self.phase = HEAD
        self.deadline = 0.0
        self.began = 0.0
        self.received = 0

    @property
    def is_blank(self) -> bool:
        """True while it waits for a request of which nothing has come."""
        wire = self.wire
        return self.request is None and self.phase <= HEAD and not (wire.has_partial_request or wire.buffered)

    def send(self, data: bytes) -> None:
        """Send all of ``data``. Raise ``ConnectionLost`` when the peer has gone or takes nothing for too long."""
        try:
            sent = os.write(self.fd, data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.broken = True
            raise ConnectionLost(f"the peer has gone: {error}") from error
        if sent != len(data):
            self._send_rest(memoryview(data)[sent:])

    def _send_rest(self, rest: memoryview) -> None:
        while rest:
            self._wait(select.POLLOUT, self.times.send, "takes no response bytes")
            try:
                rest = rest[os.write(self.fd, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                self.broken = True
                raise ConnectionLost(f"the peer has gone: {error}") from error

    def send_pair(self, first: bytes, second: bytes) -> None:
        """Send two buffers in order, joined when that is cheaper than two system calls."""
        if len(second) < LARGE:
            self.send(first + second)
            return
        try:
            sent = os.writev(self.fd, (first, second))
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.broken = True
            raise ConnectionLost(f"the peer has gone: {error}") from error
        if sent < len(first):
            self._send_rest(memoryview(first)[sent:])
            sent = len(first)
        self._send_rest(memoryview(second)[sent - len(first) :])

    def send_file(self, head: bytes, file_fd: int, offset: int, count: int) -> None:
        """Send ``head``, then ``count`` bytes of a file from ``offset``, by ``sendfile``.

        Raise ``ConnectionLost`` as ``send`` does, and ``OSError`` when the file is shorter than promised.
        """
        if head:
            self.send(head)
        while count:
            try:
                sent = os.sendfile(self.fd, file_fd, offset, count)
            except BlockingIOError:
                self._wait(select.POLLOUT, self.times.send, "takes no response bytes")
                continue
            except (BrokenPipeError, ConnectionResetError) as error:
                self.broken = True
                raise ConnectionLost(f"the peer has gone: {error}") from error
            if sent == 0:
                raise OSError(f"the file ended {count} bytes before its promised end")
            offset += sent
            count -= sent

    def read_input(self) -> None:
        """Wait for bytes of a request body and give them to the wire; ``b""`` at the end of input.

        What the wire wants to send is sent first. Raise ``ConnectionLost`` after ``times.body`` seconds of silence, and
        when the body comes slower than ``times.body_rate``.
        """
        output = self.wire.take_output()
        if output:
            self.send(output)
        if not self.began:
            self.began = monotonic()
        try:
            data = os.read(self.fd, RECEIVE)
        except BlockingIOError:
            self._wait(select.POLLIN, self.times.body, "sends no more of its request body")
            data = self._receive()
        except OSError as error:
            self.broken = True
            raise ConnectionLost(f"the peer has gone: {error}") from error
        self.received += len(data)
        if data and self.too_slow(monotonic()):
            self.last = True
            raise ConnectionLost(f"the peer sends its request body slower than {self.times.body_rate} bytes a second")
        self.wire.receive(data)

    def _receive(self) -> bytes:
        try:
            return os.read(self.fd, RECEIVE)
        except OSError as error:
            self.broken = True
            raise ConnectionLost(f"the peer has gone: {error}") from error

    def too_slow(self, now: float) -> bool:
        """True when the body that began at ``began`` has come slower than the least rate, beyond the first silence."""
        times = self.times
        if not (times.body_rate and times.body):
            return False
        return now - self.began > times.body + self.received / times.body_rate

    def _wait(self, event: int, seconds: float, what: str) -> None:
        poll = select.poll()
        poll.register(self.fd, event)
        if not poll.poll(seconds * 1000 if seconds else None):
            # A peer that only sends too slowly can still be told so.
            self.broken = event == select.POLLOUT
            self.last = True
            raise ConnectionLost(f"the peer {what} for {seconds:g} seconds")

    def may_lose_response(self) -> bool:
        """True when a close now could turn into a reset that costs the peer the end of its response (RFC 9112 9.6).

        That is: bytes of the peer lie unread; or its kernel has not taken all of ours yet, and more may come from it.
        """
        try:
            if fcntl.ioctl(self.fd, termios.FIONREAD, _NOTHING) != _NOTHING:
                return True
            return not self.wire.peer_is_done and fcntl.ioctl(self.fd, termios.TIOCOUTQ, _NOTHING) != _NOTHING
        except OSError:
            return False

    def close(self) -> None:
        """End the connection, and close the descriptor; the kernel takes it out of epoll."""
        if self.handed:
            end_connection(self.fd)
        os.close(self.fd)

    def find_peer(self) -> object:
        """Return the peer's address as ``accept`` gave it; ``""`` when it has gone."""
        try:
            with self._borrow_socket() as sock:
                return sock.getpeername()
        except OSError:
            return ""

    def shut_down(self) -> None:
        """Say that nothing more will be sent. Raise ``OSError`` when the peer has gone."""
        with self._borrow_socket() as sock:
            sock.shutdown(socket.SHUT_WR)

    def hold_back(self) -> None:
        """Have the end of the last response and the end of the connection arrive together, where the kernel can.

        A front that hears of the one before the other sends another request in between (nginx, FastCGI), and answers
        502 if it may not send that twice. The pieces of a response may come up to 0.2 s later (TCP_CORK, tcp(7)).
        """
        try:
            with self._borrow_socket() as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        except OSError:
            pass  # a UNIX socket

    def reset(self) -> bool:
        """Make the coming close a reset, for a peer that could not otherwise tell that its response is incomplete.

        Return False when it cannot be one: on a UNIX socket, and where another process may have a copy.
        """
        if self.handed:
            return False
        try:
            with self._borrow_socket() as sock:
                if sock.family == socket.AF_UNIX:
                    return False
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            pass
        return True

    def _borrow_socket(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self.fd))


def end_connection(fd: int) -> None:
    """End a connection for every process that has a copy of it."""
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the peer has gone
