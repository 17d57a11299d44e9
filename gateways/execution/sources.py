"""Which file answers a request: one script, or a folder of them (cgi-bin).

Knows paths and files; does not know how a script is run. A path is decoded once, by the wire; nothing is decoded here.
"""

from __future__ import annotations

import os
import stat

from gateways.core.errors import LoadError, ScriptError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.request import Request

_MAX_SEGMENTS = 64
_MAX_LISTED = 1000


def format_native(text: str) -> str:
    """Return file-system text as a native string: one character for each byte (PEP 3333)."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


class Script:
    """One script and the request's path split at it.

    ``path``: absolute file name; ``native_path``: the same as a native string. ``folder``: where it lies, its working
    directory. ``split_here``: True when ``script_name`` and ``path_info`` (RFC 3875 4.1.13, 4.1.5) replace the
    request's own.
    """

    __slots__ = ("folder", "native_path", "path", "path_info", "script_name", "split_here")

    def __init__(self, path: str, script_name: str = "", path_info: str = "", split_here: bool = False) -> None:
        self.path = path
        self.native_path = format_native(path)
        self.folder = os.path.dirname(path)
        self.script_name = script_name
        self.path_info = path_info
        self.split_here = split_here


class SingleScript:
    """One script that answers everything below its mount."""

    __slots__ = ("_script", "path")

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._script = Script(self.path)

    def load(self) -> None:
        """Raise ``LoadError`` when the script is not there."""
        if not os.path.isfile(self.path):
            raise LoadError(f"the script {self.path} is not there, or is no file")

    def list_scripts(self) -> list[str]:
        """Return the scripts that are known before any request."""
        return [self.path]

    def find(self, request: Request) -> Script:
        """Return the script for a request; raise ``ScriptError`` (404) for a path that cannot be passed on."""
        if "\0" in request.path_info:
            raise ScriptError("the path has a NUL", 404)
        return self._script


class ScriptFolder:
    """A folder whose files are scripts; what follows a script's name in the path is its PATH_INFO.

    ``index``: names of files that answer for a folder itself; the first that is there does.
    """

    __slots__ = ("folder", "index")

    def __init__(self, folder: str, index: tuple[str, ...] = ()) -> None:
        self.folder = os.path.realpath(folder)
        self.index = index

    def load(self) -> None:
        """Raise ``LoadError`` when it is no folder."""
        if not os.path.isdir(self.folder):
            raise LoadError(f"the script folder {self.folder} is not there, or is no folder")

    def list_scripts(self) -> list[str]:
        """Return the Python scripts right in the folder, by their ending; others are met when they are asked for."""
        names = sorted(os.listdir(self.folder))[:_MAX_LISTED]
        paths = [f"{self.folder}/{name}" for name in names if name.endswith(".py") and not name.startswith(".")]
        return [path for path in paths if os.path.isfile(path)]

    def find(self, request: Request) -> Script:
        """Return the script for a request; raise ``ScriptError`` with 404 or 403."""
        path_info = request.path_info
        taken = find_script(self.folder, path_info, self.index)
        if taken is None:
            raise ScriptError(f"no script answers {path_info[:200]!r}", 404)
        path, length = taken
        resolved = os.path.realpath(path)
        if not resolved.startswith(self.folder.rstrip("/") + "/"):
            raise ScriptError(f"the script {path} lies outside its folder", 403)
        name = request.script_name + path_info[:length]
        return Script(path, name, path_info[length:], split_here=True)


def find_script(folder: str, path_info: str, index: tuple[str, ...]) -> tuple[str, int] | None:
    """Return (file name, length of ``path_info`` that names it) below ``folder``, or ``None``.

    Segment by segment, so that no ``..``, empty or hidden name is ever joined (C05). Raise ``ScriptError`` (403) for
    what is there and is no regular file.
    """
    segments = path_info.split("/", _MAX_SEGMENTS)
    if segments[0] or "\0" in path_info:
        return None
    path, length = folder, 0
    for segment in segments[1:]:
        if not segment:
            break
        if segment.startswith("."):
            return None
        path = path + "/" + os.fsdecode(segment.encode("latin-1"))
        length += 1 + len(segment)
        mode = read_mode(path)
        if mode is None:
            return None
        if not stat.S_ISDIR(mode):
            return check_regular(path, mode), length
    for name in index:
        file = f"{path}/{name}"
        mode = read_mode(file)
        if mode is not None:
            return check_regular(file, mode), length
    return None


def read_mode(path: str) -> int | None:
    """Return a file's mode, ``None`` when it is not there; raise ``ScriptError`` (403) if it may not be looked at."""
    try:
        return os.stat(path).st_mode
    except PermissionError as error:
        raise ScriptError(f"{path} may not be looked at: {error.strerror}", 403) from error
    except OSError:
        return None


def check_regular(path: str, mode: int) -> str:
    """Return ``path``; raise ``ScriptError`` (403) unless its mode is a regular file's."""
    if not stat.S_ISREG(mode):
        raise ScriptError(f"{path} is no regular file", 403)
    return path
