"""Standard input and output of a script that runs inside the serving process.

Descriptor 1 is a memory file for the worker's life: what a child process, ``os.write`` or C code puts there is taken
into the reply, before whatever ``sys.stdout`` gives later, as the pipe of a CGI process would have ordered it.

The objects alone are replaced, or descriptor 0 holds the body as well, for scripts whose child processes read it.
Knows replies and exchanges; no wire.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from fcntl import F_DUPFD_CLOEXEC, F_GETFD, fcntl
from os import SEEK_CUR, dup2, lseek

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
_empty_buffer = io.BufferedWriter.flush
_shared: list[ScriptStdio] = []


class OutputDescriptor:
    """Descriptor 1 as a memory file, and the bytes that were put there. ``kept``: the same file, under a number that no
    script knows: what it wrote is still there when it has closed descriptor 1, as ``open(1, "w")`` does."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept = -1
        self.replace()

    def replace(self) -> None:
        """Put a new memory file at descriptor 1: a process that still holds the old one can no longer reach a reply."""
        descriptor = os.memfd_create("script-output")
        if self.kept < 0:
            self.kept = keep_descriptor(descriptor)
        else:
            dup2(descriptor, self.kept, inheritable=False)
        os.close(descriptor)
        dup2(self.kept, 1, inheritable=True)

    def is_written(self) -> bool:
        """True when something was written to descriptor 1 (0.2 us)."""
        return lseek(self.kept, 0, SEEK_CUR) != 0

    def take(self, receive: Callable[[bytes], object]) -> None:
        """Hand what was written to descriptor 1 to ``receive``, in pieces."""
        kept = self.kept
        size = os.lseek(kept, 0, os.SEEK_END)
        offset = 0
        while offset < size and (piece := os.pread(kept, min(_PIECE, size - offset), offset)):
            receive(piece)
            offset += len(piece)
        os.ftruncate(kept, 0)
        os.lseek(kept, 0, os.SEEK_SET)


class ScriptOutput(io.RawIOBase):
    """What lies under ``sys.stdout``: each write reaches the reply of the run that is on.

    ``reply``: ``None`` between runs. ``ending``: flushing means no hurry any more. ``touched``: the script closed,
    detached or reconfigured something that stands on this. ``closing``: ``sys.stdout`` itself is being closed.
    """

    def __init__(self, descriptor: OutputDescriptor) -> None:
        super().__init__()
        self.reply: Reply | None = None
        self.ending = False
        self.touched = self.closing = False
        self.writer: ScriptWriter | None = None
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return 1: what is written there is taken too, so ``subprocess.run(..., stdout=sys.stdout)`` works."""
        return 1

    def write(self, data: Any, /) -> int:
        """Take bytes. Raise ``BrokenPipeError`` when the peer is gone, as the pipe of a CGI process would."""
        piece = bytes(data)
        reply = self.reply
        if reply is None:  # somebody kept the object: an error stream between runs, nothing after its last
            return len(piece) if self.touched else os.write(2, piece)
        if NOTES.forked:
            return os.write(1, piece)
        try:
            if self._descriptor.is_written():
                self._descriptor.take(reply.write)
            reply.write(piece)
        except ConnectionLost as error:
            raise BrokenPipeError(32, "the client is gone") from error
        return len(piece)

    def commit(self) -> None:
        """Send what the reply holds: the script flushed."""
        reply = self.reply
        if self.ending or reply is None or NOTES.forked:
            return
        try:
            reply.flush()
        except ConnectionLost as error:
            raise BrokenPipeError(32, "the client is gone") from error


class ScriptWriter(io.BufferedWriter):
    """The buffer under ``sys.stdout``: tells a flush that was asked for from a buffer that was full."""

    raw: ScriptOutput

    def flush(self) -> None:
        _empty_buffer(self)  # ``super()`` costs as much as the call (`bench models`)
        raw = self.raw
        if not raw.ending:
            raw.commit()

    def close(self) -> None:
        """Close, when ``sys.stdout`` is closed; a script's own object on top of this one only ends (C17)."""
        if self.raw.closing:
            super().close()
        else:
            _empty_buffer(self)

    def detach(self) -> io.RawIOBase:
        self.raw.touched = True
        return super().detach()


