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
