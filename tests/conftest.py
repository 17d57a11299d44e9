"""Rules that hold for every test: what a ``front(name)`` mark means."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.servers import FOLDERS
from tests.process_server import Server, Start
from tests.support_matrix import add_up, format_matrix

PROGRAMS = {"spawn-fcgi": "spawn-fcgi", "lighttpd": "lighttpd", "apache": "apache2", "nginx": "nginx",
            "haproxy": "haproxy", "caddy": "caddy", "redis-server": "redis-server"}  # fmt: skip
"""Front or process manager -> its program."""


def find_program(name: str) -> str | None:
    """The path of a front's program, ``None`` where it is not installed. Debian keeps some outside a user's PATH."""
    return shutil.which(PROGRAMS.get(name, name), path=FOLDERS)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose front is missing; where everything must be there (CI=true) it fails."""
    for mark in item.iter_markers("front"):
        (name,) = mark.args
        if find_program(name) is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{name} is not installed, and CI=true", pytrace=False)
            pytest.skip(f"{name} is not installed")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print over which wires and behind which fronts the conformance table was held, if it was."""
    reports = [
        (report.user_properties, report.passed)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    ]
    cells = add_up(reports)
    if cells:
        terminalreporter.write_sep("=", "rows of the conformance table that hold, by front server and wire")
        for line in format_matrix(cells):
            terminalreporter.write_line(line)


@pytest.fixture
def front_program(request: pytest.FixtureRequest) -> str:
    """The path of the program that the test's ``front`` mark names."""
    mark = request.node.get_closest_marker("front")
    assert mark is not None, "the test has no front(name) mark"
    path = find_program(mark.args[0])
    assert path is not None
    return path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """What starts a supervisor of ``process_driver.py``; whatever is left of it is ended after the test."""
    servers: list[Server] = []

    def begin(
        addresses: tuple[str, ...] = ("127.0.0.1:0",), files: dict[str, str] | None = None, **limits: Any
    ) -> Server:
        servers.append(Server(tmp_path, addresses, limits, **(files or {})))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()