class ScriptReader(io.BufferedReader):
    """The buffer under ``sys.stdin``."""

    raw: ScriptInput

    def close(self) -> None:
        """See ``ScriptWriter``."""
        if self.raw.closing:
            super().close()


class ScriptText(io.TextIOWrapper):
    """``sys.stdout`` and ``sys.stdin``: notes what would make it unfit for the next run."""

    buffer: Any

    def close(self) -> None:
        raw = self.buffer.raw
        raw.touched = raw.closing = True
        super().close()

    def detach(self) -> Any:
        self.buffer.raw.touched = True
        return super().detach()

    def reconfigure(self, **settings: Any) -> None:
        self.buffer.raw.touched = True
        super().reconfigure(**settings)


class ScriptInput(io.RawIOBase):
    """What lies under ``sys.stdin``: the request body of the run that is on, ending at CONTENT_LENGTH.

    ``read_body``: gives at most so many bytes of it, none at its end; ``None`` for no body, and between runs.
    ``touched``, ``closing``: see ``ScriptOutput``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read_body: Callable[[int], bytes] | None = None
        self.touched = self.closing = False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return 0 if the body can be read there."""
        if self.read_body is not read_descriptor:
            raise io.UnsupportedOperation("descriptor 0 does not hold the body: that takes Stdio = descriptor")
        return 0

    def readinto(self, buffer: Any, /) -> int:
        if self.read_body is None:
            return 0
        data = self.read_body(len(buffer))
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

    def close(self) -> None:
        """Nothing: see ``ScriptWriter``."""


