"""The steps in their order, and what is kept of them. Knows stylesheets, entries and a cache; nothing of HTTP.

From one step to the next goes a document, whether it is kept or not: so the same bytes come out in every setting. The
last step's output goes out as its own xsl:output asks for, piece by piece when it is long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import sha256
from typing import Protocol

from lxml import etree

from apps.pipeline.caches import Cache
from apps.pipeline.entries import Entry, format_entry, parse_entry
from apps.pipeline.files import NEVER, Files, Need
from apps.pipeline.stylesheets import Result, StepError, Stylesheet, describe, format_document, parse_document

OFF, WHOLE, STEPS = "off", "whole", "steps"
KEEPING = (OFF, WHOLE, STEPS)
"""What is kept: nothing, the last step's output, every step's result."""
MAX_ENTRY = 1 << 20
HELD = 65536
"""Bytes of output that are held back before the first goes to the client: a short page has a length, or is an error."""

Begin = Callable[[str], Callable[[bytes], object]]
"""``begin(content_type)`` begins the answer and returns where its pieces go."""


class Source(Protocol):
    """What the first step reads: ``name`` tells it from all others, and its versions from each other."""

    @property
    def name(self) -> str:
        """A text that no other document, and no other version of this one, has."""

    def read(self) -> bytes:
        """Return the document; raise ``ValueError``."""


class Sink:
    """What the last step writes to: holds up to ``limit`` bytes; when more come, ``begin`` gives where they all go."""

    def __init__(self, limit: int, begin: Callable[[], Callable[[bytes], object]]) -> None:
        self.limit = limit
        self.begin = begin
        self.send: Callable[[bytes], object] | None = None
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        """Take a piece; a processor's pieces are small, so they are sent on together."""
        self._held.append(data)
        self._size += len(data)
        if self._size > (self.limit if self.send is None else HELD):
            if self.send is None:
                self.send = self.begin()
            self.send(self.take())
        return len(data)

    def take(self) -> bytes:
        """Return what is held, and hold nothing."""
        data = b"".join(self._held)
        self._held, self._size = [], 0
        return data


class Chain:
    """``stylesheets`` (paths below the folder of ``files``), one after the other.

    ``keeping``: ``OFF``, ``WHOLE`` or ``STEPS``, in ``cache``. Raise ``ValueError`` for what cannot be.
    """

    def __init__(
        self, files: Files, stylesheets: Sequence[str], cache: Cache | None = None, keeping: str = STEPS
    ) -> None:
        if keeping not in KEEPING:
            raise ValueError(f"what is kept is one of {', '.join(KEEPING)}, not {keeping!r}")
        if not stylesheets:
            raise ValueError("a pipeline has at least one stylesheet")
        self.files = files
        self.steps = [Stylesheet(files, path) for path in stylesheets]
        self.cache = None if keeping == OFF else cache
        self.keeping = keeping
        self._versions = [0] * (len(stylesheets) + 1)

    def invalidate(self, step: int = 0) -> None:
        """Use nothing any more that was kept of a step (counted from 1) or of those after it; 0: of any."""
        self._versions[step] += 1

    def make(self, source: Source, parameters: dict[str, str], begin: Begin) -> Entry | None:
        """Return the page, or ``None`` when it was so long that it has gone out already; raise ``StepError``.

        Of those who want the same page at once, one computes it.
        """
        if self.cache is None:
            return self._compute(source, [], 0, None, parameters, begin)
        keys = self._make_keys(source.name, parameters)
        done, entry = self._find(keys)
        if done == len(keys):
            return entry
        with ExitStack() as turn:
            turn.enter_context(self.cache.computing(keys[-1]))
            done, entry = self._find(keys)
            if done == len(keys):
                return entry

            def begin_alone(content_type: str) -> Callable[[bytes], object]:
                turn.close()  # nobody waits for a slow client
                return begin(content_type)

            return self._compute(source, keys, done, entry, parameters, begin_alone)

    def _make_keys(self, name: str, parameters: dict[str, str]) -> list[str]:
        """Return a key for each step: it depends on the source, and on every step so far."""
        keys = []
        text = f"{name}\0{sorted(parameters.items())}\0{self.files.stamps}\0{self._versions[0]}"
        for step, version in zip(self.steps, self._versions[1:], strict=True):
            text = sha256(f"{text}\0{step.path}\0{version}".encode("utf-8", "surrogatepass")).hexdigest()
            keys.append(text)
        return keys

    def _find(self, keys: Sequence[str]) -> tuple[int, Entry | None]:
        """Return (how many steps need not be run, what the last of them made)."""
        assert self.cache is not None
        for done in range(len(keys), 0 if self.keeping == STEPS else len(keys) - 1, -1):
            data = self.cache.get(keys[done - 1])
            entry = None if data is None else parse_entry(data)
            if entry is not None and self.files.unchanged(entry.needs):
                return done, entry
        return 0, None

    def _keep(self, keys: Sequence[str], number: int, entry: Entry) -> None:
        last = number == len(self.steps) - 1
        if self.cache is not None and (last or self.keeping == STEPS) and entry.lasting:
            self.cache.put(keys[number], format_entry(entry))

    def _compute(
        self,
        source: Source,
        keys: Sequence[str],
        done: int,
        entry: Entry | None,
        parameters: dict[str, str],
        begin: Begin,
    ) -> Entry | None:
        """Run the steps that are left."""
        needs: tuple[Need, ...] = ()
        if entry is None:
            data = read_source(source)
        else:
            data, needs = entry.body, entry.needs
        last = len(self.steps) - 1
        for number in range(done, last):
            step = self.steps[number]
            result = self._run(step, data, parameters)
            data, needs = format_document(result.tree, step.path), merge_needs(needs, result.needs)
            self._keep(keys, number, Entry(needs, "", data))
        result = self._run(self.steps[last], data, parameters)
        page = write_page(self.steps[last], result, begin, HELD if self.cache is None else MAX_ENTRY)
        if page is None:
            return None
        page = page._replace(needs=merge_needs(needs, result.needs))
        self._keep(keys, last, page)
        return page

    def _run(self, step: Stylesheet, data: bytes, parameters: dict[str, str]) -> Result:
        try:
            document = parse_document(data, self.files)
        except etree.XMLSyntaxError as error:
            raise StepError(f"what {step.path} should read is not XML: {describe(error)}") from error
        return step.run(document, parameters)


def read_source(source: Source) -> bytes:
    """Return the source; raise ``StepError`` for one that cannot be read."""
    try:
        return source.read()
    except ValueError as error:
        raise StepError(str(error)) from error


def merge_needs(before: tuple[Need, ...], more: tuple[Need, ...]) -> tuple[Need, ...]:
    """Return the needs of two steps; a file that they saw in two states makes the result one that is not kept."""
    merged = dict(before)
    for path, stamp in more:
        merged[path] = stamp if merged.get(path, stamp) == stamp else NEVER
    return tuple(merged.items())


def write_page(step: Stylesheet, result: Result, begin: Begin, limit: int) -> Entry | None:
    """Return the last step's output, ``None`` when it was longer than ``limit`` and has gone out.

    Raise ``StepError``.
    """
    content_type = step.content_type(result.tree)
    sink = Sink(limit, lambda: begin(content_type))
    try:
        step.write(result.tree, sink)
    except etree.LxmlError as error:
        if sink.send is not None:
            raise
        raise StepError(f"{step.path}: its output cannot be written: {describe(error)}") from error
    if sink.send is None:
        return Entry((), content_type, sink.take())
    sink.send(sink.take())
    return None
