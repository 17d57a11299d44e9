"""A mount's Environment where a front server starts the mount's program by itself: the same variables reach it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateways.config.reader import read_settings
from gateways.core.errors import ConfigurationError
from gateways.fronts.table import Wishes, format_front
from tests.fronts import copy_package, front, open_folder, write_program

PROGRAM = """#!/usr/bin/env python3
import json
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({name: environ[name] for name in sorted(environ) if name.startswith("X_")}).encode()]
if __name__ == "__main__":
    import gateways
    gateways.run(application)
"""
CONFIGURATION = """
[pool.main]
Listen = ["127.0.0.1:1"]
StartServers = 1
[[pool.main.Mount]]
Path = "/"
Target = "{program}"
Environment = {{ X_ONE = 'a "b" \\ c', X_TWO = "$HOME %{{x}} # é" }}
[[pool.main.Mount]]
Path = "/mount"
Target = "{program}"
Environment = {{ X_TWO = "two" }}
[[pool.main.Mount]]
Path = "/mount/bare"
Target = "{program}"
"""
SEEN = {
    "/": {"X_ONE": 'a "b" \\ c', "X_TWO": "$HOME %{x} # \xc3\xa9"},
    "/mount": {"X_TWO": "two"},
    "/mount/bare/x": {},
}


@pytest.mark.parametrize("way", ["cgi", "fastcgi"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.front(name)) for name in ("apache", "lighttpd")])
def test_a_spawned_program_has_its_mounts_variables(name: str, way: str) -> None:
    with open_folder() as folder:
        (folder / "source.py").write_text(PROGRAM)
        command = copy_package(folder)
        program = write_program(folder / "program.py", folder / "source.py", command)
        file = folder / "gateways.toml"
        file.write_text(CONFIGURATION.format(program=program))
        with front(name, read_settings(str(file)), spawn=way, command=command) as running:
            for path, seen in SEEN.items():
                answer = running.exchange(f"GET {path} HTTP/1.0\r\nHost: h\r\n\r\n".encode())
                assert json.loads(answer.partition(b"\r\n\r\n")[2]) == seen, path


@pytest.mark.parametrize("value", ["a\\nb", "${HOME}"])
def test_what_a_front_cannot_be_told_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "program.py").chmod(0o755)
    text = CONFIGURATION.format(program=tmp_path / "program.py").replace('"two"', f'"{value}"')
    (tmp_path / "gateways.toml").write_text(text)
    with pytest.raises(ConfigurationError, match="apache cannot be told X_TWO of Environment"):
        format_front("apache", read_settings(str(tmp_path / "gateways.toml")), Wishes(spawn="cgi"))