class ScriptStdio:
    """The three objects, made once and used again by every run that left them as they were (5 us a run saved).

    One for all mounts of a process, as imported modules are: a module that took one of the objects when it was
    imported, as Mercurial does, has that of the run that is on, whichever mount it is for.
    """

    __slots__ = (
        "_encoding", "_errors", "_input", "_own", "_raw", "_saved", "_stderr", "_stderr_raw", "_stdin", "_stdout",
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
        self._make_stdin()
        self._saved = -1
        self._own = [(number, keep_descriptor(number)) for number in (0, 2) if not is_socket(number)]

    def _make_stdout(self) -> None:
        self._raw = ScriptOutput(self.output)
        self._raw.writer = ScriptWriter(self._raw)
        self._stdout = ScriptText(self._raw.writer, self._encoding, self._errors, "\n")

    def _make_stderr(self) -> None:
        self._stderr_raw = ScriptErrors()
        buffer: Any = self._stderr_raw
        self._stderr = io.TextIOWrapper(buffer, self._encoding, "backslashreplace", "\n", write_through=True)

    def _make_stdin(self) -> None:
        self._input = ScriptInput()
        self._stdin = ScriptText(ScriptReader(self._input), self._encoding, self._errors, "\n")

    def enter(
        self, exchange: Exchange, reply: Reply, log: ScriptLog, body: IO[bytes] | None, as_descriptor: bool
    ) -> None:
        """Put the script's objects into ``sys``. ``body``: the spooled body, ``None`` to read the exchange's own.

        ``as_descriptor``: descriptor 0 holds the body, which is spooled if there is any.
        """
        if self.output.is_written():  # by another application of this worker, or a thread: no part of a script's reply
            self.output.take(write_error)
        raw = self._raw
        raw.reply = reply
        raw.ending = False
        self._stderr_raw.log = log
        if as_descriptor:
            self._enter_descriptor(body)
        elif body is not None:
            self._input.read_body = body.read
        elif exchange.request.content_length:
            self._input.read_body = exchange.read
        self._show()

    def _show(self) -> None:
        sys.stdin = sys.__stdin__ = self._stdin  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = self._stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stderr  # type: ignore[misc]

    def finish(self, reply: Reply) -> None:
        """Take what the script left unflushed, in its objects and at descriptor 1; the reply keeps what goes wrong.

        Objects of its own in the place of ours end here: an end later on would be in another's run.
        """
        raw = self._raw
        raw.ending = True
        if sys.stdout is not self._stdout or raw.touched:
            flush(sys.stdout)
            self._show()
            flush(raw.writer)
        else:
            self._show()
        if not flush(self._stdout):
            raw.touched = True
        if self.output.is_written() and not NOTES.forked:
            try:
                self.output.take(reply.write)
            except GatewayError:
                self.output.replace()

    def leave(self, fresh_descriptor: bool) -> None:
        """Forget the run; replace what the script closed, detached or set up otherwise.

        ``fresh_descriptor``: the run made child processes, and one of them may still hold descriptor 1.
        """
        if fresh_descriptor:
            self.output.replace()
        raw = self._raw
        raw.reply = self._stderr_raw.log = None
        if raw.touched:
            self._make_stdout()
        if not is_untouched(self._stderr, "backslashreplace"):
            discard(self._stderr)
            self._make_stderr()
        self._leave_stdin()
        if self._saved >= 0:
            dup2(self._saved, 0, inheritable=True)
            os.close(self._saved)
            self._saved = -1
        if NOTES.opened or NOTES.redirected or is_closed(0) or is_closed(1) or is_closed(2):
            self._mend_descriptors()

    def _mend_descriptors(self) -> None:
        """Put back what the script closed, or put something else in the place of."""
        for number, kept in (*self._own, (1, self.output.kept)):
            if is_closed(number) or not os.path.sameopenfile(number, kept):
                dup2(kept, number, inheritable=True)

    def _enter_descriptor(self, body: IO[bytes] | None) -> None:
        self._saved = os.dup(0)
        descriptor = os.memfd_create("script-input") if body is None else body.fileno()
        dup2(descriptor, 0, inheritable=True)
        if body is None:
            os.close(descriptor)
        self._input.read_body = read_descriptor

    def _leave_stdin(self) -> None:
        source = self._input
        had_body = source.read_body is not None
        source.read_body = None
        if source.touched or not is_untouched(self._stdin, self._errors) or (had_body and not drain(self._stdin)):
            self._make_stdin()


def share_stdio() -> ScriptStdio:
    """Return the one of this process, made when first asked for: from then on descriptors 0 and 1 are the scripts'."""
    if not _shared:
        _shared.append(ScriptStdio())
    return _shared[0]


def is_untouched(stream: io.TextIOWrapper, errors: str) -> bool:
    """True when a text stream is as it was made: open, attached, its error handling the same."""
    try:
        return not stream.closed and stream.errors == errors
    except ValueError:  # detached
        return False


def keep_descriptor(descriptor: int) -> int:
    """Return another number for what a descriptor stands for, beyond the standard ones and not for child processes."""
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 3)


def is_closed(descriptor: int) -> bool:
    """True when a descriptor is not open."""
    try:
        fcntl(descriptor, F_GETFD)
    except OSError:
        return True
    return False


def is_socket(descriptor: int) -> bool:
    """True for a socket, and for what is not open."""
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return True


def write_error(data: bytes) -> None:
    """Write to descriptor 2."""
    os.write(2, data)


def flush(stream: Any) -> bool:
    """Flush a stream of the script's; False for one that is closed, detached or broken and has nothing more to give.

    What the exchange raised is kept by the reply, which raises it again.
    """
    try:
        stream.flush()
    except (AttributeError, GatewayError, OSError, ValueError):
        return False
    return True


def drain(stream: io.TextIOWrapper) -> bool:
    """Drop what a stream that is at its end still holds of a body; False when that cannot be done."""
    try:
        stream.read()
    except (OSError, ValueError):
        return False
    return True


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
    if not is_closed(0) and is_socket(0):
        return
    null = os.open(os.devnull, os.O_RDONLY)
    dup2(null, 0, inheritable=True)
    if null:
        os.close(null)


def read_descriptor(size: int) -> bytes:
    """Read descriptor 0."""
    return os.read(0, size)
