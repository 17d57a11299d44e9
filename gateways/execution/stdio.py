"""Standard input and output of a script that runs inside the serving process.

Descriptor 1 is a memory file for the worker's life: what a child process, ``os.write`` or C code puts there is taken
into the reply, before whatever ``sys.stdout`` gives later, as the pipe of a CGI process would have ordered it.

``ObjectStdio`` replaces the objects only; ``DescriptorStdio`` gives the body to descriptor 0 as well, for scripts whose
child processes read it. Knows replies and exchanges; no wire.
"""

from __future__ import annotations

import io
import os
import stat
import sys

from gateways.core.errors import ConnectionLost, GatewayError
from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

    from gateways.core.interfaces import Exchange
    from gateways.execution.reply import Reply
    from gateways.execution.scriptlog import ScriptLog

_PIECE = 65536


class OutputDescriptor:
    """Descriptor 1 as a memory file, and the bytes that were put there."""

    __slots__ = ()

    def __init__(self) -> None:
        self.replace()

    def replace(self) -> None:
        """Put a new memory file at descriptor 1: a process that still holds the old one can no longer reach a reply."""
        descriptor = os.memfd_create("script-output")
        os.dup2(descriptor, 1, inheritable=True)
        os.close(descriptor)

    def take(self, receive: Callable[[bytes], object]) -> None:
        """Hand what was written to descriptor 1 to ``receive``, in pieces."""
        size = os.lseek(1, 0, os.SEEK_CUR)
        if not size:
            return
        offset = 0
        while piece := os.pread(1, _PIECE, offset):
            receive(piece)
            offset += len(piece)
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)


class ScriptOutput(io.RawIOBase):
    """What lies under ``sys.stdout``: each write reaches the reply of the run that is on."""

    def __init__(self, descriptor: OutputDescriptor) -> None:
        super().__init__()
        self.reply: Reply | None = None
        self.ending = False
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return 1: what is written there is taken too, so ``subprocess.run(..., stdout=sys.stdout)`` works."""
        return 1

    def write(self, data: Any, /) -> int:
        """Take bytes. Raise ``BrokenPipeError`` when the peer is gone, as the pipe of a CGI process would.

        A child that the script forked, and a stale object outside any run, write to descriptor 1 itself.
        """
        piece = bytes(data)
        reply = self.reply
        if reply is None or NOTES.forked:
            return os.write(1, piece)
        try:
            if os.lseek(1, 0, 1):
                self._descriptor.take(reply.write)
            reply.write(piece)
        except ConnectionLost as error:
            raise BrokenPipeError(32, "the client is gone") from error
        return len(piece)

    def commit(self) -> None:
        """Send what the reply holds: the script flushed."""
        reply = self.reply
        if reply is not None and not self.ending and not NOTES.forked:
            try:
                reply.flush()
            except ConnectionLost as error:
                raise BrokenPipeError(32, "the client is gone") from error


class FlushingWriter(io.BufferedWriter):
    """A ``BufferedWriter`` that tells a flush that was asked for from a buffer that was full."""

    def flush(self) -> None:
        super().flush()
        self.raw.commit()  # type: ignore[attr-defined]


class ScriptInput(io.RawIOBase):
    """What lies under ``sys.stdin``: the request body, ending at CONTENT_LENGTH."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._exchange.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class ScriptErrors(io.RawIOBase):
    """What lies under ``sys.stderr``: lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.log: ScriptLog | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.log is None:
            return os.write(2, data)
        self.log.write(bytes(data))
        return len(data)


class ObjectStdio:
    """The three objects, made once and used again by every run that left them as they were (5 us a run saved)."""

    __slots__ = (
        "_empty", "_encoding", "_errors", "_stderr", "_stderr_raw", "_stdin", "_stdout", "_stdout_raw", "_writer",
        "output",
    )  # fmt: skip

    def __init__(self) -> None:
        stream = sys.__stdout__
        self._encoding = (stream.encoding if stream is not None else None) or "utf-8"
        self._errors = (stream.errors if stream is not None else None) or "strict"
        move_input_away()
        self.output = OutputDescriptor()
        self._make_stdout()
        self._make_stderr()
        self._empty = self._make_empty()
        self._stdin: IO[str] = self._empty

    def _make_stdout(self) -> None:
        self._stdout_raw = ScriptOutput(self.output)
        self._writer = FlushingWriter(self._stdout_raw)
        self._stdout = io.TextIOWrapper(self._writer, self._encoding, self._errors, "\n")

    def _make_stderr(self) -> None:
        self._stderr_raw = ScriptErrors()
        writer = io.BufferedWriter(self._stderr_raw)
        self._stderr = io.TextIOWrapper(writer, self._encoding, "backslashreplace", "\n", line_buffering=True)

    def _make_empty(self) -> IO[str]:
        return io.TextIOWrapper(io.BytesIO(), self._encoding, self._errors, "\n")

    def make_input(self, exchange: Exchange, body: IO[bytes] | None) -> IO[str]:
        """Return ``sys.stdin`` for a run. ``body``: the spooled body, or ``None`` to read the exchange's."""
        if body is not None:
            return io.TextIOWrapper(body, self._encoding, self._errors, "\n")
        return io.TextIOWrapper(io.BufferedReader(ScriptInput(exchange)), self._encoding, self._errors, "\n")

    def enter(self, exchange: Exchange, reply: Reply, log: ScriptLog, body: IO[bytes] | None) -> None:
        """Put the script's objects into ``sys``."""
        raw = self._stdout_raw
        raw.reply = reply
        raw.ending = False
        self._stderr_raw.log = log
        if body is None and exchange.request.content_length == 0:
            self._stdin = self._empty
        else:
            self._stdin = self.make_input(exchange, body)
        sys.stdin = sys.__stdin__ = self._stdin  # type: ignore[misc, assignment]
        sys.stdout = sys.__stdout__ = self._stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stderr  # type: ignore[misc]

    def finish(self, reply: Reply) -> None:
        """Take what the script left unflushed, in its objects and at descriptor 1. Raise what the reply raises."""
        self._stdout_raw.ending = True
        if sys.stdout is not self._stdout:
            flush(sys.stdout)
        flush(self._stdout)
        flush(self._writer)
        flush(self._stderr)
        if not NOTES.forked:
            self.output.take(reply.write)

    def leave(self, fresh_descriptor: bool) -> None:
        """Forget the run; replace what the script closed, detached or set up otherwise.

        ``fresh_descriptor``: the run made child processes, and one of them may still hold descriptor 1.
        """
        if fresh_descriptor:
            self.output.replace()
        self._stdout_raw.reply = None
        self._stderr_raw.log = None
        if not is_untouched(self._stdout, self._encoding, self._errors, line_buffering=False):
            discard(self._stdout)
            self._make_stdout()
        if not is_untouched(self._stderr, self._encoding, "backslashreplace", line_buffering=True):
            discard(self._stderr)
            self._make_stderr()
        if self._stdin is not self._empty:
            discard(self._stdin)
        elif not is_untouched(self._empty, self._encoding, self._errors, line_buffering=False):
            self._empty = self._make_empty()
        self._stdin = self._empty


