"""WSGI middleware: what an application answers as XML goes through the steps, and the last one's output to the client.

The application is asked for every request, so its fields (cookies, Cache-Control) are always its own; only the steps'
work is kept. What is not in a key is shown to nobody: without ``query``, neither the application nor a stylesheet gets
to see the query. What cannot be kept rightly is a stylesheet's use of the time, of random numbers or of
``generate-id()``: leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from apps.pipeline.chain import Chain
from apps.pipeline.files import TIME
from apps.pipeline.inner import Field, Inner
from apps.pipeline.stylesheets import StepError

REPLACED = ("content-type", "content-length", "etag", "last-modified", "content-md5", "accept-ranges")
"""Fields of the application that speak of its XML and not of what becomes of it."""
PARTIAL = ("HTTP_RANGE", "HTTP_IF_RANGE", "HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE",
           "HTTP_IF_UNMODIFIED_SINCE")  # fmt: skip
"""What would make the application answer with a part of its XML, or with none."""
TEXT = "text/plain; charset=utf-8"
FAILED = b"The page could not be made; the error log says why.\n"


class Page:
    """The application's XML as the source of a chain. ``by_etag``: its ETag tells its versions apart, not its bytes."""

    def __init__(self, inner: Inner, environ: dict[str, Any], by_etag: bool) -> None:
        self._inner = inner
        self._place = [environ.get(name, "") for name in ("HTTP_HOST", "SCRIPT_NAME", "PATH_INFO")]
        self._etag = inner.etag if by_etag else ""
        self._data: bytes | None = None

    @property
    def name(self) -> str:
        """See ``Source``."""
        return repr((self._place, self._etag or sha256(self.read()).hexdigest()))

    def read(self) -> bytes:
        """See ``Source``."""
        if self._data is None:
            self._data = self._inner.read()
        return self._data


class Pipeline:
    """``application`` with its XML pages sent through ``chain``.

    ``query``: the query is part of the key, and shown to the application, and to stylesheets as parameter ``query``;
    otherwise it is shown to nobody, also for pages that are not XML.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], chain: Chain, query: bool = True) -> None:
        self.application = application
        self.chain = chain
        self.query = query

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer as a WSGI application (PEP 3333)."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self.application(environ, start_response)
        inner = Inner(self.application, self._choose_environ(environ))
        if not inner.is_xml:
            start_response(inner.status, inner.fields)
            if environ["REQUEST_METHOD"] == "GET":
                return inner
            inner.close()
            return []
        try:
            return self._transform(inner, environ, start_response)
        finally:
            inner.close()

    def _choose_environ(self, environ: dict[str, Any]) -> dict[str, Any]:
        """Return what the application sees: GET also for HEAD, because the page's length is that of its output."""
        seen = {name: value for name, value in environ.items() if name not in PARTIAL}
        seen["REQUEST_METHOD"] = "GET"
        if not self.query:
            seen["QUERY_STRING"] = ""
            for name in ("REQUEST_URI", "RAW_URI"):
                if name in seen:
                    seen[name] = seen[name].partition("?")[0]
        return seen

    def _transform(self, inner: Inner, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Return the body of the page, and begin its answer."""
        head = environ["REQUEST_METHOD"] == "HEAD"
        fields: list[Field] = [field for field in inner.fields if field[0].lower() not in REPLACED]

        def begin(content_type: str) -> Callable[[bytes], object]:
            write: Callable[[bytes], object] = start_response("200 OK", [*fields, ("Content-Type", content_type)])
            return ignore if head else write

        parameters = {"query": environ.get("QUERY_STRING", "")} if self.query else {}
        source = Page(inner, environ, by_etag=self.chain.files.stamps == TIME)
        try:
            page = self.chain.make(source, parameters, begin)
        except (StepError, ValueError) as error:
            environ["wsgi.errors"].write(f"{error}\n")
            start_response("500 Internal Server Error", [("Content-Type", TEXT), ("Content-Length", str(len(FAILED)))])
            return [] if head else [FAILED]
        if page is None:
            return []
        length = ("Content-Length", str(len(page.body)))
        start_response("200 OK", [*fields, ("Content-Type", page.content_type), length])
        return [] if head else [page.body]


def ignore(_data: bytes) -> None:
    """Take a piece of the body of an answer that has none."""
