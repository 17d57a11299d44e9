"""Runs scripts under every execution model, in a forked process of their own: the in-process models take descriptors
0 and 1 for themselves and watch the process, which the test runner's own process is not for."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateways.core.errors import ProtocolError, ScriptError
from gateways.core.interfaces import ExecutionModel
from gateways.execution.cgi import CGIModel
from gateways.execution.recipes import make_recipe
from gateways.execution.script import ScriptModel
from gateways.execution.sources import ScriptFolder, SingleScript
from gateways.execution.zygote import ZygoteModel
from tests.exchanges import FakeExchange, make_request

Source = SingleScript | ScriptFolder
FIRST_LINE = "#!/usr/bin/env python3\n"


def make_script_model(
    source: Source, model: str, namespace: str = "fresh", stat: bool = True, stdio: str = "object"
) -> ScriptModel:
    """A PerlRun or Registry model."""
    return ScriptModel(model, source, make_recipe(model, namespace, stat), stdio)


IN_PROCESS: dict[str, Callable[[Source], ExecutionModel]] = {
    "perlrun": lambda source: make_script_model(source, "perlrun"),
    "registry-fresh": lambda source: make_script_model(source, "registry"),
    "registry-shared": lambda source: make_script_model(source, "registry", "shared"),
    "registry-descriptor": lambda source: make_script_model(source, "registry", stdio="descriptor"),
}
FORKED: dict[str, Callable[[Source], ExecutionModel]] = {
    "cgi": lambda source: CGIModel(source, time_limit=20),
    "zygote": lambda source: ZygoteModel(source, time_limit=20),
}
MODELS = {**IN_PROCESS, **FORKED}


@dataclass(frozen=True, slots=True)
class Call:
    """One request for a script."""

    method: str = "GET"
    target: str = "/"
    body: bytes = b""
    fields: list[tuple[str, str]] = field(default_factory=list)
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an exchange got. ``error``: the class of what the model raised; ``code``: its status; ``probe``: what was
    seen of the process right after the run."""

    status: str
    fields: list[tuple[str, str]]
    pieces: list[bytes]
    whole: bool
    log: str
    error: str
    message: str
    code: int
    recycling: bool
    redirected: list[str]
    probe: Any

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def text(self) -> str:
        return self.body.decode()


def write_script(path: Path, text: str | bytes, executable: bool = True) -> Path:
    """Write a script, with the line that says who runs it unless it has one."""
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data if data.startswith(b"#!") else FIRST_LINE.encode() + data)
    path.chmod(0o755 if executable else 0o644)
    return path


def run_call(model: ExecutionModel, call: Call, probe: Callable[[], Any] | None = None) -> Outcome:
    """Run one call in this process."""
    length = None if call.chunked else len(call.body)
    exchange = FakeExchange(make_request(call.method, call.target, call.fields, length), call.body)
    error = message = ""
    code = 0
    try:
        model.run(exchange)
    except Exception as raised:  # noqa: BLE001 - whatever a model raises is what the test is about
        error, message = type(raised).__name__, str(raised)
        code = raised.status if isinstance(raised, (ScriptError, ProtocolError)) else 0
    while exchange.cleanups:
        exchange.cleanups.pop()()
    return Outcome(
        exchange.status, list(exchange.fields), exchange.pieces, exchange.whole, exchange.log.text, error, message,
        code, exchange.recycling, exchange.redirected, probe() if probe is not None else None,
    )  # fmt: skip


def shed_test_runner() -> None:
    """Have warnings and unraisable exceptions shown as in a process of our own, not kept for the test runner."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))

    warnings.resetwarnings()
    warnings.showwarning = show
    sys.unraisablehook = sys.__unraisablehook__


def run_apart(work: Callable[[], Any]) -> Any:
    """Return ``work()``, called in a forked process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reader)
            shed_test_runner()
            try:
                result = pickle.dumps((True, work()))
            except BaseException:  # noqa: BLE001 - the other process shows it
                result = pickle.dumps((False, traceback.format_exc()))
            with open(writer, "wb") as pipe:
                pipe.write(result)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    assert data, "the process of the run died"
    good, result = pickle.loads(data)
    assert good, result
    return result


def run_calls(
    make: Callable[[Source], ExecutionModel],
    source: Source,
    *calls: Call,
    probe: Callable[[], Any] | None = None,
    between: Callable[[], Any] | None = None,
) -> list[Outcome]:
    """Load a model in a forked process and run calls there, one after another; ``between`` is called between two."""

    def work() -> list[Outcome]:
        model = make(source)
        model.load()
        outcomes = []
        for number, call in enumerate(calls or (Call(),)):
            if number and between is not None:
                between()
            outcomes.append(run_call(model, call, probe))
        model.close()
        return outcomes

    result: list[Outcome] = run_apart(work)
    return result


def run_one(make: Callable[[Source], ExecutionModel], path: Path, call: Call | None = None) -> Outcome:
    """Run one call for the script at ``path``."""
    return run_calls(make, SingleScript(str(path)), call or Call())[0]
