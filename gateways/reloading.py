"""``gateways serve --reload``, for development: a process beside the supervisor that tells it when a file has changed.

The supervisor does not know of it: it gets HUP, as from anybody, and does what HUP means. Whether a change is any good
shows when the new generation is tried: while it cannot be loaded, the old workers serve. The process ends with the
supervisor. The one module that imports ``watchfiles``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from gateways.core.errors import ConfigurationError

if TYPE_CHECKING:
    from gateways.config.settings import ServerSettings

SUFFIXES = (".py", ".html", ".jinja", ".jinja2", ".j2", ".xsl", ".xslt")
"""What an application is made of, as a rule; what else is in its folders may be what it writes."""
LOOK = 500
"""Milliseconds between two looks whether the supervisor is still there."""
KEEP_ALIVE = 1.0
"""Seconds that a browser's connection is kept: the next click shall meet the new workers."""
NO_LIBRARY = (
    "--reload needs the package watchfiles: install it where this Python finds it, or reload by `kill -HUP` instead"
)


class Watched(NamedTuple):
    """What to watch: ``folders`` with all below them. Of these ``files`` and what is in ``programs`` counts whatever
    its name is; the rest by ``SUFFIXES``."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    programs: tuple[str, ...]


def check_library() -> None:
    """Raise ``ConfigurationError`` when the library that watches is not installed."""
    if find_spec("watchfiles") is None:
        raise ConfigurationError(NO_LIBRARY)


def soften(settings: ServerSettings) -> ServerSettings:
    """Return the settings as they are best while somebody edits and looks, edits and looks."""
    from dataclasses import replace

    pools = tuple(
        replace(pool, keep_alive_timeout=min(pool.keep_alive_timeout or KEEP_ALIVE, KEEP_ALIVE))
        for pool in settings.pools
    )
    return replace(settings, pools=pools)


def plan_watched(settings: ServerSettings) -> Watched:
    """Return what a server's applications and its configuration are made of; no folder is inside another."""
    targets = [mount.target for pool in settings.pools for mount in pool.mounts]
    programs = [target.path for target in targets if target.kind == "folder"]
    files = [target.path for target in targets if os.path.isabs(target.path) and target.path not in programs]
    files += [settings.file] if settings.file else []
    folders = {folder for pool in settings.pools for folder in pool.python_path}
    return Watched(
        drop_inner({*folders, *programs, *map(os.path.dirname, files)}), tuple(sorted({*files})), tuple(programs)
    )


def drop_inner(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that are not inside another of them."""
    kept: list[str] = []
    for folder in sorted({os.path.realpath(folder) for folder in folders}):
        if not kept or not is_inside(folder, kept[-1]):
            kept.append(folder)
    return tuple(kept)


def is_inside(path: str, folder: str) -> bool:
    """Return True when ``path`` is a folder, or something in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_of_interest(path: str, watched: Watched) -> bool:
    """Return True when a change of ``path``, which no tool has made for itself, is one of the application."""
    if path.endswith(SUFFIXES):
        return True
    files = {os.path.realpath(file) for file in watched.files}
    return path in files or any(is_inside(path, os.path.realpath(folder)) for folder in watched.programs)


def spawn_watcher(settings: ServerSettings) -> int:
    """Start the process that watches for the supervisor that this process is; return its pid."""
    watched = plan_watched(settings)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    lists = [",".join(map(quote, part)) for part in watched]
    command = [sys.executable, "-P", "-m", __name__, str(os.getpid()), settings.error_log, settings.log_level, *lists]
    return os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": paths})


def quote(path: str) -> str:
    """Return a path without commas."""
    return path.replace("%", "%25").replace(",", "%2C")


def unquote(text: str) -> tuple[str, ...]:
    """Return the paths of a list of them."""
    return tuple(item.replace("%2C", ",").replace("%25", "%") for item in text.split(",") if item)


def watch(supervisor: int, watched: Watched, say: Callable[[str], object]) -> None:
    """Send HUP to our parent, process ``supervisor``, for each change, as long as it is our parent."""
    from watchfiles import DefaultFilter
    from watchfiles import watch as wait_for_changes

    tools = DefaultFilter()

    def wanted(change: object, path: str) -> bool:
        return tools(change, path) and is_of_interest(path, watched)  # type: ignore[arg-type]

    folders = [folder for folder in watched.folders if os.path.isdir(folder)]
    said = False
    for changes in wait_for_changes(
        *folders, watch_filter=wanted, rust_timeout=LOOK, yield_on_timeout=True, raise_interrupt=False
    ):
        if os.getppid() != supervisor:
            return
        if not said:
            # Not earlier: the first set of changes, often an empty one, comes when the system tells of them.
            said = True
            say(f"reload: watching {', '.join(folders)}")
        if changes:
            say(format_changes(sorted(path for _, path in changes)))
            os.kill(supervisor, signal.SIGHUP)


def format_changes(paths: Sequence[str]) -> str:
    """Return what has changed, in a few words."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"reload: {paths[0]}{more} changed"


def main(words: Sequence[str]) -> None:
    """Be the process that watches: its arguments are those of ``spawn_watcher``."""
    from gateways.errorlog import open_log

    supervisor, error_log, level, *lists = words
    log = open_log("gateways", error_log, level)
    watch(int(supervisor), Watched(*map(unquote, lists)), lambda text: log.info("%s", text))


if __name__ == "__main__":
    main(sys.argv[1:])
