"""The other load tools: what they print, as kept text, and what it means."""

from __future__ import annotations

import pytest

from bench.drivers import format_ab, format_wrk, open_driver, parse_ab, parse_wrk
from bench.load import Job

JOB = Job(port=8000, path="/", length=1164, digest="", seconds=1.5, concurrency=10)

AB = """\
Document Path:          /wsgi/
Document Length:        1164 bytes

Concurrency Level:      10
Time taken for tests:   2.000 seconds
Complete requests:      8830
Failed requests:        0
Keep-Alive requests:    8000
Total transferred:      11487830 bytes
Requests per second:    4415.00 [#/sec] (mean)
"""
AB_TABLE = "Percentage served,Time in ms\n0,0.030\n1,0.041\n50,0.041\n99,1.500\n"

WRK = """\
Running 1s test @ http://127.0.0.1:18905/
  1 threads and 10 connections
  Latency Distribution
     50%   82.00us
     75%   88.00us
     90%    1.50ms
     99%    0.24s
  17533 requests in 1.10s, 21.75MB read
Requests/sec:  15947.72
"""


def test_ab_is_read() -> None:
    result = parse_ab(AB, AB_TABLE, JOB)
    assert (result.error, result.requests, result.seconds, result.connections) == ("", 8830, 2.0, 830)
    assert result.latencies == [[41, 2], [1500, 1]]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("1164 bytes", "1163 bytes", "a body of 1163 bytes, not 1164"),
        ("Failed requests:        0", "Failed requests:        7", "7 requests failed"),
        ("Keep-Alive", "Non-2xx responses:      9\nKeep-Alive", "9 answers had another status than 200"),
        (AB, "apr_socket_recv: Connection refused (111)\n", "Connection refused"),
        (AB, "", "it printed nothing"),
    ],
)
def test_ab_s_failures_are_errors(old: str, new: str, error: str) -> None:
    assert error in parse_ab(AB.replace(old, new), AB_TABLE, JOB).error


def test_wrk_is_read() -> None:
    result = parse_wrk(WRK, JOB)
    assert (result.error, result.requests, result.seconds) == ("", 17533, pytest.approx(1.1))
    assert result.latencies == [[82, 50], [88, 25], [1500, 15], [240000, 9]]


@pytest.mark.parametrize(
    ("text", "keep_alive", "error"),
    [
        (WRK + "  Non-2xx or 3xx responses: 12\n", True, "12 answers had another status"),
        (WRK + "  Socket errors: connect 0, read 5, write 0, timeout 0\n", True, "connection errors"),
        (WRK + "  Socket errors: connect 0, read 5, write 0, timeout 0\n", False, ""),
        (WRK + "  Socket errors: connect 0, read 5, write 0, timeout 2\n", False, "connection errors"),
        ("unable to connect to 127.0.0.1:1 Connection refused\n", False, "Connection refused"),
    ],
)
def test_wrk_s_failures_are_errors(text: str, keep_alive: bool, error: str) -> None:
    job = Job(port=8000, path="/", length=1164, digest="", seconds=1, keep_alive=keep_alive)
    found = parse_wrk(text, job).error
    assert error in found
    assert bool(error) == bool(found)


def test_command_lines_count_whole_seconds() -> None:
    assert format_ab(JOB, "t.csv")[:4] == ["ab", "-q", "-t", "2"]
    assert "-k" not in format_ab(JOB, "t.csv")
    assert "2s" in format_wrk(JOB)
    assert "Connection: close" in format_wrk(JOB)


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="none of builtin, ab, wrk"):
        open_driver("siege")
