"""The peers table: servers of others, how each is installed in an environment of its own, started and stopped.

Knows ``bench/peers.toml``, virtual environments and pip; nothing of loads or rounds. A peer that is not installed is
missing, with how to install it, and never an error.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.servers import FOLDERS, Recipe
from bench.speeches import SPEECHES

TABLE = Path(__file__).with_name("peers.toml")
FOLDER = Path(".venv-peers")
STAMP = "installed"
ORIGINALS = Path(__file__).with_name("originals")
KEYS = frozenset({"label", "install", "needs", "ready", "stop", "keeps", "start"})
MORE_KEYS = frozenset({"from", "check", "files", "copies"})
CHECK_SECONDS = 20.0
SOURCES = ("pypi", "debian")
FILLED_IN = (".conf", ".ini")
"""Suffixes of a peer's files in which @folder@, @port@ and @workers@ are replaced."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One row. ``start``: wire -> command line; ``keeps``: wires whose connections carry more than one request.

    ``source``: ``pypi`` (installed into an environment of its own) or ``debian`` (installed by the reader). ``check``:
    command lines that succeed where it is there. ``files``: a folder of ``bench/originals`` that is copied into the
    folder that it runs in; ``copies``: files that are copied there as well.
    """

    name: str
    label: str
    install: tuple[str, ...]
    needs: str
    ready: str
    stop: signal.Signals
    keeps: frozenset[str]
    start: dict[str, str]
    source: str = "pypi"
    check: tuple[str, ...] = ()
    files: str = ""
    copies: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The peer's environment."""
        return FOLDER / self.name

    def format_command(self, wire: str, port: int, folder: str = "", workers: int = 1) -> list[str]:
        """Return the command line that serves a wire on a port, with its files in ``folder``."""
        places = {"bin": shlex.quote(str(self.folder / "bin")), "python": shlex.quote(sys.executable)}
        return shlex.split(self.start[wire].format(**places, port=port, folder=folder, workers=workers))

    def make_recipe(self, wire: str, folder: str = "", workers: int = 1) -> Recipe:
        """Return how to start the peer for one wire."""
        return Recipe(
            f"{self.name}-{wire}", self.label, lambda port: self.format_command(wire, port, folder, workers),
            lambda: find_missing(self), self.ready, wire, self.stop,
            lambda port: self.write_files(Path(folder), port, workers),
        )  # fmt: skip

    def write_files(self, folder: Path, port: int, workers: int) -> None:
        """Copy the peer's files into the folder that it runs in, with what is known now filled in."""
        if self.files:
            shutil.copytree(ORIGINALS / self.files, folder, dirs_exist_ok=True)
        for copy in self.copies:
            shutil.copy(copy, folder)
        values = {"folder": str(folder), "port": str(port), "workers": str(workers), "python": sys.executable}
        for file in folder.iterdir() if self.files else ():
            if file.suffix in FILLED_IN:
                text = file.read_text(encoding="utf-8")
                for name, value in values.items():
                    text = text.replace(f"@{name}@", value)
                file.write_text(text, encoding="utf-8")


def parse_peers(text: str) -> list[Peer]:
    """Return the rows of a peers table; raise ``ValueError`` with one sentence for what is wrong in it."""
    return [parse_peer(name, row) for name, row in tomllib.loads(text).items()]


