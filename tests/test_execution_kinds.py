"""Every kind of script under every mode that runs scripts, over a real server: one table, kind by mode.

Each mode is a pool of its own with one worker, so that what one script leaves behind is what the next one finds.
"""

from __future__ import annotations

import fnmatch
import os
import re
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from gateways.execution.sources import SingleScript
from tests.script_kinds import (
    CUT,
    CUT_OR_500,
    FLUSHED,
    FORKED,
    IN_PROCESS,
    KINDS,
    MODES,
    PAGE_500,
    TYPE,
    Kind,
)
from tests.script_runs import MODELS, Call, Outcome, run_apart, run_call, write_script
from tests.servers import DEADLINE, Server, has_ended, serving, wait_until

EVERY_MODE = pytest.mark.parametrize("mode", MODES)
SECRETS = {"AWS_SECRET": "s3cret", "API_TOKEN": "s3cret", "DATABASE_URL": "s3cret", "LANG": "C.UTF-8"}
MOUNT = """
[pool.{mode}]
Listen = "127.0.0.1:0"
ProcessManager = "static"
MaxServers = 1
[[pool.{mode}.Mount]]
Path = "/{mode}/"
Target = "{mode}/scripts"
DirectoryIndex = ["index.cgi", "index.py"]
Environment = {{ OWN = "yes", LANG = "mount" }}
{model}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. ``whole``: False when it was cut, ``status`` CUT when there was none."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class Site:
    """The server of all modes."""

    server: Server
    folder: Path
    ports: dict[str, int]

    def path(self, mode: str, name: str) -> Path:
        return self.folder / mode / "scripts" / name

    def ask(
        self, mode: str, target: str, method: str = "GET", fields: tuple[str, ...] = (), body: bytes = b""
    ) -> Answer:
        with socket.create_connection(("127.0.0.1", self.ports[mode]), DEADLINE) as sock:
            lines = "".join(f"{line}\r\n" for line in (*fields, *([f"Content-Length: {len(body)}"] if body else ())))
            head = f"{method} {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{lines}\r\n"
            sock.sendall(head.encode() + body)
            return read_answer(sock, method)

    def get(self, mode: str, name: str) -> str:
        """The body of a good answer."""
        answer = self.ask(mode, f"/{mode}/{name}")
        assert (answer.status, answer.whole) == (200, True), (answer, self.server.read_log()[-2000:])
        return answer.body.decode()


def read_answer(sock: socket.socket, method: str, data: bytes = b"") -> Answer:
    """Read to the connection's end, or to its reset. ``data``: what was read before."""
    with suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            data += piece
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return Answer(CUT, [], data, False)
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    status, known = int(first.split()[1]), dict(fields)
    if method == "HEAD" or status in (204, 304):
        return Answer(status, fields, body, True)
    if known.get("Transfer-Encoding") == "chunked":
        return Answer(status, fields, *join_chunks(body))
    return Answer(status, fields, body, len(body) == int(known["Content-Length"]))


def join_chunks(data: bytes) -> tuple[bytes, bool]:
    """Return (body, whether its end was there)."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        if not count:
            return body, data == b"\r\n"
        body, data = body + data[:count], data[count + 2 :]
    return body, False


def make_folder(folder: Path, mode: str) -> None:
    """Write one mode's scripts, and what lies beside them."""
    scripts = folder / mode / "scripts"
    (scripts / "sub").mkdir(parents=True)
    (scripts / "beside.py").write_text("NAME = 'beside'")
    (scripts / "broken.py").write_text("1/0")
    (scripts / "plain.txt").write_text('loaded = "plain"')
    write_script(scripts / "sub" / "index.py", TYPE + "print('index')")
    write_script(folder / mode / "secret.py", TYPE + "print('secret')")
    write_script(scripts / ".hidden.py", TYPE + "print('hidden')")
    (scripts / "link-out.py").symlink_to(folder / mode / "secret.py")
    os.mkfifo(scripts / "fifo.py")
    for kind in KINDS:
        if kind.script:
            text = kind.script
            text = text.replace("{base}", f"/{mode}/") if isinstance(text, str) else text
            write_script(scripts / (kind.name or f"{kind.id}.py"), text, kind.executable)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("kinds")
    for mode in MODES:
        make_folder(folder, mode)
    config = folder / "site.toml"
    config.write_text("".join(MOUNT.format(mode=mode, model=model) for mode, model in MODES.items()))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        with serving(folder, "--config", str(config), bind=False, tolerated=TOLERATED) as server:
            found = re.findall(r"127\.0\.0\.1:([0-9]+)/([a-z-]+)/", server.said)
            yield Site(server, folder, {mode: int(port) for port, mode in found})
            end_grandchildren(folder)


