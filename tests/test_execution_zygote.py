"""The zygote: one for a worker, started again when it is lost, and gone with its worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gateways.core.errors import LoadError
from gateways.execution import zygote_control
from gateways.execution.sources import SingleScript
from gateways.execution.zygote import ZygoteModel
from tests.script_runs import Call, Outcome, run_apart, run_call, write_script
from tests.servers import children, has_ended, wait_until

HEAD = 'print("Content-Type: text/plain\\n")\n'


def make(path: Path, preloaded: bool = False) -> ZygoteModel:
    model = ZygoteModel(SingleScript(str(path)), time_limit=20, preloaded=preloaded)
    model.load()
    return model


@pytest.mark.parametrize("preloaded", [False, True], ids=["a-new-interpreter", "a-fork-of-the-worker"])
def test_one_zygote_serves_all_mounts_and_ends_with_the_last(preloaded: bool, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "import os\nprint(os.getppid())")

    def work() -> tuple[list[str], list[int], list[int]]:
        models = [make(path, preloaded) for _ in range(3)]
        texts = [run_call(model, Call()).text for model in models]
        with_them = [pid for pid, _ in children(os.getpid())]
        for model in models:
            model.close()
        return texts, with_them, [pid for pid, _ in children(os.getpid())]

    texts, with_them, after = run_apart(work)
    assert texts == [f"{with_them[0]}\n"] * 3
    assert (len(with_them), after) == (1, [])


def test_a_zygote_that_was_lost_between_two_requests_is_started_again(tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "import os\nprint(os.getppid())")

    def work() -> list[Outcome]:
        model = make(path)
        first = run_call(model, Call())
        os.kill(int(first.text), signal.SIGKILL)
        wait_until(lambda: has_ended(int(first.text)), "its end")
        return [first, run_call(model, Call())]

    first, second = run_apart(work)
    assert (second.status, second.error) == ("200 OK", "")
    assert second.text != first.text


def test_a_zygote_that_is_lost_while_its_child_runs_costs_that_request_only(tmp_path: Path) -> None:
    script = (
        HEAD + "import os, signal\nif os.environ['QUERY_STRING']: os.kill(os.getppid(), signal.SIGKILL)\nprint('x')"
    )
    path = write_script(tmp_path / "script.py", script)

    def work() -> list[Outcome]:
        model = make(path)
        return [run_call(model, Call(target=target)) for target in ("/?kill", "/", "/")]

    killed, *others = run_apart(work)
    assert (killed.error, killed.code) == ("ScriptError", 500)
    assert "its zygote was lost" in killed.message
    assert [outcome.text for outcome in others] == ["x\n"] * 2


def test_a_worker_that_is_killed_takes_its_zygote_and_the_script_along(tmp_path: Path) -> None:
    script = "import os, signal\nopen('pids', 'w').write(f'{os.getpid()} {os.getppid()}')\nsignal.pause()"
    path = write_script(tmp_path / "script.py", script)
    worker = os.fork()
    if not worker:
        try:
            run_call(make(path), Call())
        finally:
            os._exit(0)
    pids = tmp_path / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2, "the script")
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    for pid in map(int, pids.read_text().split()):
        wait_until(lambda pid=pid: has_ended(pid), "everybody's end")


def test_signals_for_the_worker_do_not_end_its_zygote_and_reach_no_child(tmp_path: Path) -> None:
    script = HEAD + (
        "import os, signal\nnames = ('SIGTERM', 'SIGHUP', 'SIGINT', 'SIGUSR1', 'SIGUSR2', 'SIGQUIT')\n"
        "print(os.getppid(), [n for n in names if signal.getsignal(getattr(signal, n)) not in "
        "(signal.SIG_DFL, signal.default_int_handler)], signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    )
    path = write_script(tmp_path / "script.py", script)

    def work() -> list[Outcome]:
        model = make(path)
        first = run_call(model, Call())
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
            os.kill(int(first.text.split()[0]), number)
        return [first, run_call(model, Call())]

    first, second = run_apart(work)
    assert first.text == second.text
    assert first.text.endswith(" [] set()\n")


@pytest.mark.parametrize("size", [1000, 31_000, 40_000, 900_000])
def test_an_environment_of_any_size_arrives(size: int, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.py", HEAD + "import os\nprint(len(os.environ['HTTP_X']))")
    outcome: Outcome = run_apart(lambda: run_call(make(path), Call(fields=[("X", "x" * size)])))
    assert outcome.text == f"{size}\n"


def test_a_zygote_that_cannot_be_started_is_said_when_the_worker_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_script(tmp_path / "script.py", HEAD)
    monkeypatch.setattr(zygote_control, "_BOOT", "raise SystemExit(3)")
    with pytest.raises(LoadError, match="the zygote did not start"):
        make(path)
