"""The pid file: a lock says who runs, and no number in it does (P12, B117, B119)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateways.core.errors import ConfigurationError
from gateways.process.pidfile import PidFile, find_running, parse_pid, read_report

STALE = [
    ("P12 empty", b""),
    ("P12 garbage", b"\xff\x00no number\n" * 100),
    ("P12 our own pid", b"%d\n" % os.getpid()),
    ("B117 another user's process", b"1\n"),
    ("P12 a recycled pid", b"%d\n" % os.getppid()),
    ("P12 a number beyond any pid", b"9" * 30),
]


@pytest.mark.parametrize("content", [row[1] for row in STALE], ids=[row[0] for row in STALE])
def test_a_file_that_nobody_holds_is_stale_whatever_is_in_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pid"
    path.write_bytes(content)
    assert find_running(str(path)) == 0
    file = PidFile(str(path))
    file.claim()
    assert path.read_bytes() == b"%d\n" % os.getpid()
    assert find_running(str(path)) == os.getpid()
    file.release()
    assert not path.exists()


def test_p12_a_file_that_is_held_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    first, second = PidFile(str(tmp_path / "pid")), PidFile(str(tmp_path / "pid"))
    first.claim()
    with pytest.raises(ConfigurationError, match=rf"process {os.getpid()} is running with it"):
        second.claim()
    second.release()
    assert find_running(str(tmp_path / "pid")) == os.getpid()
    first.release()
    second.claim()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_b119_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: both end in a write that fails."""
    program = """
import resource, signal, sys
from gateways.core.errors import ConfigurationError
from gateways.process.pidfile import PidFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    PidFile(sys.argv[1]).claim()
except ConfigurationError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "pid")],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot be written: File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_p12_what_is_no_file_is_refused(tmp_path: Path, make) -> None:
    make(tmp_path / "pid")
    with pytest.raises(ConfigurationError, match="PidFile"):
        PidFile(str(tmp_path / "pid")).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["pid"]


def test_p12_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        PidFile(str(tmp_path / "none" / "pid")).claim()


def test_p11_a_file_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    file = PidFile(str(path))
    file.claim()
    path.unlink()
    path.write_text("4711\n")
    file.release()
    assert path.read_text() == "4711\n"


def test_p11_a_predecessor_steps_aside_and_back(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    old, new = PidFile(str(path)), PidFile(str(path))
    old.claim()
    old.step_aside()
    new.claim()
    assert find_running(str(path) + ".old") == os.getpid()
    new.release()
    old.step_back()
    assert find_running(str(path)) == os.getpid()
    old.report(3, failed=True)
    assert read_report(str(path)) == f"{os.getpid()} 3 failed\n"
    old.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("data", "pid"), [(b"12\n", 12), (b"", 0), (b"-1", 0), (b"0x1", 0), (b"9" * 11, 0)])
def test_a_pid_is_digits(data: bytes, pid: int) -> None:
    assert parse_pid(data) == pid
