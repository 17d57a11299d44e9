"""``python -m tests.conformance.peers --cache DIR``: hold the table against other servers, and write the comparison.

Each peer gets a virtual environment of its own below the cache folder, serves ``apps/conformance.py`` on a free port of
the loopback interface, and is stopped when its rows have run. Our own server is run the same way, as one more peer.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.conformance.addresses import parse_address
from tests.conformance.matrix import count
from tests.conformance.report import Column, format_report
from tests.conformance.runner import Target, run_table
from tests.conformance.table import load_table

ROOT = Path(__file__).resolve().parent.parent.parent
START_LIMIT = 20.0
STOP_LIMIT = 10.0
ROW_LIMIT = 4.0
FLUP = "from conformance import application; from flup.server.{0} import WSGIServer; WSGIServer(application, {1}).run()"
AT = 'bindAddress=("127.0.0.1", {port})'
WSGIREF = (
    "from conformance import application; from wsgiref.simple_server import make_server; "
    'make_server("127.0.0.1", {port}, application).serve_forever()'
)
WERKZEUG = (
    "from conformance import application; from werkzeug.serving import run_simple; "
    'run_simple("127.0.0.1", {port}, application, threaded=True)'
)
CHEROOT = (
    "from conformance import application; from cheroot.wsgi import Server; "
    'Server(("127.0.0.1", {port}), application, numthreads=4).safe_start()'
)
UWSGI = ("--processes", "2", "--module", "conformance:application", "--need-app", "--die-on-term")
FIXED = ("--start-servers", "2", "--min-spare-servers", "2", "--max-spare-servers", "2", "--max-servers", "2")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server: what to install, and how to start it. ``{port}`` stands for the port; a first word without ``/`` is a
    program of its environment. ``package``: the distribution whose version is told; empty for what Python brings."""

    name: str
    scheme: str
    command: tuple[str, ...]
    package: str = ""
    pinned: str = ""


def ours(scheme: str, wire: str = "") -> Peer:
    """Our server over a wire."""
    command = ("python", "-m", "gateways", "serve", "apps/conformance.py", "--bind", "127.0.0.1:{port}", *FIXED)
    name = "gateways" if not wire else f"gateways, asked by {scheme.partition('+')[0]}"
    pinned = "flup==1.0.3" if wire else ""
    return Peer(name, scheme, (*command, "--wire", wire or scheme), "", pinned)


def flup(module: str, scheme: str) -> Peer:
    """flup's threaded server of a wire."""
    return Peer("flup", scheme, ("python", "-c", FLUP.format(module, AT)), "flup", "flup==1.0.3")


def uwsgi(scheme: str, option: str) -> Peer:
    """uWSGI over a wire."""
    return Peer("uWSGI", scheme, ("uwsgi", f"--{option}", "127.0.0.1:{port}", *UWSGI), "uWSGI")


PEERS = (
    ours("http"),
    Peer("gunicorn", "http", ("gunicorn", "-w", "2", "-b", "127.0.0.1:{port}", "conformance:application"), "gunicorn"),
    uwsgi("http", "http-socket"),
    Peer("waitress", "http", ("waitress-serve", "--listen", "127.0.0.1:{port}", "conformance:application"), "waitress"),
    Peer("cheroot", "http", ("python", "-c", CHEROOT), "cheroot"),
    Peer("werkzeug", "http", ("python", "-c", WERKZEUG), "werkzeug"),
    Peer("wsgiref", "http", ("python", "-c", WSGIREF)),
    ours("fastcgi"),
    ours("flup+fastcgi", "fastcgi"),
    flup("fcgi", "fastcgi"),
    uwsgi("fastcgi", "fastcgi-socket"),
    ours("scgi"),
    ours("flup+scgi", "scgi"),
    flup("scgi", "scgi"),
    uwsgi("scgi", "scgi-socket"),
    ours("uwsgi"),
    Peer("gunicorn", "uwsgi", ("gunicorn", "-w", "2", "-b", "127.0.0.1:{port}", "--protocol", "uwsgi",
                               "conformance:application"), "gunicorn"),
    uwsgi("uwsgi", "uwsgi-socket"),
    ours("ajp"),
    flup("ajp", "ajp"),
)  # fmt: skip


def install(peer: Peer, cache: Path) -> Path:
    """Return the ``bin`` folder of the peer's environment, made if it is not there."""
    folder = cache / (peer.package or ("flup" if peer.pinned else "plain")).lower()
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        if peer.package or peer.pinned:
            command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", peer.pinned or peer.package]
            subprocess.run(command, check=True)
    return folder / "bin"


def find_version(peer: Peer, programs: Path) -> str:
    """Return ``"gunicorn 23.0.0"``."""
    if peer.name.startswith("gateways"):
        command = [sys.executable, "-m", "gateways", "--version"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        return told + peer.name.removeprefix("gateways")
    if not peer.package:
        return f"{peer.name} of Python {platform.python_version()}"
    code = f"from importlib.metadata import version; print(version({peer.package!r}))"
    done = subprocess.run([str(programs / "python"), "-c", code], capture_output=True, text=True, check=True)
    return f"{peer.name} {done.stdout.strip()}"


def find_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@contextmanager
def running(peer: Peer, programs: Path, log: Path) -> Iterator[int]:
    """Start a peer in a process group of its own, wait until it accepts, and end the group afterwards."""
    port = find_port()
    first, *rest = [word.replace("{port}", str(port)) for word in peer.command]
    program = programs / first
    if first == "python" and peer.name.startswith("gateways"):
        program = Path(sys.executable)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "apps"), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program), *rest], cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until_accepting(process, port, log)
        yield port
    finally:
        end_group(process)


def wait_until_accepting(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a connection is accepted. Raise ``RuntimeError`` when the process ends or takes too long."""
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{process.args!r} did not start: {log.read_text(errors='replace')[-1000:]}")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group: kindly, then at once."""
    process.terminate()
    try:
        process.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_peer(peer: Peer, cache: Path) -> Column:
    """Run the table against one peer."""
    programs = install(peer, cache)
    version = find_version(peer, programs)
    log = cache / f"{peer.name.replace(' ', '-')}-{peer.scheme}.log"
    if peer.scheme.startswith("flup+"):
        sys.path.extend(str(path) for path in programs.parent.glob("lib/python*/site-packages"))
    with running(peer, programs, log) as port:
        address = parse_address(f"{peer.scheme}://127.0.0.1:{port}/")
        outcomes = run_table(load_table(), Target(version, address), ROW_LIMIT)
    return Column(version, peer.scheme.rpartition("+")[2], tuple(outcomes))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.peers", description="Hold the conformance table against other servers."
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="where environments are kept; a new folder if not given"
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="gunicorn, uWSGI, flup ...")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the comparison there, as Markdown")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return its exit status."""
    options = make_parser().parse_args(arguments)
    # A peer must not outlive this program.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    cache = (options.cache or Path(tempfile.mkdtemp(prefix="conformance-"))).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    columns = []
    for peer in PEERS:
        if options.only and peer.name.partition(",")[0] not in options.only:
            continue
        column = run_peer(peer, cache)
        print(f"{column.wire}: {column.name}: {count(column.outcomes)}", flush=True)
        columns.append(column)
    if options.output:
        today = datetime.now(UTC).date().isoformat()
        options.output.write_text(
            format_report(columns, today, f"Python {platform.python_version()}, {platform.system()}")
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
