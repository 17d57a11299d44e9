"""The fuzzers themselves: their seeds hold, some executions hold, and a wire with a planted fault is caught."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateways.core.errors import RemoteProtocolError
from gateways.core.interfaces import Wire
from gateways.wire.ajp import AJPWire
from gateways.wire.fastcgi import FastCGIWire
from gateways.wire.http import HTTPWire
from gateways.wire.scgi import SCGIWire
from gateways.wire.uwsgi import UwsgiWire
from tests.fuzz.__main__ import choose_engine, escape
from tests.fuzz.check import check
from tests.fuzz.choices import AMPLE, LIMITS, SIZE, cut, format_choices, parse_choices
from tests.fuzz.mutation import Mutator
from tests.fuzz.seeds import TOKENS, make_seeds
from tests.fuzz.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_every_seed_holds(target: Target) -> None:
    for data in make_seeds(target.name):
        check(target, data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_some_executions_of_the_plain_engine_hold(target: Target) -> None:
    mutator = Mutator(make_seeds(target.name), TOKENS[target.name], 1)
    for _ in range(1000):
        check(target, mutator.make())


def test_the_plain_engine_repeats_itself_for_the_same_seed() -> None:
    seeds, tokens = make_seeds("scgi"), TOKENS["scgi"]
    one, other, third = (Mutator(seeds, tokens, seed) for seed in (5, 5, 6))
    made = [one.make() for _ in range(50)]
    assert made == [other.make() for _ in range(50)]
    assert made != [third.make() for _ in range(50)]


@pytest.mark.parametrize("data", [b"", b"\xff", bytes(SIZE), b"\xff" * SIZE, bytes(range(256))])
def test_any_bytes_are_a_choice_and_every_cut_is_of_the_whole_input(data: bytes) -> None:
    choices, stream = parse_choices(data)
    for place in (0, 1, 255):
        pieces = cut(stream * 9, choices._replace(place=place))
        assert b"".join(pieces) == stream * 9
        assert all(pieces)


def test_what_is_wrapped_is_never_refused_for_its_size() -> None:
    for limits in range(256):
        assert parse_choices(format_choices(limits=limits, flags=4))[0].ample
    assert [parse_choices(format_choices(limits=at))[0].ample for at in range(len(LIMITS))] == [True] * AMPLE + [
        False
    ] * (len(LIMITS) - AMPLE)


# Planted faults: each a wire that breaks one promise, and must be caught.


class KeepsUnread(HTTPWire):
    """Keeps a connection although body bytes have not come yet, and takes them for a request."""

    __slots__ = ()

    def body_complete(self) -> bool:
        return True


class ParsesBody(HTTPWire):
    """Looks for the next request right behind a head."""

    __slots__ = ()

    def finish(self) -> bool:
        self._remaining = 0
        return super().finish()


class EndsEarly(HTTPWire):
    """Takes a bare LF for the end of a chunk-size line, but only when it comes alone."""

    __slots__ = ()

    def receive(self, data: bytes) -> None:
        super().receive(b"\r\n" if data == b"\n" else data)


class Hoards(UwsgiWire):
    """Holds whatever it is sent."""

    __slots__ = ()

    @property
    def buffered(self) -> int:
        return super().buffered + 100_000


class GoesOn(SCGIWire):
    """Takes a second request."""

    def finish(self) -> bool:
        self._request, self._closed = None, False
        return False


class Raises(AJPWire):
    """Lets an ``IndexError`` out."""

    __slots__ = ()

    def take_request(self) -> Any:
        try:
            return super().take_request()
        except RemoteProtocolError as error:
            if "longer than the rest" in error.message:
                raise IndexError from None
            raise


class Forgets(FastCGIWire):
    """Does not end its response."""

    __slots__ = ()

    def format_end(self) -> bytes:
        self._responded = True
        return b""


class Silent(FastCGIWire):
    """Answers a management record, but only when it is asked twice."""

    __slots__ = ()

    def take_output(self) -> bytes:
        return b"" if len(self._output) == 16 else super().take_output()


FAULTS: list[tuple[str, Callable[..., Wire]]] = [
    ("http", KeepsUnread),
    ("http", ParsesBody),
    ("http", EndsEarly),
    ("uwsgi", Hoards),
    ("scgi", GoesOn),
    ("ajp", Raises),
    ("fastcgi", Forgets),
    ("fastcgi", Silent),
]


def check_all(target: Target, inputs: list[bytes]) -> None:
    for data in inputs:
        check(target, data)


@pytest.mark.parametrize(("name", "faulty"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_is_caught(name: str, faulty: type) -> None:
    target = TARGETS[name]

    def make(choices: Any) -> Wire:
        wire = target.make(choices)
        wire.__class__ = faulty
        return wire

    broken = replace(target, make=make)
    mutator = Mutator(make_seeds(name), TOKENS[name], 1)
    inputs = [*make_seeds(name), *(mutator.make() for _ in range(4000))]
    with pytest.raises((AssertionError, IndexError)):
        check_all(broken, inputs)


def test_an_execution_that_does_not_end_is_ended() -> None:
    program = """
from tests.fuzz.hang import Hang, begin_execution, watch_hangs
watch_hangs()
begin_execution(0.05)
try:
    while True:
        pass
except Hang as hang:
    print(hang)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "an execution took more than 20 s of CPU time\n"


# The command line.


def test_tokens_are_written_as_libfuzzer_reads_them() -> None:
    assert escape(b'a"\\\0\xff ') == "a\\x22\\x5C\\x00\\xFF "


def test_an_engine_that_is_not_there_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_engine("auto") == "plain"
    with pytest.raises(ValueError, match="pip install atheris"):
        choose_engine("atheris")


def test_the_command_runs_one_wire_and_ends() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "uwsgi", "--engine", "plain", "--runs", "100", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "uwsgi: engine plain, seed 3" in done.stderr
    assert "uwsgi: 100 executions done, nothing found" in done.stderr


def test_a_kept_input_is_run_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(make_seeds("scgi")[0])
    command = [sys.executable, "-m", "tests.fuzz", "scgi", "--input", str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{kept}: nothing found\n")
