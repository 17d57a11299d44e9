"""One serving process without a supervisor, for tests of a wire on real sockets.

``python -m tests.loop_process gateways.wire.scgi:SCGIWire ADDRESS`` serves ``tests/apps/probe.py`` on a UNIX socket, or
on a port of 127.0.0.1 when ADDRESS is ``tcp``, until its standard input ends. It says where on standard output.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from tests.servers import DEADLINE, ROOT


class LoopProcess:
    """The running process, as a test sees it."""

    def __init__(self, address: str | tuple[str, int], log: Path) -> None:
        self.address = address
        self.log = log

    def connect(self) -> socket.socket:
        """A connection with a deadline on each operation."""
        sock = socket.socket(socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET)
        sock.settimeout(DEADLINE)
        sock.connect(self.address)
        return sock

    def exchange(self, data: bytes) -> bytes:
        """Send bytes on a new connection and return everything up to its end; a reset is an error."""
        answer, reset = self.exchange_to_cut(data)
        if reset:
            raise ConnectionResetError
        return answer

    def exchange_to_cut(self, data: bytes) -> tuple[bytes, bool]:
        """Send bytes on a new connection; return everything up to its end, and whether that was a reset."""
        pieces = []
        with self.connect() as sock:
            sock.sendall(data)
            try:
                while piece := sock.recv(65536):
                    pieces.append(piece)
            except ConnectionResetError:
                return b"".join(pieces), True
        return b"".join(pieces), False


@contextmanager
def looping(folder: Path, wire: str, address: str = "", wanted: Sequence[str] = ()) -> Iterator[LoopProcess]:
    """Run the process; afterwards end it and assert a clean log. ``wanted``: complaints that must occur, and may."""
    log = folder / "error.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.loop_process", wire, address or str(folder / "socket")],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = process.stdout.readline().decode().strip()
        assert said, log.read_text()
        yield LoopProcess(("127.0.0.1", int(said)) if said.isdigit() else said, log)
        process.stdin.close()
        assert process.wait(DEADLINE) == 0, log.read_text()
        lines = [line for line in log.read_text().splitlines() if not line.startswith("INFO")]
        for pattern in wanted:
            assert any(re.search(pattern, line) for line in lines), f"no {pattern!r} in {lines}"
        assert [line for line in lines if not any(re.search(pattern, line) for pattern in wanted)] == []
    finally:
        process.stdin.close()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


class _Slot:
    """A scoreboard line that nobody reads."""

    def idle(self) -> None: ...
    def busy(self) -> None: ...

    def begin(self, method: str, target: str) -> None: ...
    def closing(self) -> None: ...
    def count_request(self, status: str) -> None: ...
    def count_refusal(self) -> None: ...


def main(wire: str, address: str) -> None:
    """Serve until standard input ends."""
    from gateways.core.limits import TimeLimits, WireLimits
    from gateways.core.mounts import Mount, MountTable
    from gateways.core.request import Endpoint
    from gateways.execution.loading import make_loader
    from gateways.execution.wsgi import WSGIModel
    from gateways.serve.listener import Listener
    from gateways.serve.loop import ConnectionLoop

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    module, _, name = wire.partition(":")
    factory = getattr(import_module(module), name)
    model = WSGIModel(make_loader(str(ROOT / "tests/apps/probe.py"), "", "application"))
    model.load()
    sock = socket.socket(socket.AF_INET if address == "tcp" else socket.AF_UNIX)
    sock.bind(("127.0.0.1", 0) if address == "tcp" else address)
    sock.listen()
    endpoint, limits = Endpoint("server.example", "8080"), WireLimits()
    listener = Listener(sock, lambda peer: factory(endpoint, peer, limits))
    loop = ConnectionLoop(
        [listener], MountTable([Mount("", model)]), TimeLimits(head=5.0), _Slot(), logging.getLogger("gateways")
    )

    def end() -> None:
        os.read(0, 1)
        if not loop.stop_kind:
            loop.stop("stop")

    loop.watch(0, end)
    print(sock.getsockname()[1] if address == "tcp" else address, flush=True)
    loop.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
