"""The application behind the middleware: its status and fields, and a body that is read only if it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_SOURCE = 16 << 20
XML_TYPES = ("text/xml", "application/xml")

Field = tuple[str, str]


class Inner:
    """The application's side: its status, its fields, and its body, which is read only if it is needed."""

    def __init__(self, application: Callable[..., Iterable[bytes]], environ: dict[str, Any]) -> None:
        self.status = ""
        self.fields: list[Field] = []
        self._written: list[bytes] = []
        self._body = application(environ, self._start)
        self._pieces = iter(self._body)
        if not self.status:
            self._written += [next(self._pieces, b"")]

    def _start(self, status: str, fields: list[Field], exc_info: Any = None) -> Callable[[bytes], object]:
        self.status, self.fields = status, fields
        return self._written.append

    def __iter__(self) -> Iterator[bytes]:
        yield from self._written
        yield from self._pieces

    def close(self) -> None:
        """Call the body's ``close``, once (PEP 3333)."""
        close = getattr(self._body, "close", None)
        if close is not None:
            close()

    def get(self, name: str) -> str:
        """Return a field's value, ``""`` when there is none."""
        return next((value for key, value in self.fields if key.lower() == name), "")

    @property
    def is_xml(self) -> bool:
        """True for a page that the steps are meant for."""
        media_type = self.get("content-type").partition(";")[0].strip().lower()
        return self.status[:3] == "200" and (media_type in XML_TYPES or media_type.endswith("+xml"))

    @property
    def etag(self) -> str:
        """The strong validator of the page, ``""`` when it has none (RFC 9110 8.8.3)."""
        value = self.get("etag")
        return value if value.startswith('"') else ""

    def read(self) -> bytes:
        """Return the whole body; raise ``ValueError`` for one that is too long."""
        pieces, size = [], 0
        for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size > MAX_SOURCE:
                raise ValueError(f"the source is longer than {MAX_SOURCE} bytes")
        return b"".join(pieces)
