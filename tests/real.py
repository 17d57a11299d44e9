"""The configurations of ``conf/real``: what their comments say, kept true by doing it.

Each begins with a comment: a line that says what the program is, fields (``Language:`` ...), and the commands that set
it up. A test runs those commands in a folder of its own that stands for ``/srv``. ``python -m tests.real`` prints what
``docs/real-programs.md`` says about all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.servers import ROOT

FOLDER = ROOT / "conf" / "real"
DATA = "/srv/"
"""Below it a configuration has all that it makes."""
LISTEN = 'Listen = "127.0.0.1:8000"\n'
WORKERS = 'ProcessManager = "static"\nMaxServers = 2\n'
NOT_FOR_TESTS = ("sudo ", "pip ")
"""How a command begins that changes the machine."""
STEP = "#     "
DEADLINE = 120


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program that no one here wrote. ``name``: its configuration's; ``about``: one line; ``steps``: shell commands;
    ``ways``: pairs (front server, wire), the first of them no front server and http."""

    name: str
    about: str
    language: str
    packages: dict[str, list[str]]
    needs: list[str]
    ways: list[tuple[str, str]]
    found: str
    steps: list[str]
    text: str

    @property
    def mounts(self) -> list[tuple[str, str]]:
        """(path, model) of each mount of the program; model ``""`` where the target decides."""
        (pool,) = tomllib.loads(self.text)["pool"].values()
        return [(mount["Path"], mount.get("Model", "")) for mount in pool["Mount"] if "apps/" not in mount["Target"]]

    @property
    def models(self) -> list[str]:
        """The execution models that it is run by; a program that is no Python file has ``cgi`` only."""
        return [model or "cgi" for _, model in self.mounts]

    def find_missing(self) -> list[str]:
        """The packages that are not here, as somebody would install them."""
        missing = [f"pip install {name}" for name in self.packages.get("PyPI", []) if not has_distribution(name)]
        return missing + [
            f"apt-get install {name}" for name in self.packages.get("Debian", []) if not has_package(name)
        ]

    def set_up(self, folder: Path) -> str:
        """Do what the comment says, with ``folder`` for ``/srv``; return the configuration with ``{listen}`` in it."""
        moved = self.text.replace(DATA, f"{folder}/").replace('"../../', f'"{ROOT}/')
        for name in sorted(set(re.findall(rf"{DATA}(\w+)", self.text))):
            (folder / name).mkdir(parents=True, exist_ok=True)
        commands = "\n".join(self.steps).replace(DATA, f"{folder}/")
        done = subprocess.run(
            ["sh", "-eu"], input=commands.encode(), cwd=ROOT, env=format_environment(folder), capture_output=True,
            timeout=DEADLINE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {done.stdout.decode()}{done.stderr.decode()}"
        assert moved.count(LISTEN) == 1
        return moved.replace(LISTEN, f'Listen = "{{listen}}"\n{WORKERS}')


def format_environment(home: Path) -> dict[str, str]:
    """The environment of someone whose home is ``home``, and who has the interpreter's own programs first."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    return {"PATH": path, "HOME": str(home), "USER": "nobody", "LANG": "C.UTF-8", "HGRCPATH": ""}


def has_package(name: str) -> bool:
    """True when Debian's package is installed."""
    if shutil.which("dpkg-query") is None:
        return False
    asked = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name], capture_output=True, check=False
    )
    return asked.stdout == b"installed"


def has_distribution(name: str) -> bool:
    """True when PyPI's package is installed."""
    import importlib.metadata

    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def parse_program(name: str, text: str) -> Program:
    """Return what a configuration says of itself; raise ``ValueError`` or ``KeyError`` for one that does not."""
    lines = text.partition("\n[")[0].splitlines()
    fields: dict[str, str] = {}
    key = ""
    for line in lines[1:]:
        if match := re.fullmatch(r"# ([A-Z][a-z]+): +(\S.*)", line):
            key = match[1]
            fields[key] = match[2]
        elif key and (match := re.fullmatch(r"# {9,}(\S.*)", line)):
            fields[key] += f" {match[1]}"
        else:
            key = ""
    ways = [("", "http"), *(tuple(way.split()) for way in fields["Behind"].split(", "))]
    return Program(
        name, lines[0].removeprefix("# "), fields["Language"], parse_packages(fields["Packages"]),
        fields.get("Needs", "").split(),
        [(front, wire) for front, wire in ways], fields["Found"], list_steps(lines), text,
    )  # fmt: skip


def parse_packages(text: str) -> dict[str, list[str]]:
    """``PyPI a, Debian b, c`` -> {"PyPI": ["a"], "Debian": ["b", "c"]}."""
    packages: dict[str, list[str]] = {}
    source = ""
    for item in text.split(", "):
        *new, name = item.split()
        source = new[0] if new else source
        packages.setdefault(source, []).append(name)
    return packages


def list_steps(lines: list[str]) -> list[str]:
    """The commands below ``Once:`` up to the next text, without those that change the machine."""
    steps = []
    for line in lines[lines.index("# Once:") + 2 :]:
        if not line.startswith(STEP):
            break
        steps.append(line.removeprefix(STEP))
    return [step for step in steps if not step.startswith(NOT_FOR_TESTS)]


def read_programs() -> dict[str, Program]:
    """Every configuration of ``conf/real``, by its name."""
    return {path.stem: parse_program(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


def format_table(programs: dict[str, Program]) -> str:
    """What the documentation says about them."""
    lines = ["| program | written in | from | execution models | behind |", "|---|---|---|---|---|"]
    findings = []
    for program in programs.values():
        title, _, about = program.about.rstrip(".").partition(": ")
        sources = "; ".join(f"{source}: {', '.join(names)}" for source, names in program.packages.items())
        models = ", ".join(f"`{model}`" for model in program.models)
        ways = "; ".join(format_ways(program.ways[1:]))
        link = f"[{title}](../conf/real/{program.name}.toml)"
        lines.append(f"| {link}: {about} | {program.language} | {sources} | {models} | {ways} |")
        if program.found != "-":
            findings += textwrap.wrap(f"- {title}: {program.found}", 120, subsequent_indent="  ")
    return "\n".join([*lines, "", *findings]) + "\n"


def format_ways(ways: list[tuple[str, str]]) -> list[str]:
    """``apache: http, ajp`` for each front server."""
    fronts = dict.fromkeys(front for front, _ in ways)
    return [f"{front}: {', '.join(wire for name, wire in ways if name == front)}" for front in fronts]


if __name__ == "__main__":
    sys.stdout.write(format_table(read_programs()))
