"""A request body taken whole before the script begins: to learn its length, or to give it a descriptor.

Knows exchanges and temporary files.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from gateways.core.interfaces import Exchange

_IN_MEMORY = 1 << 20
_PIECE = 65536


class RequestBody:
    """The body of an exchange with a known length, as CGI needs it (RFC 3875 4.1.2): used in a ``with`` statement.

    ``length``: bytes. ``owed``: those of them that the peer has not been asked for yet. ``file``: the spooled body, or
    ``None`` when the request told its length and nothing was read.
    ``needs_file``: spool in any case, unless the body is empty.
    """

    __slots__ = ("_exchange", "file", "length", "owed")

    def __init__(self, exchange: Exchange, needs_file: bool = False) -> None:
        self._exchange = exchange
        self.file: IO[bytes] | None = None
        length = exchange.request.content_length
        if length is None or (needs_file and length):
            self.file, length = read_spooled(exchange)
        self.length = length
        self.owed = length if self.file is None else 0

    def read(self, size: int) -> bytes:
        """Return the next bytes of the body, at most ``size``; ``b""`` at its end."""
        if self.file is not None:
            return self.file.read(size)
        data = self._exchange.read(size)
        self.owed -= len(data)
        return data

    def __enter__(self) -> RequestBody:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.file is not None:
            self.file.close()


def read_spooled(exchange: Exchange) -> tuple[IO[bytes], int]:
    """Return (file at its beginning, bytes in it) for the exchange's body.

    A memory file up to 1 MiB, then a temporary file without a name. Raises what ``exchange.read`` raises.
    """
    file: IO[bytes] = open(os.memfd_create("script-input"), "w+b")  # noqa: SIM115 - the caller closes it
    length = 0
    try:
        while piece := exchange.read(_PIECE):
            if length <= _IN_MEMORY < length + len(piece):
                file = _move_to_disk(file)
            file.write(piece)
            length += len(piece)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file, length


def _move_to_disk(file: IO[bytes]) -> IO[bytes]:
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    disk = TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.seek(0)
    copyfileobj(file, disk)
    file.close()
    return disk
