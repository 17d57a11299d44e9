"""The servers of a comparison: each started when it is first needed, and all stopped together.

Knows plans, servers and front servers; nothing of loads or rounds. Whatever cannot run is remembered with its reason,
and is tried once.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from bench import fronts
from bench.harness import Target
from bench.peers import Peer, read_peers
from bench.plan import Case, Page, Part, Plan, Service
from bench.servers import Recipe, Server, ServerFailed, serve_command, start_server

SETUP_SECONDS = 120.0
USER = "www-data"
"""Whom front servers run as when they are started by root."""


class Stage:
    """The servers that run for a plan; a context that stops them."""

    def __init__(self, plan: Plan, core: int | None, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.core = core
        self.say = say
        self.stack = ExitStack()
        self.started: dict[str, Server | ServerFailed] = {}
        self.folders: dict[str, Path] = {}
        self.peers = {peer.name: peer for peer in read_peers()}

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.close()

    def open_folder(self, key: str) -> Path:
        """Return a new folder that is removed at the end, and that a server's own user may write to."""
        folder = Path(tempfile.mkdtemp(prefix="gateways-bench-"))
        self.stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(USER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.folders[key] = folder
        return folder

    def open(self, key: str, make: Callable[[Path], Recipe]) -> Server:
        """Return the server called ``key``, started if it is not; raise ``ServerFailed`` as it did the first time."""
        if key not in self.started:
            try:
                server = start_server(make(self.open_folder(key)), self.core)
            except ServerFailed as error:
                self.started[key] = error
                self.say(f"{key}: {error}")
            except ValueError as error:
                self.started[key] = ServerFailed(f"its answer cannot be read: {error}")
                self.say(f"{key}: {self.started[key]}")
            else:
                self.stack.callback(server.stop)
                self.started[key] = server
        found = self.started[key]
        if isinstance(found, ServerFailed):
            raise found
        return found

    def open_service(self, name: str) -> Server:
        """Return a service's server; raise ``ServerFailed``."""
        service = self.plan.service(name)
        return self.open(name, lambda folder: make_recipe(service, folder, self.peers))

    def describe(self, name: str) -> str:
        """Return a service's command line for a reader, without the names of this run's folders."""
        return (
            self.open_service(name)
            .describe()
            .replace(str(self.folders[name]), "FOLDER")
            .replace(sys.executable, "python")
        )

    def open_front(self, name: str, service: Service, reuse: bool, ready: str) -> Server:
        """Return a front server that stands before a service; raise ``ServerFailed``."""
        port = self.open_service(service.name).port
        key = f"{name}{' (kept connections)' if reuse else ''} before {service.name}"
        return self.open(key, lambda folder: fronts.make_recipe(name, service.wire, port, reuse, folder, ready))

    def make_target(self, part: Part, case: Case, page: Page) -> Target:
        """Return where a contender of a case is asked for its page; raise ``ServerFailed`` when it does not run."""
        service, path = self.plan.service(part.service), self.plan.path_of(part, page)
        server = self.open_service(service.name)
        name, reuse = (part.front, part.reuse) if part.front else (case.front, case.reuse)
        prepare = self.make_hook(service)
        if not name:
            return Target(part.name, server.port, path, server.pid, None, service.wire, 0, prepare)
        front = self.open_front(name, service, reuse, path)
        return Target(part.name, front.port, path, server.pid, None, "http", front.pid, prepare)

    def make_hook(self, service: Service) -> Callable[[], str]:
        """Return what runs a service's ``before`` commands and tells what failed."""
        folder = self.folders[service.name]
        commands = [fill_in(line, folder, 0) for line in service.before]
        environment = fill_environment(service, folder, 0)

        def prepare() -> str:
            return next(filter(None, (run_command(command, environment) for command in commands)), "")

        return prepare


def make_recipe(service: Service, folder: Path, peers: Mapping[str, Peer]) -> Recipe:
    """Return how to start a service; raise ``ServerFailed`` when its peer is not in the table."""
    if service.peer:
        if service.peer not in peers or service.wire not in peers[service.peer].start:
            raise ServerFailed(f"the peers table has no {service.peer} that speaks {service.wire}")
        recipe = peers[service.peer].make_recipe(service.wire, str(folder), service.workers)
        before = recipe.prepare
    else:
        recipe, before = Recipe(service.name, service.name, lambda port: make_words(service, folder, port)), None
    environment = fill_environment(service, folder, 0)

    def prepare(port: int) -> None:
        if before is not None:
            before(port)
        for line in service.setup:
            if failed := run_command(fill_in(line, folder, port), environment):
                raise ServerFailed(failed)

    def missing() -> str:
        unmet = (how for how, line in service.needs.items() if run_command(fill_in(line, folder, 0), environment))
        return next((f"not installed: {how}" for how in unmet), "") or recipe.missing()

    return Recipe(
        service.name, recipe.label, recipe.command, missing,
        service.ready if service.ready != "/" else recipe.ready_path, service.wire, recipe.stop_signal, prepare,
        environment,
    )  # fmt: skip


def make_words(service: Service, folder: Path, port: int) -> list[str]:
    """Return the command line of a service that is no peer."""
    if service.command:
        return fill_in(service.command, folder, port)
    if service.config:
        return serve_command(port, "--config", service.config, wire=service.wire)
    options = [word for option in service.options for word in fill_in(option, folder, port)]
    return serve_command(port, service.target, "--model", service.model, *options, wire=service.wire)


def fill_in(line: str, folder: Path, port: int) -> list[str]:
    """Return a command line's words with the placeholders filled in."""
    return [word.format(folder=folder, port=port, python=sys.executable) for word in shlex.split(line)]


def fill_environment(service: Service, folder: Path, port: int) -> dict[str, str]:
    """Return a service's environment with the placeholders filled in."""
    return {
        name: value.format(folder=folder, port=port, python=sys.executable)
        for name, value in service.environment.items()
    }


def run_command(words: list[str], environment: Mapping[str, str]) -> str:
    """Run a command to its end; return what failed, ``""`` when nothing did."""
    try:
        done = subprocess.run(
            words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SETUP_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{shlex.join(words)}: {error}"
    last = (done.stdout.strip().splitlines() or ["it printed nothing"])[-1]
    return f"{shlex.join(words)} ended with status {done.returncode}: {last}" if done.returncode else ""
