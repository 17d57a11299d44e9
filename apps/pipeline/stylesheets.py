"""One step: a stylesheet, compiled again when it or what it imports has changed, and run on a document.

Knows lxml and files; nothing of requests or caches. What it reads stays within the folder of its files: nothing is
fetched from a network, no external entity is loaded, nothing is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree

from apps.pipeline.files import Files, Need

XSL = "{http://www.w3.org/1999/XSL/Transform}"
MEDIA_TYPES = {"html": "text/html", "xhtml": "text/html", "text": "text/plain", "xml": "text/xml"}
"""Method -> media type, where xsl:output names none (XSLT 1.0, 16)."""
MAX_DEPTH = 32

PERMITS = etree.XSLTAccessControl(
    read_file=True, write_file=False, create_dir=False, read_network=False, write_network=False
)


class StepError(Exception):
    """A step could not be compiled or run; the message names the stylesheet and the reason."""


class Resolver(etree.Resolver):
    """Answers every request of the processor for another document, from the files alone."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:
        """Return a document; raise ``OSError`` or ``ValueError`` when it may not or cannot be read."""
        path = find_local(system_url)
        return self.resolve_string(self.files.read(path), context, base_url=path)


def find_local(url: str) -> str:
    """Return the path that a URL means; raise ``ValueError`` for one that is not of a file here."""
    parts = urlsplit(url)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise ValueError(f"{url} is not a local file")
    return unquote(parts.path)


def make_parser(files: Files) -> etree.XMLParser:
    """Return a parser that expands no external entity and asks the network for nothing."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    parser.resolvers.add(Resolver(files))
    return parser


class Result(NamedTuple):
    """What a step made. ``needs``: files that it was made from, the stylesheet's own among them."""

    tree: Any
    needs: tuple[Need, ...]


class Stylesheet:
    """A stylesheet of ``files`` at ``path``; nothing is read before it is first run."""

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = files.find(path)
        self._needs: tuple[Need, ...] = ()
        self._transform: Any = None
        self._output: dict[str, str] = {}

    def prepare(self) -> None:
        """Compile, unless nothing has changed; raise ``StepError``."""
        if self._transform is not None and self.files.unchanged(self._needs):
            return
        self._transform = None
        try:
            with self.files.noting() as needs:
                tree = parse_document(self.files.read(self.path), self.files, self.path)
                transform = etree.XSLT(tree, access_control=PERMITS)
                self._output = self._read_output(self.path, MAX_DEPTH)
        except (etree.LxmlError, OSError, ValueError) as error:
            raise StepError(f"{self.path}: {describe(error)}") from error
        self._needs = tuple(sorted(needs.items()))
        self._transform = transform

    def run(self, document: Any, parameters: dict[str, str]) -> Result:
        """Return what the step makes of a document; raise ``StepError``."""
        self.prepare()
        texts = {name: etree.XSLT.strparam(value) for name, value in parameters.items()}
        try:
            with self.files.noting() as needs:
                tree = self._transform(document, **texts)
        except (etree.LxmlError, OSError, ValueError) as error:
            raise StepError(f"{self.path}: {describe(error)}") from error
        return Result(tree, tuple(sorted({**needs, **dict(self._needs)}.items())))

    def content_type(self, tree: Any) -> str:
        """Return the Content-Type of a result, as xsl:output asks for it (XSLT 1.0, 16)."""
        root = tree.getroot()
        guess = "html" if root is not None and isinstance(root.tag, str) and root.tag.lower() == "html" else "xml"
        media_type = self._output.get("media-type") or MEDIA_TYPES.get(self._output.get("method", guess), "text/xml")
        return f"{media_type}; charset={self._output.get('encoding', 'UTF-8')}"

    def write(self, tree: Any, sink: Any) -> None:
        """Write a result as xsl:output asks for: piece by piece if it names an encoding, whole otherwise."""
        if "encoding" in self._output:
            tree.write_output(sink)
        else:
            sink.write(bytes(tree))  # lxml 6.1 writes in pieces only with an encoding of the stylesheet's own

    def _read_output(self, path: str, depth: int) -> dict[str, str]:
        """Return the attributes of xsl:output; what is imported counts less than what imports it (XSLT 1.0, 2.6.2)."""
        if not depth:
            raise ValueError(f"stylesheets are nested deeper than {MAX_DEPTH}")
        root = parse_document(self.files.read(path), self.files, path).getroot()
        found: dict[str, str] = {}
        for child in root.iterchildren(f"{XSL}import", f"{XSL}include", f"{XSL}output"):
            if child.tag == f"{XSL}output":
                found |= {str(name): str(value) for name, value in child.attrib.items()}
            else:
                inner = self._read_output(find_local(find_url(child)), depth - 1)
                found = {**found, **inner} if child.tag == f"{XSL}include" else {**inner, **found}
        return found


def find_url(element: Any) -> str:
    """Return the URL that an element's href means, resolved against where the element stands."""
    return urljoin(str(element.base or ""), str(element.get("href", "")))


def parse_document(data: bytes, files: Files, base: str = "") -> Any:
    """Return a document's tree; raise ``etree.XMLSyntaxError``."""
    return etree.fromstring(data, make_parser(files), base_url=base or None).getroottree()


def format_document(tree: Any, path: str) -> bytes:
    """Return a step's result as the document that the next step reads; raise ``StepError`` when it is none.

    This is the only way from one step to the next, cached or not: what a tree in memory holds beside its document (text
    beside the root, markup that asked not to be escaped) would otherwise make a difference.
    """
    root = tree.getroot()
    beside = () if root is None else (*root.itersiblings(), *root.itersiblings(preceding=True))
    if root is None or any(isinstance(other.tag, str) for other in beside):
        raise StepError(f"{path}: the step made no document with one root, which the next step needs")
    data: bytes = etree.tostring(tree, encoding="utf-8", with_tail=False)
    return data


def describe(error: Exception) -> str:
    """Return an error as one line."""
    return " ".join(str(error).split()) or type(error).__name__
