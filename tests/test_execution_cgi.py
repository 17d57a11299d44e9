"""cgi and zygote: real processes, their pipes, their end (security.md C02-C16)."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateways.core.errors import BodyIncomplete, ConnectionLost, ScriptError
from gateways.execution import child, permits, pump
from gateways.execution.cgi import CGIModel
from gateways.execution.permits import Permits
from gateways.execution.sources import ScriptFolder, SingleScript
from gateways.execution.zygote import ZygoteModel
from tests.exchanges import FakeExchange, make_request
from tests.script_runs import FORKED, Call, Outcome, run_apart, run_call, run_calls, run_one, write_script
from tests.servers import children, has_ended

HEAD = 'print("Content-Type: text/plain\\n")\n'
FLUSHED_HEAD = 'print("Content-Type: text/plain\\n", flush=True)\n'
BOTH = pytest.mark.parametrize("model", FORKED)
DEADLINE = 30.0
MADE: list[CGIModel | ZygoteModel] = []


def make_model(model: str, source: SingleScript | ScriptFolder, time_limit: float) -> CGIModel | ZygoteModel:
    made = CGIModel(source, time_limit) if model == "cgi" else ZygoteModel(source, time_limit=time_limit)
    made.load()
    MADE.append(made)
    return made


@pytest.fixture(autouse=True)
def close_models() -> Iterator[None]:
    """Close what a test has made: a zygote is a process."""
    yield
    while MADE:
        MADE.pop().close()


def wait_for_end(pid: int) -> bool:
    """Wait until a process that is not our child is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE)[0])
    finally:
        os.close(descriptor)


class SocketExchange(FakeExchange):
    """An exchange whose peer is the other end of a socket pair."""

    def __init__(self, call: Call | None = None) -> None:
        call = call or Call()
        super().__init__(make_request(call.method, call.target, call.fields, len(call.body)), call.body)
        self.near, self.far = socket.socketpair()

    def fileno(self) -> int:
        return self.near.fileno()


@pytest.fixture
def exchange() -> Iterator[SocketExchange]:
    made = SocketExchange()
    yield made
    made.near.close()
    made.far.close()


# Finding and starting.


def test_a_program_in_any_language(tmp_path: Path) -> None:
    path = write_script(
        tmp_path / "script.sh", "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s %s' $# \"$PATH_INFO\""
    )
    for model in FORKED.values():
        assert run_one(model, path, Call(target="/x?-s")).text == "0 /x"


def test_the_interpreter_that_runs_the_gateway_is_first_on_the_path(tmp_path: Path) -> None:
    import sys

    path = write_script(
        tmp_path / "script", HEAD + "import os, sys\nprint(os.path.realpath(sys.executable), sys.prefix)"
    )
    assert run_one(FORKED["cgi"], path).text == f"{os.path.realpath(sys.executable)} {sys.prefix}\n"


NOT_STARTED = [
    ("not-executable", lambda p: write_script(p / "s.py", HEAD, executable=False), 403, "not executable"),
    ("no-first-line", lambda p: write_bare(p / "s.py", b"echo hello\n"), 500, "#! line"),
    ("no-such-interpreter", lambda p: write_bare(p / "s.py", b"#!/no/such/interpreter\n"), 500, "cannot be started"),
]


def write_bare(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("make", "status", "said"), [row[1:] for row in NOT_STARTED], ids=[r[0] for r in NOT_STARTED])
def test_what_cannot_be_started_has_a_status(
    make: Callable[[Path], Path], status: int, said: str, tmp_path: Path
) -> None:
    outcome = run_one(FORKED["cgi"], make(tmp_path))
    assert (outcome.code, outcome.error) == (status, "ScriptError")
    assert said in outcome.message


def test_a_variable_with_a_nul_is_400(tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD)
    assert run_one(FORKED["cgi"], path, Call(target="/?a\0b")).code == 400


def test_zygote_needs_no_exec_bit_for_python_and_says_when_it_falls_back(tmp_path: Path) -> None:
    plain = write_script(tmp_path / "plain.py", HEAD + "print('hello')", executable=False)
    assert run_one(FORKED["zygote"], plain).text == "hello\n"
    shell = write_script(tmp_path / "script.sh", "#!/bin/sh\nprintf 'Content-Type: a/b\\n\\nsh'")
    outcome = run_one(FORKED["zygote"], shell)
    assert outcome.text == "sh"
    assert "no Python program, run by fork and exec" in outcome.log


