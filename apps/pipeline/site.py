"""A site of XML pages behind a pipeline of three steps, set up by variables of the environment.

``/hello`` is a few lines, ``/table`` has 200 rows, of which the first step makes the sums, the second the order and
the third the HTML. A request names a row of a table of pages; it chooses no path.

PIPELINE_FOLDER     where ``pages/*.xml`` and the stylesheets are (default: ``sample`` beside this file)
PIPELINE_CACHE      off, whole or steps (default: steps)
PIPELINE_STORE      memory, disk:FOLDER, redis://..., or none (default: memory)
PIPELINE_STAMPS     mtime or content: how a changed file is known (default: mtime)
PIPELINE_QUERY      on: the query is in the key, and stylesheets see it (default: off)
PIPELINE_CHANGE     STEP:N, every N-th request is as if that step had changed, 0 the source (default: nothing is)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from apps.pipeline.caches import Cache, DiskCache, MemoryCache
from apps.pipeline.chain import OFF, STEPS, Chain
from apps.pipeline.files import RACY, TIME, Files, format_time
from apps.pipeline.middleware import Pipeline

HERE = os.path.dirname(os.path.abspath(__file__))
STYLESHEETS = ("sums.xsl", "order.xsl", "html.xsl")
BLOCK = 65536


class Body:
    """A file that is opened when its first byte is asked for."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            while data := file.read(BLOCK):
                yield data


class Pages:
    """Serves the XML files of one folder, each under its name without ``.xml``; which there are is looked up once."""

    def __init__(self, folder: str) -> None:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".xml"))
        self.paths = {f"/{name.removesuffix('.xml')}": os.path.join(folder, name) for name in names}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer as a WSGI application (PEP 3333)."""
        path = self.paths.get(environ.get("PATH_INFO", ""))
        if path is None:
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"no such page; there are {', '.join(self.paths)}\n".encode()]
        status = os.stat(path)
        fields = [("Content-Type", "application/xml"), ("Content-Length", str(status.st_size))]
        if time.time() - status.st_mtime > RACY:
            fields.append(("ETag", f'"{format_time(status)}"'))
        start_response("200 OK", fields)
        return Body(path)


class Changing:
    """A pipeline of which a step counts as changed at every N-th request of this process."""

    def __init__(self, pipeline: Pipeline, step: int, every: int) -> None:
        self.pipeline = pipeline
        self.step = step
        self.every = every
        self._count = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer as a WSGI application (PEP 3333)."""
        self._count += 1
        if self._count % self.every == 0:
            self.pipeline.chain.invalidate(self.step)
        return self.pipeline(environ, start_response)


def open_cache(text: str) -> Cache | None:
    """Return the cache that PIPELINE_STORE names, ``None`` for none; raise ``ValueError``."""
    kind, _, place = text.partition(":")
    if text == "none":
        return None
    if text == "memory":
        return MemoryCache()
    if kind == "disk" and place:
        return DiskCache(place)
    if kind in ("redis", "rediss", "unix"):
        from apps.pipeline.redis_cache import RedisCache

        return RedisCache(text)
    raise ValueError(f"PIPELINE_STORE is memory, disk:FOLDER or redis://..., not {text!r}")


def parse_change(text: str) -> tuple[int, int] | None:
    """Return (step, every) of PIPELINE_CHANGE; raise ``ValueError``."""
    if not text:
        return None
    step, _, every = text.partition(":")
    if not (step.isdigit() and every.isdigit() and int(step) <= len(STYLESHEETS) and int(every)):
        raise ValueError(f"PIPELINE_CHANGE is STEP:N, with a step of 0 to {len(STYLESHEETS)}, not {text!r}")
    return int(step), int(every)


def build(variables: Mapping[str, str]) -> Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]:
    """Return the site that the variables ask for; raise ``ValueError`` or ``OSError`` for what cannot be."""
    folder = variables.get("PIPELINE_FOLDER", os.path.join(HERE, "sample"))
    files = Files(folder, variables.get("PIPELINE_STAMPS", TIME))
    keeping = variables.get("PIPELINE_CACHE", STEPS)
    cache = None if keeping == OFF else open_cache(variables.get("PIPELINE_STORE", "memory"))
    chain = Chain(files, [os.path.join(files.folder, name) for name in STYLESHEETS], cache, keeping)
    pipeline = Pipeline(Pages(os.path.join(folder, "pages")), chain, variables.get("PIPELINE_QUERY", "off") == "on")
    change = parse_change(variables.get("PIPELINE_CHANGE", ""))
    return Changing(pipeline, *change) if change else pipeline


application = build(os.environ)
