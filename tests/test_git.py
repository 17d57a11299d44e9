"""git's own CGI program behind every wire of every front server: clone and push of 5,000 commits, byte for byte.

``git http-backend`` is a CGI program that was written for Apache. A fetch sends a gzip body, a large push a chunked one
without a length; what comes back is binary and large, and any lost or added byte breaks the clone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.behind import Place, lack, serve_behind
from tests.real import read_programs

COMMITS = 5000
BRANCHES = 60
"""So many that a fetch has more than 1,024 bytes to say, which git then sends as gzip."""
BUFFER = 65536
"""The least ``http.postBuffer`` that git works with; a larger push is chunked."""
PUSHED = 200_000

PROGRAM = read_programs()["git"]
NEEDS_LENGTH = {("apache", "scgi"), ("apache", "uwsgi")}
"""Here httpd itself answers 411 to a request body that comes in chunks."""

OWN = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org",
}  # fmt: skip
"""So that nothing of whoever runs the tests takes part."""


@dataclass(frozen=True)
class Git:
    """git as one client runs it. ``trace``: the file to which it appends the heads of what it sends and receives."""

    trace: Path | None = None

    def run(
        self, *words: str | Path, data: bytes | None = None, folder: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git and return how it went."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        traced = {"GIT_TRACE_CURL": str(self.trace), "GIT_TRACE_CURL_NO_DATA": "1"} if self.trace else {}
        return subprocess.run(
            ["git", *words], input=data, cwd=folder, env={**kept, **OWN, **traced}, capture_output=True, timeout=60,
            check=False,
        )  # fmt: skip

    def __call__(self, *words: str | Path, data: bytes | None = None, folder: Path | None = None) -> str:
        """Return what git prints; it must not fail."""
        done = self.run(*words, data=data, folder=folder)
        assert done.returncode == 0, f"git {' '.join(map(str, words))}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def sent(self, field: str) -> bool:
        """Whether a field line went out."""
        return self.trace is not None and f"Send header: {field}\n" in self.trace.read_text(errors="replace")


ask = Git()


def format_history(commits: int) -> bytes:
    """A stream for ``git fast-import``: every commit changes one of 700 files."""
    pieces = []
    for number in range(1, commits + 1):
        content = hashlib.sha256(b"%d" % number).hexdigest().encode() * 4
        message = b"Commit %d\n" % number
        pieces.append(
            b"commit refs/heads/main\ncommitter C <c@example.org> %d +0000\ndata %d\n%s"
            b"M 644 inline folder-%02d/file-%d\ndata %d\n%s\n"
            % (10**9 + number, len(message), message, number % 50, number % 700, len(content), content)
        )
    return b"".join([*pieces, b"done\n"])


@pytest.fixture(scope="module")
def origin() -> Iterator[Path]:
    """A folder with ``git/history.git``, a bare repository of 5,000 commits and 61 branches."""
    if shutil.which("git") is None:
        lack("git is not installed")
    with tempfile.TemporaryDirectory(prefix="gateways-") as name:
        folder = Path(name)
        bare = folder / "git" / "history.git"
        bare.parent.mkdir()
        ask("init", "--quiet", "--bare", "--initial-branch=main", bare)
        ask("fast-import", "--quiet", "--done", data=format_history(COMMITS), folder=bare)
        head = ask("rev-parse", "main", folder=bare)
        tips = ask("rev-list", f"--max-count={BRANCHES}", head, folder=bare).split()
        orders = "".join(f"create refs/heads/b{number} {tip}\n" for number, tip in enumerate(tips))
        ask("update-ref", "--stdin", data=orders.encode(), folder=bare)
        ask("config", "http.receivepack", "true", folder=bare)
        yield folder


@pytest.fixture(scope="module")
def configuration(origin: Path) -> str:
    """``conf/real/git.toml``, set up in the folder of the origin."""
    program = Path(ask("--exec-path")) / "git-http-backend"
    if not program.exists():
        lack(f"this git has no {program.name}")
    return re.sub('(?<=Target = ").*(?=")', str(program), PROGRAM.set_up(origin))


def commit_file(clone: Path, size: int) -> str:
    """Commit ``size`` bytes that do not compress; return the commit."""
    (clone / "new").write_bytes(os.urandom(size))
    ask("add", "new", folder=clone)
    ask("commit", "--quiet", "--message", "New", folder=clone)
    return ask("rev-parse", "HEAD", folder=clone)


@pytest.fixture
def place(request: pytest.FixtureRequest, configuration: str) -> Iterator[Place]:
    front, wire = request.param
    with serve_behind(configuration, front, wire) as made:
        yield made


def mark(front: str, wire: str) -> object:
    marks = [pytest.mark.front(front)] if front else []
    return pytest.param((front, wire), marks=marks, id=f"{front or 'direct'}-{wire}")


@pytest.mark.parametrize("place", [mark(*way) for way in PROGRAM.ways], indirect=True)
def test_clone_and_push(place: Place, origin: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    way = request.node.callspec.params["place"]
    url = f"http://{place.authority}/git/history.git"
    bare, clone, shallow = origin / "git" / "history.git", tmp_path / "clone", tmp_path / "shallow"
    git = Git(tmp_path / "trace")

    git("clone", "--quiet", url, clone)
    assert int(ask("rev-list", "--count", "HEAD", folder=clone)) == COMMITS
    assert ask("rev-parse", "HEAD", folder=clone) == ask("rev-parse", "main", folder=bare)
    assert len(ask("branch", "--remotes", "--list", "origin/b*", folder=clone).split()) == BRANCHES
    assert git.sent("Content-Encoding: gzip")

    git("clone", "--quiet", "--depth=3", url, shallow)
    assert ask("rev-list", "--count", "HEAD", folder=shallow) == "3"
    git("fetch", "--quiet", "--unshallow", folder=shallow)
    assert int(ask("rev-list", "--count", "HEAD", folder=shallow)) == COMMITS

    pushed = commit_file(clone, PUSHED)
    branch = f"refs/heads/{'-'.join(way).strip('-')}"
    push = ["push", "--quiet", "origin", f"HEAD:{branch}"]
    in_chunks = git.run("-c", f"http.postBuffer={BUFFER}", *push, folder=clone)
    assert git.sent("Transfer-Encoding: chunked")
    if way in NEEDS_LENGTH:
        assert b"HTTP 411" in in_chunks.stderr
        git(*push, folder=clone)
    else:
        assert in_chunks.returncode == 0, in_chunks.stderr.decode()
    assert ask("rev-parse", branch, folder=bare) == pushed
    ask("update-ref", "-d", branch, folder=bare)


def test_what_git_asks_in_vain(configuration: str, tmp_path: Path) -> None:
    """A repository that is not there is 404, and one that takes no pushes 403, as the program says."""
    said = ["git-http-backend: Not a git repository", "git-http-backend: Unsupported service: 'git-upload-archive'"]
    with serve_behind(configuration, "", "http", wanted=said) as place:
        nothing = ask.run("clone", f"http://{place.authority}/git/nothing.git", tmp_path / "nothing")
        assert b"not found" in nothing.stderr
        server = place.server
        assert server is not None
        assert server.get("/git/history.git/info/refs?service=git-upload-archive")[0] == 403
