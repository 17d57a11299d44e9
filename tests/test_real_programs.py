"""Programs that no one here wrote, as they come from Debian and PyPI: each set up as its configuration says, and
visited in every execution model that it names, with and without a front server."""

from __future__ import annotations

import functools
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.behind import Place, lack, serve_behind
from tests.browser import Browser
from tests.real import Program, format_table, parse_program, read_programs
from tests.servers import ROOT

pytest.register_assert_rewrite("tests.visits")

from tests.visits import TALKS, VISITS, Visit  # noqa: E402 - after what says that it is a test

PROGRAMS = read_programs()
LEAKS = r"leaves \d+ descriptors? open in each run, as far as was seen$"
"""What is said of a script that does, inside a worker: Trac's keeps its database's."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """What stands for /srv."""
    with tempfile.TemporaryDirectory(prefix="gateways-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def configurations(folder: Path) -> Callable[[Program], str]:
    """What sets a program up when it is first asked for, and gives what serves it."""

    @functools.cache
    def set_up(program: Program) -> str:
        return program.set_up(folder)

    return set_up


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, configurations: Callable[[Program], str], folder: Path) -> Iterator[Place]:
    """A program that is served some way."""
    program, (front, wire) = request.param
    if missing := program.find_missing():
        lack(f"{program.name} is not here: {'; '.join(missing)}")
    talk = [TALKS[program.name]] if program.name in TALKS else []
    with serve_behind(configurations(program), front, wire, tolerated=[*talk, LEAKS]) as made:
        for file in folder.glob("roundup/*/config.ini"):
            file.write_text(replace_authority(file.read_text(), made.authority))
        yield made


def replace_authority(text: str, authority: str) -> str:
    """A tracker's configuration with the place where it is now."""
    lines = [
        f"web = http://{authority}/{line.split('/', 3)[3]}" if line.startswith("web = ") else line
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


def list_cases() -> list[object]:
    """Every program in every model directly, and behind each of its front servers in one of the two fastest, in turn:
    what a front server does to a request is the same for all. What shares a server stands together."""
    cases: list[object] = []
    for program in (PROGRAMS[name] for name in VISITS):
        for number, way in enumerate(program.ways):
            fastest = program.mounts[-2:]
            served = (program, way)
            name = f"{program.name}-{'-'.join(way) if way[0] else 'direct'}"
            marks = [pytest.mark.front(way[0])] if way[0] else []
            for path, model in [fastest[number % len(fastest)]] if way[0] else program.mounts:
                cases.append(pytest.param(served, (*served, path), id=f"{name}-{model or 'cgi'}", marks=marks))
    return cases


@pytest.mark.parametrize(("place", "visited"), list_cases(), indirect=["place"], scope="module")
def test_a_visit(place: Place, visited: tuple[Program, object, str], folder: Path, tmp_path: Path) -> None:
    program, _, prefix = visited
    VISITS[program.name](Visit(place, prefix, folder, tmp_path, Browser(place.authority)))


# What is written about them.


def test_the_documentation_lists_them() -> None:
    text = (ROOT / "docs" / "real-programs.md").read_text()
    assert format_table(PROGRAMS) in text, "python -m tests.real prints what belongs there"


def test_every_program_is_visited_and_what_it_needs_is_installed() -> None:
    """``git`` has a test file of its own."""
    assert set(VISITS) | {"git"} == set(PROGRAMS)
    assert {language.split()[0].rstrip(",") for language in (program.language for program in PROGRAMS.values())} == {
        "C", "Perl", "Python", "shell",
    }  # fmt: skip
    assert all(len(program.ways) > 1 for program in PROGRAMS.values())
    script = (ROOT / ".ci" / "run").read_text()
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["real"]
    for program in PROGRAMS.values():
        for name in program.packages.get("Debian", []):
            assert re.search(rf"^(packages|programs)=\(.*\b{re.escape(name)}(?=[ )]).*\)", script, re.MULTILINE), name
        for name in program.packages.get("PyPI", []):
            assert any(re.match(rf"{name}\b", line) for line in extra), name


def test_a_configuration_says_how_it_is_set_up() -> None:
    program = parse_program("one", ONE)
    assert (program.about, program.language, program.found) == ("One: a program.", "C", "It is one, and no more.")
    assert program.packages == {"PyPI": ["one"], "Debian": ["two", "three"]}
    assert program.ways == [("", "http"), ("nginx", "scgi"), ("apache", "ajp")]
    assert program.steps == ["mkdir /srv/one", "cat > /srv/one/x << 'END'", "  y", "END"]


ONE = """# One: a program.
#
# Language:  C
# Packages:  PyPI one, Debian two, three
# Behind:    nginx scgi,
#            apache ajp
# Found:     It is one,
#            and no more.
#
# Once:
#
#     sudo apt-get install two three
#     pip install one
#     mkdir /srv/one
#     cat > /srv/one/x << 'END'
#       y
#     END
#
# Then:
#
#     gateways serve
[pool.one]
"""
