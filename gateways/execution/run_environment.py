"""``os.environ`` for one run: the same objects, with other contents.

In a process that runs scripts, ``os.environ`` and ``os.environb`` are of classes of ours, over native strings as a
request has them: one assignment shows another environment, nothing is copied and nothing encoded. (Encoding 25
variables would cost 3 us a run, putting them into the C library 12, and glibc never frees the values it is given.) The
C library's environment follows only when a child process is about to be made. Knows no request.
"""

from __future__ import annotations

import os

from gateways.execution.watch import NOTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

WorkerEnviron: Any = type(os.environ)


def encode_native(text: object) -> str:
    """Return text of the script's as a native string (one character for each byte); raise ``TypeError`` for no text."""
    if not isinstance(text, str):
        raise TypeError(f"str expected, not {type(text).__name__}")
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def decode_native(native: str) -> str:
    """Return a native string as text, as ``os.environ`` decodes the bytes it stands for."""
    return native if native.isascii() else os.fsdecode(native.encode("latin-1"))


class RunEnviron(WorkerEnviron):  # type: ignore[misc]
    """``os.environ`` over native strings. ``_data``: name -> value."""

    _data: dict[str, str]

    def __getitem__(self, key: str) -> str:
        try:
            value = self._data[key if key.isascii() else encode_native(key)]
        except (AttributeError, KeyError):
            encode_native(key)
            raise KeyError(key) from None
        return value if value.isascii() else decode_native(value)

    def get(self, key: str, default: Any = None) -> Any:
        try:
            value = self._data.get(key if key.isascii() else encode_native(key))
        except AttributeError:
            value = None
        if value is None:
            encode_native(key)
            return default
        return value if value.isascii() else decode_native(value)

    def __setitem__(self, key: str, value: str) -> None:
        name, native = encode_native(key), encode_native(value)
        os.putenv(key, value)
        self._data[name] = native

    def __delitem__(self, key: str) -> None:
        name = encode_native(key)
        os.unsetenv(key)
        try:
            del self._data[name]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        for name in list(self._data):
            yield decode_native(name)

    def __repr__(self) -> str:
        inner = ", ".join(f"{key!r}: {value!r}" for key, value in self.items())
        return f"environ({{{inner}}})"


class RunEnvironBytes(WorkerEnviron):  # type: ignore[misc]
    """``os.environb`` over the same ``_data``."""

    _data: dict[str, str]

    def __getitem__(self, key: bytes) -> bytes:
        try:
            return self._data[_check_bytes(key).decode("latin-1")].encode("latin-1")
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: bytes, value: bytes) -> None:
        os.putenv(_check_bytes(key), _check_bytes(value))
        self._data[key.decode("latin-1")] = value.decode("latin-1")

    def __delitem__(self, key: bytes) -> None:
        os.unsetenv(_check_bytes(key))
        try:
            del self._data[key.decode("latin-1")]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[bytes]:
        for name in list(self._data):
            yield name.encode("latin-1")

    def __repr__(self) -> str:
        inner = ", ".join(f"{key!r}: {value!r}" for key, value in self.items())
        return f"environ({{{inner}}})"


def _check_bytes(data: object) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError(f"bytes expected, not {type(data).__name__}")
    return data


def install() -> None:
    """Give ``os.environ`` and ``os.environb`` of this process their classes, once; what they hold stays the same."""
    text: Any = os.environ
    octets: Any = os.environb
    if not isinstance(text, RunEnviron):
        native = {name.decode("latin-1"): value.decode("latin-1") for name, value in octets.items()}
        text.__class__, octets.__class__ = RunEnviron, RunEnvironBytes
        text._data = octets._data = native


class RunEnvironment:
    """Shows a run's variables in ``os.environ``, and the worker's own again afterwards."""

    __slots__ = ("_octets", "_text", "_variables", "_worker")

    def __init__(self) -> None:
        install()
        self._text: Any = os.environ
        self._octets: Any = os.environb
        self._worker: dict[str, str] = {}
        self._variables: dict[str, str] = {}

    def enter(self, variables: dict[str, str]) -> None:
        """Show ``variables``, native strings that are the run's to change."""
        text = self._text
        self._worker = text._data
        self._variables = text._data = self._octets._data = variables

    def publish(self) -> None:
        """Give the run's environment to the C library, which a child process inherits."""
        variables, noted = self._variables, NOTES.variables
        for name in self._worker:
            if name not in variables and name not in noted:
                os.unsetenv(name.encode("latin-1"))
        for name, value in variables.items():
            os.putenv(name.encode("latin-1"), value.encode("latin-1"))

    def leave(self) -> None:
        """Show the worker's own environment again, to Python and, where it was changed, to the C library."""
        os.environ, os.environb = text, octets = self._text, self._octets
        worker = text._data = octets._data = self._worker
        for name in NOTES.variables:
            if name in worker:
                os.putenv(name.encode("latin-1"), worker[name].encode("latin-1"))
            else:
                os.unsetenv(name.encode("latin-1"))