# What a process is given.


@BOTH
def test_c13_b101_b134_only_the_standard_descriptors_are_open(model: str, tmp_path: Path) -> None:
    script = HEAD + (
        "import os, signal\n"
        "print([d for d in sorted(os.listdir('/proc/self/fd')) if os.path.exists(f'/proc/self/fd/{d}')])\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.set_wakeup_fd(-1))\n"
        "print([signal.getsignal(n).name for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1)])\n"
        "print(os.getpgrp() == os.getsid(0) == os.getpid())\n"
    )
    path = write_script(tmp_path / "script.py", script)

    def work() -> Outcome:
        made = FORKED[model](SingleScript(str(path)))
        made.load()
        listener = socket.create_server(("127.0.0.1", 0))
        leak = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(leak, True)
        os.set_inheritable(listener.fileno(), True)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        outcome = run_call(made, Call())
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGUSR2}
        os.close(reader)
        listener.close()
        return outcome

    outcome: Outcome = run_apart(work)
    handlers = ["SIG_DFL"] * 4
    assert outcome.text.splitlines() == ["['0', '1', '2']", "set() -1", str(handlers), "True"], outcome.log


@BOTH
def test_no_descriptor_and_no_zombie_is_left(model: str, tmp_path: Path) -> None:
    """B101: a hundred requests, good and bad."""
    path = write_script(tmp_path / "script.py", HEAD + "import os\nif os.environ['QUERY_STRING']: os.abort()")

    def look() -> tuple[int, int, int]:
        own = children(os.getpid())
        below = [state for pid, _ in own for _, state in children(pid)]
        return len(os.listdir("/proc/self/fd")), len(own), [state for _, state in own].count("Z") + len(below)

    calls = [Call(target="/?x") if n % 5 == 0 else Call() for n in range(10 if model == "cgi" else 100)]
    outcomes = run_calls(FORKED[model], SingleScript(str(path)), *calls, probe=look)
    # One that has just ended may still be about to be collected; they never add up.
    assert {outcome.probe[:2] for outcome in outcomes[1:]} == {outcomes[1].probe[:2]}
    assert max(outcome.probe[2] for outcome in outcomes[1:]) <= (model == "zygote")
    assert outcomes[-1].probe[1:] == (int(model == "zygote"), 0)  # the zygote, and nothing below it


@BOTH
@pytest.mark.parametrize("reaper", ["ignored", "handler"])
def test_c12_b098_somebody_else_collects_the_child(model: str, reaper: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "print('hello')")

    def collect_all(*_: object) -> None:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    def work() -> Outcome:
        made = FORKED[model](SingleScript(str(path)))
        made.load()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN if reaper == "ignored" else collect_all)
        return run_call(made, Call())

    outcome: Outcome = run_apart(work)
    assert (outcome.status, outcome.text, outcome.log) == ("200 OK", "hello\n", "")


# Bytes both ways.


@BOTH
def test_c09_a_child_that_writes_before_it_reads(model: str, tmp_path: Path) -> None:
    script = FLUSHED_HEAD + "import sys\nprint('x' * 300_000, flush=True)\nprint(len(sys.stdin.buffer.read()))"
    path = write_script(tmp_path / "script.py", script)
    outcome = run_one(FORKED[model], path, Call("POST", body=b"y" * 1_000_000))
    assert outcome.text == "x" * 300_000 + "\n1000000\n"


@BOTH
def test_output_is_passed_on_while_the_script_goes_on(model: str, tmp_path: Path, exchange: SocketExchange) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = FLUSHED_HEAD + f"print('one', flush=True)\nopen('{gate}').read()\nprint('two')"
    path = write_script(tmp_path / "script.py", script)
    made = make_model(model, SingleScript(str(path)), DEADLINE)
    write = exchange.write

    def open_gate(data: bytes) -> None:
        write(data)
        if data == b"one\n":
            gate.write_text("go")

    exchange.write = open_gate  # type: ignore[method-assign]
    made.run(exchange)
    assert exchange.pieces == [b"one\n", b"two\n"]


@BOTH
def test_a_short_reply_leaves_whole(model: str, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "print('short')")
    outcome = run_one(FORKED[model], path)
    assert outcome.whole
    assert outcome.pieces == [b"short\n"]


