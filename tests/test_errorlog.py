"""The error log: one record is one line and its traceback, whatever a client put into the message."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways.errorlog import ErrorLogFormatter, ErrorLogHandler, escape_line, open_log

ROOT = Path(__file__).resolve().parent.parent

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z \[(\d+)\] (debug|info|warning|error): ")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[logging.Logger]:
    log = open_log("test.errorlog", str(tmp_path / "error.log"), "info")
    yield log
    release(log)


def release(log: logging.Logger) -> None:
    """Close what a log writes to."""
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        assert isinstance(handler, ErrorLogHandler)
        handler.release()


ESCAPED = [
    ("B135-crlf", "GET /\r\nFAKE: LINE", r"GET /\r\nFAKE: LINE"),
    ("nul", "a\0b", r"a\x00b"),
    ("escape-sequence", "\x1b[31mred", r"\x1b[31mred"),
    ("c1", "a\x9bb\x85c", r"a\x9bb\x85c"),
    ("line-separator", "a\u2028b", r"a\u2028b"),
    ("plain", "Zo\xeb \u20ac \"quoted\"", "Zo\xeb \u20ac \"quoted\""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in ESCAPED], ids=[row[0] for row in ESCAPED])
def test_control_characters_are_made_visible(text: str, expected: str) -> None:
    assert escape_line(text) == expected
    record = logging.LogRecord("x", logging.WARNING, "", 0, "said %s", (text,), None)
    line = ErrorLogFormatter().format(record)
    assert STAMP.sub("", line) == f"said {expected}"


def test_a_record_has_its_time_process_and_level(log: logging.Logger, tmp_path: Path) -> None:
    log.warning("message %d", 1)
    line = (tmp_path / "error.log").read_text()
    match = STAMP.match(line)
    assert match
    assert match.groups() == (str(os.getpid()), "warning")
    assert line.endswith(": message 1\n")


def test_a_traceback_keeps_its_lines_and_cannot_forge_a_record(log: logging.Logger, tmp_path: Path) -> None:
    try:
        raise ValueError("from a client:\n2026-01-01 00:00:00.000 [1] error: forged\r\x1b[2J")
    except ValueError:
        log.exception("failed")
    first, *rest = (tmp_path / "error.log").read_text().rstrip("\n").split("\n")
    assert first.endswith("error: failed")
    assert rest[0] == "    Traceback (most recent call last):"
    assert len(rest) > 3
    assert all(line.startswith("    ") for line in rest)
    assert r"forged\r\x1b[2J" in rest[-1]


def test_B138_a_long_message_is_not_cut(log: logging.Logger, tmp_path: Path) -> None:
    for size in (1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537):
        log.error("%s", "x" * size)
    lines = (tmp_path / "error.log").read_text().split("\n")[:-1]
    assert [len(STAMP.sub("", line)) for line in lines] == [1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537]


def test_B132_P18_a_log_that_was_moved_is_opened_again(log: logging.Logger, tmp_path: Path) -> None:
    log.info("one")
    (tmp_path / "error.log").rename(tmp_path / "error.log.1")
    log.info("two")
    assert (tmp_path / "error.log.1").read_text().endswith("one\n")
    assert (tmp_path / "error.log").read_text().endswith("two\n")


def test_opening_a_log_again_doubles_nothing(log: logging.Logger, tmp_path: Path) -> None:
    assert open_log("test.errorlog", str(tmp_path / "error.log"), "info") is log
    log.info("once")
    assert (tmp_path / "error.log").read_text().count("once") == 1


def test_P18_a_log_that_cannot_be_written_to_raises_nothing() -> None:
    log = open_log("test.full", "/dev/full", "info")
    log.error("lost")
    release(log)


APPLICATIONS = [
    ("dictConfig", "logging.config.dictConfig({'version': 1})"),
    ("fileConfig-like", "logging.config.dictConfig({'version': 1, 'disable_existing_loggers': True})"),
    ("shutdown", "logging.shutdown()"),
    ("disable", "logging.disable(logging.CRITICAL)"),
    ("basicConfig", "logging.basicConfig(force=True, level='CRITICAL')"),
    ("root", "logging.getLogger().setLevel('CRITICAL')"),
    ("same-name", "logging.getLogger('gateways').disabled = True"),
]


@pytest.mark.parametrize("order", [row[1] for row in APPLICATIONS], ids=[row[0] for row in APPLICATIONS])
def test_an_application_that_configures_logging_does_not_silence_ours(order: str, tmp_path: Path) -> None:
    """Django closes every handler there is when it is set up."""
    program = (
        "import logging, logging.config, sys\n"
        "from gateways.errorlog import open_log\n"
        "log = open_log('gateways', sys.argv[1], 'info')\n"
        f"{order}\n"
        "log.info('still %s', 'here')\n"
        "log.debug('not written')\n"
    )
    path = tmp_path / "error.log"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, capture_output=True, timeout=30, check=True
    )
    assert done.stderr == b""
    assert STAMP.sub("", path.read_text()) == "still here\n"


def test_a_log_whose_file_was_closed_is_opened_again(log: logging.Logger, tmp_path: Path) -> None:
    handler = log.handlers[0]
    assert isinstance(handler, ErrorLogHandler)
    handler.release()
    log.info("back")
    assert (tmp_path / "error.log").read_text().endswith("back\n")


def test_the_level_is_kept(log: logging.Logger, tmp_path: Path) -> None:
    log.debug("not written")
    assert (tmp_path / "error.log").read_text() == ""


def test_the_log_is_close_on_exec_and_not_for_everybody(log: logging.Logger, tmp_path: Path) -> None:
    assert (tmp_path / "error.log").stat().st_mode & 0o007 == 0
    fds = [int(name) for name in os.listdir("/proc/self/fd")]
    ours = [fd for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")
            and os.readlink(f"/proc/self/fd/{fd}") == str(tmp_path / "error.log")]  # fmt: skip
    assert ours
    assert not any(os.get_inheritable(fd) for fd in ours)
