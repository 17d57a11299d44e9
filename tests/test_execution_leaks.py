"""What scripts leave behind in the serving process: bounded by its replacement, and named in the log."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways.execution.sources import SingleScript
from tests.script_runs import IN_PROCESS, Call, run_calls, write_script
from tests.servers import ROOT, serving

HEAD = 'print("Content-Type: text/plain\\n")\n'
LEAKY = (ROOT / "bench" / "trials" / "leaky.py").read_text()
RUNS, FILES = 400, 120
SAID = ("leaves 2 descriptors open in each run", "descriptors? open, and .* this process will be replaced",
        "left a thread running", "left the temporary folder")  # fmt: skip


@pytest.fixture
def few_files() -> Iterator[None]:
    """A low limit of open files, for what is started meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("namespace", ["fresh", "shared"])
def test_a_script_that_cleans_up_nothing_is_answered_and_bounded_and_named(
    namespace: str, tmp_path: Path, few_files: None
) -> None:
    script = write_script(tmp_path / "leaky.py", LEAKY)
    words = (
        "--environment", f"LEAKY_FOLDER={tmp_path}", "--model", "registry", "--namespace", namespace,
        "--process-manager", "static", "--max-servers", "2",
    )  # fmt: skip
    seen = []
    with serving(tmp_path, str(script), *words, wanted=SAID) as server:
        for number in range(RUNS):
            status, body = server.get("/?thread" if number % 100 == 99 else "/")
            assert status == 200, server.read_log()[-3000:]
            seen.append([int(word) for word in body.split()])
    assert max(row[1] for row in seen) <= FILES // 2 + 3 * 16 * 2
    assert max(row[2] for row in seen) <= 2
    assert len({row[0] for row in seen}) > 6, "workers were replaced"
    assert server.read_log().count("leaves 2 descriptors open in each run") >= 2


CLEAN = [
    ("closes-what-it-opens", "with open(__file__) as file: file.read()"),
    ("leaves-it-to-its-namespace", "import socket\nfile = open(__file__)\nconnection = socket.socket()"),
    ("leaves-it-in-a-circle", "class A: pass\na = A()\na.self, a.file = a, open(__file__)"),
    ("opens-once-what-stays", "import builtins\nif not hasattr(builtins, 'kept'): builtins.kept = open(__file__)"),
    ("removes-its-folder", "import tempfile\nwith tempfile.TemporaryDirectory(): pass"),
    ("opens-nothing", ""),
]


@pytest.mark.parametrize("model", IN_PROCESS)
@pytest.mark.parametrize("text", [row[1] for row in CLEAN], ids=[row[0] for row in CLEAN])
def test_a_script_that_leaves_nothing_is_not_accused(model: str, text: str, tmp_path: Path) -> None:
    script = write_script(tmp_path / "script.py", HEAD + text)
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(script)), *[Call()] * 20)
    assert not [outcome.log for outcome in outcomes if "open in each run" in outcome.log or "left" in outcome.log]
    assert not any(outcome.recycling for outcome in outcomes)


@pytest.mark.parametrize("model", IN_PROCESS)
def test_a_temporary_folder_that_stays_is_named_once(model: str, tmp_path: Path) -> None:
    script = write_script(tmp_path / "script.py", HEAD + f"import tempfile\ntempfile.mkdtemp(dir={str(tmp_path)!r})")
    outcomes = run_calls(IN_PROCESS[model], SingleScript(str(script)), *[Call()] * 5)
    said = [outcome.log for outcome in outcomes if outcome.log]
    assert len(said) == 1
    assert f"script.py: left the temporary folder {tmp_path}/{tempfile.gettempprefix()}" in said[0]
