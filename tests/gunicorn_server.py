"""A real ``gunicorn`` whose workers are ours, in a process of its own, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers import ROOT, Server, wait_until

WORKER = "gateways.gunicorn.Worker"
CONFIGURATION = "def post_worker_init(worker):\n    worker.log.info('ready: %d', worker.pid)\n"
"""A worker that was forked, but has no signal handlers of its own yet, loses the arbiter's orders: tests wait."""


class Gunicorn(Server):
    """A running gunicorn; ``said`` is what it logs of where it listens."""

    def complaints(self) -> list[str]:
        """Log records above info, each as ``] level: message``, and tracebacks as indented lines."""
        lines = [re.sub(r"^\[[^]]*\] \[\d+\] \[([A-Z]+)\] ", self._shorten, line) for line in self._lines()]
        return [line for line in lines if not line.startswith(("] info: ", "] debug: "))]

    def _lines(self) -> list[str]:
        """The lines of the log, those of tracebacks indented."""
        return [line if line.startswith("[") else f"    {line}" for line in self.read_log().splitlines()]

    @staticmethod
    def _shorten(match: re.Match[str]) -> str:
        return f"] {match[1].lower()}: "


def make_command(folder: Path, arguments: Sequence[str], bind: Sequence[str]) -> list[str]:
    """The command line: nothing of it is read from, or written to, anywhere but ``folder``."""
    (folder / "gunicorn.conf.py").write_text(CONFIGURATION)
    options = [word for address in bind for word in ("--bind", address)]
    return [
        sys.executable, "-m", "gunicorn", "--worker-class", WORKER, "--error-logfile", str(folder / "error.log"),
        "--config", str(folder / "gunicorn.conf.py"), "--worker-tmp-dir", str(folder), "--no-control-socket", *options,
        *arguments,
    ]  # fmt: skip


def make_environment(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GUNICORN_", "GATEWAYS_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**kept, "PYTHONPATH": path, "GUEST_FOLDER": str(folder), **variables}


@contextmanager
def hosted(
    folder: Path,
    *arguments: str,
    bind: Sequence[str] = ("127.0.0.1:0",),
    wanted: Sequence[str] = (),
    tolerated: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[Gunicorn]:
    """Run gunicorn with ``arguments``; afterwards stop it and assert a clean log. ``wanted`` as for ``serving``."""
    log = folder / "error.log"
    log.touch()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            make_command(folder, arguments, bind),
            cwd=ROOT, env=make_environment(folder, variables or {}), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    server = Gunicorn(process, log, "")
    try:
        workers = int(arguments[arguments.index("--workers") + 1]) if "--workers" in arguments else 1
        wait_until(lambda: log.read_text().count("ready: ") >= workers or process.poll() is not None, "its workers")
        assert process.poll() is None, log.read_text() + (folder / "output").read_text()
        found = re.search(r"Listening at: (.*) \(\d+\)", log.read_text())
        assert found is not None
        server.said = found[1]
        yield server
        if process.poll() is None:
            assert server.stop() == 0
        left = server.complaints()
        for pattern in wanted:
            assert any(re.search(pattern, line) for line in left), f"no {pattern!r} in {left}"
        left = [line for line in left if not any(re.search(pattern, line) for pattern in (*wanted, *tolerated))]
        assert left == [], "\n".join(left)
        said = (folder / "output").read_text()
        assert said == "", said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_to_end(
    folder: Path, *arguments: str, bind: str = "127.0.0.1:0", variables: Mapping[str, str]
) -> tuple[int, str]:
    """Run gunicorn, which is to end by itself: (exit status, everything it said)."""
    done = subprocess.run(
        make_command(folder, arguments, [bind]),
        cwd=ROOT, env=make_environment(folder, variables), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    log = folder / "error.log"
    return done.returncode, done.stderr + done.stdout + (log.read_text() if log.exists() else "")