TOLERATED = (
    r"/scripts/",
    r"worker [0-9]+ \(pool .* (was killed by SIGKILL|exited with status 3) while busy",
    "no script answers '/",
    "an application may not send Transfer-Encoding",
    "more than 10 internal redirects",
)
"""Complaints about a script, which its row asks for; a worker that a script ended. Nothing else may be in the log."""


def end_grandchildren(folder: Path) -> None:
    """End what the scripts of C10 left running, by the pids that they wrote down."""
    for file in folder.glob("*/scripts/pids"):
        for pid in map(int, file.read_text().split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@EVERY_MODE
@pytest.mark.parametrize("kind", KINDS, ids=[kind.id for kind in KINDS])
def test_a_kind_of_script(kind: Kind, mode: str, site: Site, tmp_path: Path) -> None:
    base = f"/{mode}/"
    status, body = kind.under.get(mode, (kind.status, kind.body))
    before = len(site.server.read_log())
    mark = tmp_path / "mark"
    answer = site.ask(
        mode, base + (kind.name or f"{kind.id}.py") + kind.target.replace("{mark}", str(mark)), kind.method,
        kind.fields, kind.sent,
    )  # fmt: skip
    if body == CUT_OR_500 and answer.whole:
        assert (answer.status, answer.body) == (500, PAGE_500.encode())
    elif body in (CUT, CUT_OR_500):
        assert not answer.whole, answer
        assert status in (CUT, answer.status)
    else:
        assert isinstance(body, str | bytes)
        expected = body.encode() if isinstance(body, str) else body
        expected = expected.replace(b"{base}", base.encode())
        seen = (answer.status, answer.body, answer.whole)
        assert seen == (status, expected, True) or (
            b"*" in expected and fnmatch.fnmatchcase(answer.body.decode(), expected.decode())
        ), site.server.read_log()[before:]
    for pair in kind.has:
        assert pair in answer.fields
    if kind.said and mode not in kind.unsaid:
        wait_until(lambda: re.search(kind.said, site.server.read_log()[before:]) is not None, kind.said)
    assert ("{mark}" not in kind.target) or mark.exists()


# What takes more than one request.


def write_at(path: Path, text: str, seconds: int) -> None:
    """Write a script whose file was changed ``seconds`` before or after the last one's."""
    last = path.stat().st_mtime_ns if path.exists() else 0
    write_script(path, text)
    if last:
        os.utime(path, ns=(last, last + seconds * 10**9))


CLOSURE = (
    TYPE
    + """
def make():
    count = [0]
    def increment():
        count[0] += 1
        return count[0]
    return increment
if "increment" not in globals():
    increment = make()
print(increment(), increment())
"""
)
FRESH, KEPT = "1 2\n", "3 4\n"
TOUCHES = [("untouched", None), ("newer", 5), ("older", -5)]
CLOSURES = [
    (mode, touch, seconds, KEPT if mode == "registry-bb" or (mode == "registry-shared" and seconds is None) else FRESH)
    for mode in MODES
    for touch, seconds in TOUCHES
]


@pytest.mark.parametrize(("mode", "touch", "seconds", "second"), CLOSURES, ids=[f"{r[0]}-{r[1]}" for r in CLOSURES])
def test_a_closure_lives_as_long_as_its_namespace(
    mode: str, touch: str, seconds: int | None, second: str, site: Site
) -> None:
    """Kept by a shared namespace, until the file differs and is compiled anew; RegistryBB never looks."""
    name = f"closure-{touch}.py"
    write_at(site.path(mode, name), CLOSURE, 0)
    assert site.get(mode, name) == FRESH
    if seconds is not None:
        write_at(site.path(mode, name), CLOSURE, seconds)
    assert site.get(mode, name) == second


@EVERY_MODE
def test_a_changed_script_is_seen_where_files_are_looked_at(mode: str, site: Site) -> None:
    write_at(site.path(mode, "changes.py"), TYPE + "print('one')", 0)
    assert site.get(mode, "changes.py") == "one\n"
    write_at(site.path(mode, "changes.py"), TYPE + "print('two')", -1)
    assert site.get(mode, "changes.py") == ("one\n" if mode == "registry-bb" else "two\n")


@EVERY_MODE
def test_a_module_beside_the_script_is_loaded_anew_unless_it_is_kept(mode: str, site: Site) -> None:
    """Two folders have a module of the same name, and one of them changes: what a registry has loaded, it keeps."""
    kept = mode.startswith("registry")
    for folder in ("one", "two"):
        (site.path(mode, folder)).mkdir()
        site.path(mode, f"{folder}/same.py").write_text(f"NAME = {folder!r}")
        write_script(site.path(mode, f"{folder}/script.py"), TYPE + "import same\nprint(same.NAME)")
    assert site.get(mode, "one/script.py") == "one\n"
    assert site.get(mode, "two/script.py") == ("one\n" if kept else "two\n")
    write_at(site.path(mode, "one/same.py"), "NAME = 'three'", 5)
    assert site.get(mode, "one/script.py") == ("one\n" if kept else "three\n")


@EVERY_MODE
def test_a_script_that_fails_does_not_spoil_the_next(mode: str, site: Site) -> None:
    for name in ("500-runtime-error.py", "500-syntax-error.py", "C06-status-abc.py"):
        site.ask(mode, f"/{mode}/{name}")
        assert site.get(mode, "basic.py") == "hello\n"


@EVERY_MODE
def test_a_flush_reaches_the_client_while_the_script_runs(mode: str, site: Site) -> None:
    script = FLUSHED + "print('first', flush=True)\nopen({gate!r}).read()\nprint('second')"
    gate = site.path(mode, "gate")
    os.mkfifo(gate)
    write_script(site.path(mode, "flushes.py"), script.format(gate=str(gate)))
    with socket.create_connection(("127.0.0.1", site.ports[mode]), DEADLINE) as sock:
        sock.sendall(f"GET /{mode}/flushes.py HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while b"first" not in data:
            data += sock.recv(65536)
        assert b"second" not in data
        gate.write_text("go")
        assert read_answer(sock, "GET", data).body == b"first\nsecond\n"


@EVERY_MODE
def test_c11_a_client_that_leaves_costs_only_its_own_request(mode: str, site: Site) -> None:
    script = FLUSHED + "import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: print('x' * 1000, flush=True)"
    write_script(site.path(mode, "endless.py"), script)
    with socket.create_connection(("127.0.0.1", site.ports[mode]), DEADLINE) as sock:
        sock.sendall(f"GET /{mode}/endless.py HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        while b"xxx" not in sock.recv(65536):
            pass
    assert site.get(mode, "basic.py") == "hello\n"
    if mode in FORKED:
        wait_until(lambda: has_ended(int(site.path(mode, "pid").read_text())), "the script's end")


@pytest.mark.parametrize("mode", IN_PROCESS)
def test_c17_what_a_child_of_a_script_does_is_its_own(mode: str, site: Site) -> None:
    script = FLUSHED + "import os\npid = os.fork()\nif not pid:\n    os.chdir('/')\n    os._exit(4)\n"
    write_script(site.path(mode, "forks.py"), script + "print(os.waitpid(pid, 0)[1] >> 8)")
    assert site.get(mode, "forks.py") == "4\n"
    assert site.get(mode, "basic.py") == "hello\n"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_c15_b107_no_locale_changes_what_a_script_sees(
    locale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    script = write_script(tmp_path / "script.py", TYPE + "import os\nprint(os.environb[b'PATH_INFO'])")
    models = ("cgi", "zygote", "perlrun", "registry")
    config = tmp_path / "site.toml"
    config.write_text(
        '[pool.all]\nListen = "127.0.0.1:0"\nProcessManager = "static"\nMaxServers = 1\n'
        + "".join(f'[[pool.all.Mount]]\nPath = "/{m}/"\nTarget = "{script}"\nModel = "{m}"\n' for m in models)
    )
    with serving(tmp_path, "--config", str(config), bind=False) as server:
        for model in models:
            assert server.get(f"/{model}/%e9%c3%a5") == (200, b"b'/\\xe9\\xc3\\xa5'\n"), model


COUNTS = (
    TYPE
    + """
import os, select
open(f"running/{os.getpid()}", "w").close()
print(len(os.listdir("running")))
while not os.path.exists("gate"):
    select.select([], [], [], 0.01)
os.unlink(f"running/{os.getpid()}")
"""
)


@pytest.mark.parametrize("model", FORKED)
def test_c16_no_more_scripts_run_than_there_are_workers(model: str, tmp_path: Path) -> None:
    """Those that are too many wait in the kernel's queue, and are answered."""
    script = write_script(tmp_path / "script.py", COUNTS)
    (tmp_path / "running").mkdir()
    with serving(tmp_path, str(script), "--model", model, "--process-manager", "static", "--max-servers", "2") as it:
        clients = [it.connect() for _ in range(6)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        wait_until(lambda: len(os.listdir(tmp_path / "running")) == 2, "two scripts that run")
        (tmp_path / "gate").touch()
        bodies = [read_answer(client, "GET").body for client in clients]
        for client in clients:
            client.close()
    assert set(bodies) <= {b"1\n", b"2\n"}, bodies


@pytest.mark.parametrize("model", MODELS)
def test_a_script_that_may_not_be_read_is_403(model: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        path = write_script(Path(name) / "script.py", TYPE + "print('hello')")
        path.chmod(0)

        def work() -> Outcome:
            import_module("gateways.execution.zygote_process")  # this Python may be another user's, too
            if os.geteuid() == 0:
                os.setuid(65534)
            made = MODELS[model](SingleScript(str(path)))
            made.load()
            return run_call(made, Call())

        outcome: Outcome = run_apart(work)
    assert outcome.code == 403