def parse_peer(name: str, row: dict[str, Any]) -> Peer:
    """Return one row; raise ``ValueError``."""
    if not isinstance(row, dict) or row.keys() - MORE_KEYS != KEYS:
        known = f"{', '.join(sorted(KEYS))}, and maybe {', '.join(sorted(MORE_KEYS))}"
        raise ValueError(f"{name}: a peer has exactly the entries {known}")
    if row.get("from", "pypi") not in SOURCES:
        raise ValueError(f"{name}: from is none of {', '.join(SOURCES)}: {row['from']!r}")
    if unknown := sorted((row["start"].keys() | set(row["keeps"])) - SPEECHES.keys()):
        raise ValueError(f"{name}: {unknown[0]!r} is none of {', '.join(SPEECHES)}")
    if f"SIG{row['stop']}" not in signal.Signals.__members__:
        raise ValueError(f"{name}: stop is no signal: {row['stop']!r}")
    if not row.get("files") and (missing := [wire for wire, line in row["start"].items() if "{port}" not in line]):
        raise ValueError(f"{name}: the command for {missing[0]} does not say {{port}}")
    return Peer(
        name, row["label"], tuple(row["install"]), row["needs"], row["ready"], signal.Signals[f"SIG{row['stop']}"],
        frozenset(row["keeps"]), dict(row["start"]), row.get("from", "pypi"), tuple(row.get("check", ())),
        row.get("files", ""), tuple(row.get("copies", ())),
    )  # fmt: skip


def read_peers(path: Path = TABLE) -> list[Peer]:
    """Return the rows of the peers table; raise ``OSError`` or ``ValueError``."""
    return parse_peers(path.read_text(encoding="utf-8"))


def find_missing(peer: Peer) -> str:
    """Return how to install a peer that is not installed as the table says, ``""`` for one that is."""
    if peer.source == "debian":
        there = all(map(succeeds, peer.check))
        return "" if there else f"not installed: apt-get install -y --no-install-recommends {' '.join(peer.install)}"
    try:
        installed = (peer.folder / STAMP).read_text(encoding="utf-8")
    except OSError:
        installed = ""
    return "" if installed == format_stamp(peer) else f"not installed: python -m bench peers install {peer.name}"


def succeeds(command: str) -> bool:
    """True when a command line ends well."""
    try:
        environment = {**os.environ, "PATH": FOLDERS}
        done = subprocess.run(shlex.split(command), capture_output=True, timeout=CHECK_SECONDS, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def format_stamp(peer: Peer) -> str:
    """Return what is written into an environment when it is complete."""
    return "\n".join(peer.install) + "\n"


def install_peer(peer: Peer, say: Callable[[str], None]) -> str:
    """Make a peer's environment anew; return what failed, ``""`` when nothing did."""
    shutil.rmtree(peer.folder, ignore_errors=True)
    pip = [str(peer.folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(peer.folder)], [*pip, *peer.install]):
        say(f"{peer.name}: {shlex.join(command)}")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            last = (done.stdout.strip().splitlines() or ["it printed nothing"])[-1]
            return f"{last}{f'; it needs {peer.needs}' if peer.needs else ''}"
    (peer.folder / STAMP).write_text(format_stamp(peer), encoding="utf-8")
    return ""


def choose_peers(peers: Sequence[Peer], names: Sequence[str]) -> list[Peer]:
    """Return the peers named, all when none is; raise ``ValueError`` for an unknown name."""
    if unknown := [name for name in names if name not in {peer.name for peer in peers}]:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(peer.name for peer in peers)}")
    return [peer for peer in peers if not names or peer.name in names]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that peers takes."""
    parser.add_argument(
        "action", nargs="?", choices=("list", "install", "ensure"), default="list", help="default: list"
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which ones; install makes those named anew, ensure only if missing"
    )


def run_peers(arguments: argparse.Namespace) -> int:
    """List or install; return 1 when one could not be installed. Raise ``ValueError`` for an unknown name."""
    status = 0
    for peer in choose_peers(read_peers(), arguments.names):
        missing = find_missing(peer)
        anew = arguments.action == "install" and bool(arguments.names)
        if arguments.action != "list" and (missing or anew) and peer.source == "pypi":
            if failure := install_peer(peer, print):
                print(f"{peer.name}: FAILED: {failure}", file=sys.stderr)
                status = 1
            continue
        state = missing or ("installed" if peer.source == "debian" else f"installed in {peer.folder}")
        print(f"{peer.name:<12} {peer.label:<38} {', '.join(peer.start):<28} {state}")
    return status