@BOTH
@pytest.mark.parametrize("spooled", [False, True], ids=["length", "no-length"])
def test_no_answer_begins_before_the_body_is_in(
    model: str, spooled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nginx sends no more of a body once the answer has begun."""
    monkeypatch.setattr(pump, "HOLD", 0.0)
    path = write_script(
        tmp_path / "script.py", FLUSHED_HEAD + "import sys\nprint('begun', flush=True)\nprint(len(sys.stdin.read()))"
    )

    class Watched(FakeExchange):
        early = False

        def read(self, size: int = -1) -> bytes:
            self.early = self.early or (self.committed and bool(self.unread))
            return super().read(size)

    def work() -> tuple[bool, bytes]:
        body = b"x" * (1 << 20)
        watched = Watched(make_request("POST", content_length=None if spooled else len(body)), body)
        make_model(model, SingleScript(str(path)), DEADLINE).run(watched)
        return watched.early, watched.body

    assert run_apart(work) == (False, b"begun\n1048576\n")


@BOTH
def test_a_body_that_nobody_reads_holds_no_answer(model: str, tmp_path: Path, exchange: SocketExchange) -> None:
    """A script that closes its input, or has all of a short body in its pipe, is answered while it still runs."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = FLUSHED_HEAD + f"print('one', flush=True)\nimport os\nos.close(0)\nopen('{gate}').read()\nprint('two')"
    path = write_script(tmp_path / "script.py", script)
    exchange.request = make_request("POST", content_length=1 << 20)
    exchange.unread = b"x" * (1 << 20)
    write = exchange.write

    def open_gate(data: bytes) -> None:
        write(data)
        if data == b"one\n":
            gate.write_text("go")

    exchange.write = open_gate  # type: ignore[method-assign]
    make_model(model, SingleScript(str(path)), DEADLINE).run(exchange)
    assert exchange.pieces == [b"one\n", b"two\n"]


@BOTH
def test_f06_a_body_that_ends_early_ends_the_script(model: str, tmp_path: Path) -> None:
    path = write_script(
        tmp_path / "script.py", f"import os, sys\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\nsys.stdin.read()"
    )

    class Broken(FakeExchange):
        def read(self, size: int = -1) -> bytes:
            if not self.unread:
                raise BodyIncomplete("the body ended early")
            return super().read(size)

    broken = Broken(make_request("POST", content_length=100), b"x" * 10)
    with pytest.raises(BodyIncomplete):
        make_model(model, SingleScript(str(path)), DEADLINE).run(broken)
    if (tmp_path / "pid").exists() and (text := (tmp_path / "pid").read_text()):
        assert has_ended(int(text))


# The end of a script.


ENDS = [
    ("exit-status", HEAD + "raise SystemExit(7)", "200 OK", "exit status 7"),
    ("signal", FLUSHED_HEAD + "import os\nos.kill(os.getpid(), 9)", "", "ended by SIGKILL"),
    ("os-exit", "import os\nprint('Content-Type: a/b\\n', flush=True)\nos._exit(0)", "200 OK", ""),
    ("os-exit-without-output", "import os\nos._exit(0)", "", "printed nothing"),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("script", "status", "said"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_how_a_script_ends_is_logged(model: str, script: str, status: str, said: str, tmp_path: Path) -> None:
    outcome = run_one(FORKED[model], write_script(tmp_path / "script.py", script))
    assert outcome.status == status or outcome.error == "ScriptError"
    assert said in outcome.log + outcome.message
    assert not said or "script.py" in outcome.log + outcome.message


@BOTH
def test_a_script_killed_in_the_middle_leaves_its_reply_unfinished(model: str, tmp_path: Path) -> None:
    script = FLUSHED_HEAD + "import os\nprint('x' * 100_000, flush=True)\nos.kill(os.getpid(), 9)"
    outcome = run_one(FORKED[model], write_script(tmp_path / "script.py", script))
    assert (outcome.status, outcome.error) == ("200 OK", "ScriptError")
    assert len(outcome.body) == 100_001


STUBBORN = (
    "import os, signal, subprocess\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "other = subprocess.Popen(['sleep', '60'])\n"
    "open('pids', 'w').write(f'{os.getpid()} {other.pid}')\n"
)


@BOTH
@pytest.mark.parametrize("sent", [False, True], ids=["nothing-sent", "half-sent"])
def test_a_script_that_takes_too_long_is_killed_with_its_group(
    model: str, sent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "KILL_GRACE", 0.1)
    script = (FLUSHED_HEAD + "print('half', flush=True)\n" if sent else "") + STUBBORN + "signal.pause()"
    path = write_script(tmp_path / "script.py", script)
    outcome: Outcome = run_apart(lambda: run_call(make_model(model, SingleScript(str(path)), 2.0), Call()))
    assert (outcome.error, outcome.code) == ("ScriptError", 504)
    assert outcome.text == ("half\n" if sent else "")
    assert "its time limit passed" in outcome.log
    for pid in (tmp_path / "pids").read_text().split():
        assert wait_for_end(int(pid))


@BOTH
def test_c10_b108_a_grandchild_that_holds_the_output_does_not_hold_the_reply(model: str, tmp_path: Path) -> None:
    script = (
        "print('Status: 202 Accepted\\nContent-Type: a/b\\n')\n"
        "import subprocess\nopen('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))"
    )
    path = write_script(tmp_path / "script.py", script)
    outcome = run_one(FORKED[model], path)
    assert (outcome.status, outcome.error, outcome.text) == ("202 Accepted", "", "")
    assert wait_for_end(int((tmp_path / "pid").read_text()))


@BOTH
def test_c10_a_script_that_closes_its_output_and_goes_on_is_waited_for_after_the_reply(
    model: str, tmp_path: Path
) -> None:
    """The reply is over when the output is; the script goes on, and is collected."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = FLUSHED_HEAD + (
        f"import os\nprint('all', flush=True)\nos.close(1)\nopen('{gate}').read()\nopen('after', 'w')\n"
    )
    path = write_script(tmp_path / "script.py", script)
    made = make_model(model, SingleScript(str(path)), DEADLINE)
    exchange = FakeExchange()
    made.run(exchange)
    assert exchange.body == b"all\n"
    assert len(exchange.cleanups) == 1
    assert not (tmp_path / "after").exists()
    gate.write_text("go")
    exchange.cleanups.pop()()
    assert (tmp_path / "after").exists()


@BOTH
def test_c10_a_script_that_goes_on_for_ever_after_its_reply_is_ended(model: str, tmp_path: Path) -> None:
    script = FLUSHED_HEAD + "import os, signal\nos.close(1)\nopen('pid', 'w').write(str(os.getpid()))\nsignal.pause()"
    path = write_script(tmp_path / "script.py", script)
    outcome: Outcome = run_apart(lambda: run_call(make_model(model, SingleScript(str(path)), 1.0), Call()))
    assert (outcome.status, outcome.error) == ("200 OK", "")
    assert "was ended after its reply" in outcome.log
    assert has_ended(int((tmp_path / "pid").read_text()))


@BOTH
@pytest.mark.parametrize("half", [False, True], ids=["closed", "half-closed"])
def test_c11_a_client_that_goes_away_ends_the_script(
    model: str, half: bool, tmp_path: Path, exchange: SocketExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "HALF_CLOSE_GRACE", 0.2)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"import os, signal\nopen('{gate}', 'w').write(str(os.getpid()))\nsignal.pause()"
    path = write_script(tmp_path / "script.py", script)
    made = make_model(model, SingleScript(str(path)), DEADLINE)
    pids = []

    def leave() -> None:
        pids.append(int(gate.read_text()))
        if half:
            exchange.far.shutdown(socket.SHUT_WR)
        else:
            exchange.far.close()

    leaver = threading.Thread(target=leave)
    if model == "zygote":  # a process with threads may not fork safely: the leaver is a process there
        pid = os.fork()
        if not pid:
            exchange.near.close()
            try:
                gone = gate.read_text()
                (tmp_path / "pid").write_text(gone)
                if half:
                    exchange.far.shutdown(socket.SHUT_WR)
                    select.select([exchange.far], [], [], DEADLINE)
            finally:
                os._exit(0)
        if not half:
            exchange.far.close()
    else:
        leaver.start()
    with pytest.raises(ConnectionLost, match="was ended: the client is gone"):
        made.run(exchange)
    if model == "zygote":
        exchange.near.close()
        os.waitpid(pid, 0)
        pids.append(int((tmp_path / "pid").read_text()))
    else:
        leaver.join()
    assert has_ended(pids[0])
    assert "was ended" not in exchange.log.text, "a client may leave"


def test_a_client_that_only_closed_its_sending_side_gets_its_reply(tmp_path: Path, exchange: SocketExchange) -> None:
    exchange.far.shutdown(socket.SHUT_WR)
    path = write_script(tmp_path / "script.py", HEAD + "print('hello')")
    make_model("cgi", SingleScript(str(path)), DEADLINE).run(exchange)
    assert exchange.body == b"hello\n"


@BOTH
def test_a_peer_that_takes_nothing_more_ends_the_script(model: str, tmp_path: Path) -> None:
    script = FLUSHED_HEAD + f"import os\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\nwhile True: print('x')"
    path = write_script(tmp_path / "script.py", script)

    class Gone(FakeExchange):
        def write(self, data: bytes) -> None:
            raise ConnectionLost("the peer went away")

    with pytest.raises(ConnectionLost):
        make_model(model, SingleScript(str(path)), DEADLINE).run(Gone())
    assert has_ended(int((tmp_path / "pid").read_text()))


@BOTH
def test_a_slow_client_loses_nothing_of_a_script_that_has_ended(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last pieces wait in the pipe, longer than the grace that a grandchild's output gets."""
    monkeypatch.setattr(pump, "GRACE", 0.001)
    path = write_script(tmp_path / "script.py", FLUSHED_HEAD + "print('x' * 600_000, end='')")

    class Slow(FakeExchange):
        def write(self, data: bytes) -> None:
            super().write(data)
            select.select([], [], [], 0.01)

    slow = Slow()
    make_model(model, SingleScript(str(path)), DEADLINE).run(slow)
    assert len(slow.body) == 600_000


@BOTH
def test_a_client_that_leaves_after_its_reply_does_not_end_what_the_script_still_does(
    model: str, tmp_path: Path, exchange: SocketExchange
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = FLUSHED_HEAD + f"import os\nos.close(1)\nopen('{gate}').read()\nopen('after', 'w')\n"
    path = write_script(tmp_path / "script.py", script)
    make_model(model, SingleScript(str(path)), DEADLINE).run(exchange)
    exchange.far.close()
    pid = os.fork()
    if not pid:
        try:
            gate.write_text("go")
        finally:
            os._exit(0)
    exchange.cleanups.pop()()
    os.waitpid(pid, 0)
    assert (tmp_path / "after").exists()
    assert "was ended" not in exchange.log.text


# How many.


def test_c16_more_scripts_than_allowed_wait_and_then_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permits, "QUEUE_LIMIT", 0.1)
    path = write_script(tmp_path / "script.py", HEAD + "print('hello')")
    model = CGIModel(SingleScript(str(path)), max_children=1)
    model.load()
    reader, writer = os.pipe()
    gate_reader, gate_writer = os.pipe()
    pid = os.fork()
    if not pid:  # another worker, which holds the only permit until it is killed
        try:
            with model._permits.hold():
                os.write(writer, b"x")
                os.read(gate_reader, 1)
        finally:
            os._exit(0)
    os.read(reader, 1)
    with pytest.raises(ScriptError, match="1 scripts run already") as raised:
        model.run(FakeExchange())
    assert raised.value.status == 503
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    exchange = FakeExchange()
    model.run(exchange)
    assert exchange.body == b"hello\n"
    for descriptor in (reader, writer, gate_reader, gate_writer):
        os.close(descriptor)
    model.close()


def test_permits_of_one_process_are_one_after_another() -> None:
    some = Permits(2)
    for _ in range(3):
        with some.hold():
            pass
    some.close()


# Warm imports.


def test_a_zygote_imports_ahead_what_its_script_needs_and_none_of_its_own_modules(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import colorsys\nif True:\n    from xml.dom import minidom\n")
    script = "import sys\nseen = sorted(set(sys.modules) & {'beside', 'colorsys', 'xml.dom.minidom', 'chunk'})\n" + (
        "def f():\n    import chunk\n"
        "try:\n    import beside, no_such_module\nexcept ImportError: pass\n" + HEAD + "print(seen)"
    )
    path = write_script(tmp_path / "script.py", script)
    assert run_one(FORKED["zygote"], path).text == "['colorsys', 'xml.dom.minidom']\n"
