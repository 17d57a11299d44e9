"""One accepted connection: its socket, its wire, its deadlines, and blocking input and output within time limits.

Knows one socket and the clock. Does not know which requests there are, what runs them, or any pid.

The socket stays in blocking mode, because changing that costs a system call a connection: every receive and send says
``MSG_DONTWAIT`` instead, and only a full socket buffer leads to ``poll``.
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
MSG_DONTWAIT = int(socket.MSG_DONTWAIT)
_NOTHING = bytes(4)
_MSG_MORE = int(socket.MSG_MORE) | MSG_DONTWAIT
_RESET = struct.pack("ii", 1, 0)

# What a waiting connection waits for; decides what happens at its deadline.
IDLE, HEAD, BODY, LINGERING = range(4)


class Connection:
    """An accepted socket and its wire.

    ``deadline``: the monotonic time, in seconds, at which waiting ends. ``phase``: what is waited for.
    ``request``: a request whose body is still being received. ``last``: this exchange is the connection's last.
    """

    __slots__ = (
        "_nonblocking",
        "began",
        "broken",
        "deadline",
        "fd",
        "last",
        "phase",
        "received",
        "registered",
        "request",
        "sock",
        "times",
        "wire",
    )

    def __init__(self, sock: socket.SocketType, fd: int, wire: Wire, times: TimeLimits) -> None:
        self.sock = sock
        self.fd = fd
        self.wire = wire
        self.times = times
        self.request: Request | None = None
        self.last = False
        self.broken = False
        self.registered = False
        self.phase = HEAD
        self.deadline = 0.0
        self.began = 0.0
        self.received = 0
        self._nonblocking = False

    def send(self, data: bytes) -> None:
        """Send all of ``data``. Raise ``ConnectionLost`` when the peer has gone or takes nothing for too long."""
        try:
            sent = self.sock.send(data, MSG_DONTWAIT)
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
                rest = rest[self.sock.send(rest, MSG_DONTWAIT) :]
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
            sent = self.sock.sendmsg((first, second), (), MSG_DONTWAIT)
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
            sent = self._send_more(head)
            self._send_rest(memoryview(head)[sent:])
        if not self._nonblocking:
            os.set_blocking(self.fd, False)
            self._nonblocking = True
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

    def _send_more(self, head: bytes) -> int:
        try:
            return self.sock.send(head, _MSG_MORE)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.broken = True
            raise ConnectionLost(f"the peer has gone: {error}") from error

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
            data = self.sock.recv(RECEIVE, MSG_DONTWAIT)
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
            return self.sock.recv(RECEIVE, MSG_DONTWAIT)
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

        That is: bytes of the peer lie unread, or its kernel has not yet taken all of ours and more may come from it.
        """
        try:
            unsent = fcntl.ioctl(self.fd, termios.TIOCOUTQ, _NOTHING)
            return unsent != _NOTHING or bool(self.sock.recv(1, MSG_DONTWAIT | socket.MSG_PEEK))
        except OSError:
            return False

    def reset(self) -> None:
        """Make the coming close a reset, for a peer that could not otherwise tell that its response is incomplete."""
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            pass
