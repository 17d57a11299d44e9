"""``gateways status`` as it is seen: on a terminal of some size, in a pipe, and when the server goes away."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from time import monotonic

import pyte
import pytest

from gateways.core.errors import GatewayError
from gateways.process.report import describe
from gateways.statusview import JSON, LIVE, ONCE, choose_kind, draw
from tests.servers import DEADLINE, ROOT
from tests.test_status import HOSTILE, make_report, run_status, watched

KINDS = [
    (False, False, True, {"TERM": "xterm"}, LIVE), (False, True, True, {"TERM": "xterm"}, ONCE),
    (False, False, False, {"TERM": "xterm"}, ONCE), (False, False, True, {"TERM": "dumb"}, ONCE),
    (False, False, True, {}, ONCE), (True, False, True, {"TERM": "xterm"}, JSON),
]  # fmt: skip


@pytest.mark.parametrize(("as_json", "once", "terminal", "variables", "kind"), KINDS)
def test_how_a_status_is_shown(as_json: bool, once: bool, terminal: bool, variables: dict[str, str], kind: str) -> None:
    assert choose_kind(as_json, once, terminal, variables) == kind


def draw_reports(width: int, height: int, answers: list[object], colour: bool = False) -> tuple[pyte.Screen, str]:
    """Draw each answer (data, or an error to raise), and interrupt; return the last screen, and what is printed."""
    screen = pyte.Screen(width, height)
    stream = pyte.Stream(screen)
    rest = list(answers)
    screens: list[str] = []

    def read() -> object:
        answer = rest.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pause(_seconds: float) -> None:
        screens.append("\n".join(screen.display))
        if not rest:
            raise KeyboardInterrupt

    printed = ""
    for text in draw(read, lambda: (width, height), pause, colour):  # type: ignore[arg-type]
        stream.feed(text)
        printed = text
    return screen, screens[-1] + "\0" + printed


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50), (40, 10)])
def test_the_second_table_covers_the_first(width: int, height: int) -> None:
    many, few = describe(make_report("GET /" + "x" * 400, 60)), describe(make_report("GET /y"))
    _, said = draw_reports(width, height, [many, few])
    shown = said.partition("\0")[0]
    assert "xxx" not in shown
    assert "GET /y" in shown
    assert "gateways 1, up 10s" in shown


def test_what_a_client_sent_moves_no_cursor() -> None:
    _, said = draw_reports(160, 24, [describe(make_report(HOSTILE))])
    assert "\\x1b[2J" in said.partition("\0")[0]
    assert "gateways 1" in said.partition("\0")[0]


def test_a_server_that_goes_is_waited_for() -> None:
    data = describe(make_report())
    _, said = draw_reports(80, 24, [data, GatewayError("nobody tells a status")])
    assert "nobody tells a status; Ctrl-C ends this" in said
    _, said = draw_reports(80, 24, [data, GatewayError("nobody tells a status"), data])
    assert "nobody" not in said
    with pytest.raises(GatewayError):
        draw_reports(80, 24, [GatewayError("nobody")])


@contextmanager
def on_terminal(width: int, height: int, *arguments: str, **variables: str) -> Iterator[tuple[int, int]]:
    """Run ``gateways status`` with a terminal of its own; give (pid, the terminal's other side)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever was started in the background ignores it
        command = [sys.executable, "-m", "gateways", "status", *arguments]
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm", **variables})
    try:
        yield pid, fd
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(fd)


def feed(fd: int, stream: pyte.ByteStream, seen: bytearray, wanted: str, screen: pyte.Screen) -> None:
    """Read from a terminal until ``wanted`` is to be seen."""
    end = monotonic() + DEADLINE
    while wanted not in "\n".join(screen.display):
        assert select.select([fd], [], [], max(0.0, end - monotonic()))[0], "\n".join(screen.display)
        data = os.read(fd, 65536)
        seen += data
        stream.feed(data)


@pytest.mark.parametrize(("width", "variables", "coloured"), [(80, {}, True), (160, {"NO_COLOR": "1"}, False)])
def test_a_terminal_shows_a_live_table(tmp_path: Path, width: int, variables: dict[str, str], coloured: bool) -> None:
    with watched(tmp_path) as (server, number):
        screen = pyte.Screen(width, 24)
        stream = pyte.ByteStream(screen)
        seen = bytearray()
        with on_terminal(width, 24, f"127.0.0.1:{number}", **variables) as (pid, fd):
            feed(fd, stream, seen, "2 idle", screen)
            assert ("SLOT" in "\n".join(screen.display)) == (width > 110)
            server.get("/echo?first")
            feed(fd, stream, seen, "GET /echo?first", screen)
            feed(fd, stream, seen, "1 requests", screen)
            assert (b"\x1b[2m" in seen) == coloured
            os.write(fd, b"\x03")
            feed(fd, stream, seen, "memory", screen)
            end = monotonic() + DEADLINE
            while b"\x1b[?1049l" not in seen and monotonic() < end:
                seen += os.read(fd, 65536)
            assert b"\x1b[?25h\x1b[?1049l" in seen, "the terminal is as it was"
            rest = b""
            try:
                while data := os.read(fd, 65536):
                    rest += data
            except OSError:
                pass
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, rest


def test_a_pipe_gets_one_plain_table(tmp_path: Path) -> None:
    with watched(tmp_path) as (_, number):
        done = run_status(f"127.0.0.1:{number}")
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
        assert done.stdout.count("pool main") == 1
