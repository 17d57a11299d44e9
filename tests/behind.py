"""What a configuration serves, behind a real front server or without one: one line for each way a test goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from gateways.config.reader import read_settings
from tests.fronts import front, open_folder
from tests.servers import Server, serving


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs are reached. ``port``: the front's, or our own without a front. ``server``: ours, unless the front
    starts the programs by itself."""

    port: int
    server: Server | None

    @property
    def authority(self) -> str:
        """``HOST:PORT`` as a client writes it."""
        return f"127.0.0.1:{self.port}"


def lack(reason: str) -> NoReturn:
    """Skip what cannot be run here; where everything must be there (CI=true) it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; and CI=true", pytrace=False)
    pytest.skip(reason)


@contextmanager
def serve_behind(
    configuration: str,
    name: str,
    wire: str,
    *,
    stream: bool = False,
    wanted: Sequence[str] = (),
    tolerated: Sequence[str] = (),
) -> Iterator[Place]:
    """Serve a configuration over a wire behind a front; with an empty ``name``, over HTTP directly.

    ``configuration``: its pool has the word ``{listen}`` where its address belongs. ``stream``: the front passes bodies
    on as they come. ``wanted``, ``tolerated``: see ``serving``. Afterwards no log may have any other complaint.
    """
    with tempfile.TemporaryDirectory(prefix="gateways-") as own:
        file = Path(own) / "gateways.toml"
        file.write_text(configuration.replace("{listen}", f"{wire}://127.0.0.1:0"))
        with serving(Path(own), "--config", str(file), bind=False, wanted=wanted, tolerated=tolerated) as server:
            if not name:
                yield Place(server.port, server)
                return
            file.write_text(configuration.replace("{listen}", f"{wire}://127.0.0.1:{server.port}"))
            with front(name, read_settings(str(file)), wire=wire, stream=stream) as running:
                yield Place(running.port, server)


@contextmanager
def start_by(configuration: str, name: str, way: str) -> Iterator[Place]:
    """Let a front start by itself what a configuration serves: ``way`` is ``"cgi"`` or ``"fastcgi"``."""
    with open_folder() as folder:
        file = folder / "gateways.toml"
        file.write_text(configuration.replace("{listen}", "127.0.0.1:1"))
        with front(name, read_settings(str(file)), spawn=way) as running:
            yield Place(running.port, None)
