"""``python -m bench.databases NAME FOLDER COMMAND...``: a database server of our own, and what uses it, as one server.

The database is made anew in FOLDER and listens on a UNIX socket there and nowhere else; it runs as an ordinary user
also when we are root, and is no service of this machine. When it is ready, the commands are run to their end, but for
the last, which is the server that is measured: when that ends, or when we are told to, the database is ended too.

Every server is told alike not to wait for the disk at the end of each transaction.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from bench.servers import FOLDERS
from bench.together import STOP_SECONDS, Ended, end_in_order, wait_for_one

USER = "www-data"
"""Whom a database runs as when we are root: every Debian has it, and it owns nothing."""
READY_SECONDS = 60.0
PAUSE = 0.05


class DatabaseFailed(Exception):
    """A database could not be made or started; the message says what it printed last."""


@dataclass(frozen=True, slots=True)
class Database:
    """How one kind is made and run. ``make``: commands, each with its input; ``run``: the server; ``socket``: where.

    ``{folder}`` is a folder of its own.
    """

    package: str
    programs: tuple[str, ...]
    make: tuple[tuple[str, str], ...]
    run: str
    socket: str
    stop: signal.Signals
    check: str = ""


DATABASES = {
    "mysql": Database(
        package="mariadb-server",
        programs=("mariadb-install-db", "mariadbd"),
        make=(
            (
                ("mariadb-install-db --no-defaults --datadir={folder}/data --skip-test-db"
                " --auth-root-authentication-method=normal"),
                "",
            ),
        ),
        run="mariadbd --no-defaults --datadir={folder}/data --socket={folder}/socket --pid-file={folder}/pid"
            " --skip-networking --innodb-buffer-pool-size=32M --innodb-flush-log-at-trx-commit=2",
        socket="{folder}/socket",
        stop=signal.SIGTERM,
    ),
    "postgresql": Database(
        package="postgresql",
        programs=("initdb", "postgres", "pg_isready"),
        make=(
            ("initdb --pgdata={folder}/data --username=shop --auth=trust --no-sync --encoding=UTF8 --locale=C", ""),
            ("postgres --single -D {folder}/data postgres", "CREATE DATABASE shop\n"),
        ),
        run="postgres -D {folder}/data -k {folder} -c listen_addresses= -c synchronous_commit=off"
            " -c unix_socket_permissions=0700",
        socket="{folder}/.s.PGSQL.5432",
        stop=signal.SIGINT,
        check="pg_isready --quiet --host={folder} --username=shop --dbname=shop",
    ),
}  # fmt: skip


def find_program(name: str) -> str | None:
    """Return the path of a program; of PostgreSQL's, which Debian keeps apart, the newest."""
    newest = sorted(glob("/usr/lib/postgresql/*/bin"), key=lambda path: [int(n) for n in path.split("/")[4].split(".")])
    return shutil.which(name, path=os.pathsep.join([*reversed(newest), FOLDERS]))


def find_missing(name: str) -> str:
    """Return how to install a database that is not installed, ``""`` for one that is."""
    database = DATABASES[name]
    if all(find_program(program) for program in database.programs):
        return ""
    return f"not installed: apt-get install -y --no-install-recommends {database.package}"


def as_user() -> dict[str, Any]:
    """Return what ``subprocess`` is told so that a command runs as an ordinary user."""
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwnam(USER)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def split_command(line: str, folder: Path) -> list[str]:
    """Return a command line's words, the first one as a path."""
    words = shlex.split(line.format(folder=folder))
    return [find_program(words[0]) or words[0], *words[1:]]


def make_database(database: Database, folder: Path) -> None:
    """Make an empty database in a folder; raise ``DatabaseFailed``."""
    folder.mkdir(mode=0o700)
    if identity := as_user():
        os.chown(folder, identity["user"], identity["group"])
    for line, text in database.make:
        words = split_command(line, folder)
        done = subprocess.run(
            words, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, check=False,
            **identity,
        )  # fmt: skip
        if done.returncode:
            last = (done.stdout.strip().splitlines() or ["it printed nothing"])[-1]
            raise DatabaseFailed(f"{words[0]} ended with status {done.returncode}: {last}")


def start_database(database: Database, folder: Path) -> subprocess.Popen[bytes]:
    """Start a database's server and wait until it answers; raise ``DatabaseFailed``."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            split_command(database.run, folder), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder,
            **as_user(),
        )  # fmt: skip
    deadline = time.monotonic() + READY_SECONDS
    try:
        while not is_ready(database, folder):
            if process.poll() is not None or time.monotonic() > deadline:
                last = (log.read_text(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
                raise DatabaseFailed(f"{database.package} does not answer: {last}")
            time.sleep(PAUSE)
    except BaseException:
        stop_process(process, database.stop)
        raise
    return process


def is_ready(database: Database, folder: Path) -> bool:
    """True when a database's server answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(database.socket.format(folder=folder))
        except OSError:
            return False
    return not database.check or subprocess.run(split_command(database.check, folder), check=False).returncode == 0


def stop_process(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> None:
    """End a process in order, or else at once."""
    process.send_signal(number)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_beside(commands: list[str], check: Callable[[int], None]) -> subprocess.Popen[bytes]:
    """Run every command but the last to its end, and return the last one, started."""
    for line in commands[:-1]:
        check(subprocess.run(shlex.split(line), check=False).returncode)
    return subprocess.Popen(shlex.split(commands[-1]))


def fail_unless_zero(status: int) -> None:
    """Raise ``DatabaseFailed`` for a command that failed; it has said why itself."""
    if status:
        raise DatabaseFailed("a command that prepares the database failed")


def main(words: list[str]) -> int:
    """Do as the command line says; return 0 when we were told to end, 1 when something failed or ended by itself."""
    if len(words) < 2 or words[-1 if words[0] == "check" else 0] not in DATABASES:
        print(f"usage: python -m bench.databases [check] {'|'.join(DATABASES)} FOLDER COMMAND...", file=sys.stderr)
        return 2
    if missing := find_missing(words[-1] if words[0] == "check" else words[0]):
        print(missing, file=sys.stderr)
        return 1
    return 0 if words[0] == "check" else run_database(DATABASES[words[0]], Path(words[1]), words[2:])


def run_database(database: Database, folder: Path, commands: list[str]) -> int:
    """Make and start a database, and run the commands beside it; return the exit status."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end_in_order)
    running: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
    status = 1
    try:
        make_database(database, folder)
        running.append((start_database(database, folder), database.stop))
        running.append((run_beside(commands, fail_unless_zero), signal.SIGTERM))
        wait_for_one([process for process, _ in running])
    except DatabaseFailed as error:
        print(f"error: {error}", file=sys.stderr)
    except Ended:
        status = 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for process, number in reversed(running):
        stop_process(process, number)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