def is_untouched(stream: Any, encoding: str, errors: str, line_buffering: bool) -> bool:
    """True when a text stream is as it was made: open, attached, not reconfigured."""
    try:
        return (
            not stream.closed
            and stream.buffer is not None
            and stream.encoding == encoding
            and stream.errors == errors
            and stream.line_buffering is line_buffering
            and not stream.write_through
        )
    except ValueError:  # detached
        return False


def flush(stream: Any) -> None:
    """Flush a stream of the script's; one that is closed, detached or broken has nothing more to give."""
    try:
        stream.flush()
    except (AttributeError, GatewayError, OSError, ValueError):
        pass  # what the exchange raised is kept by the reply, which raises it again


def discard(stream: Any) -> None:
    """Close a stream that no run uses again; what it still holds is dropped with it."""
    try:
        stream.close()
    except (OSError, ValueError, GatewayError):
        pass


def move_input_away() -> None:
    """Put the null device at descriptor 0, so that a script's child process never reads the server's own input.

    A socket is left alone: a web server that starts us passes its listening socket there (FastCGI).
    """
    try:
        if stat.S_ISSOCK(os.fstat(0).st_mode):
            return
    except OSError:
        pass
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0, inheritable=True)
    if null:
        os.close(null)


class DescriptorStdio(ObjectStdio):
    """As ``ObjectStdio``, and descriptor 0 holds the request body during the run."""

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        super().__init__()
        self._saved = -1

    def enter(self, exchange: Exchange, reply: Reply, log: ScriptLog, body: IO[bytes] | None) -> None:
        self._saved = os.dup(0)
        descriptor = os.memfd_create("script-input") if body is None else body.fileno()
        os.dup2(descriptor, 0, inheritable=True)
        if body is None:
            os.close(descriptor)
        super().enter(exchange, reply, log, os.fdopen(0, "rb", closefd=False))

    def leave(self, fresh_descriptor: bool) -> None:
        super().leave(fresh_descriptor)
        if self._saved >= 0:
            os.dup2(self._saved, 0, inheritable=True)
            os.close(self._saved)
            self._saved = -1
