"""A report as data, and its three forms: text for a terminal, Markdown, and one HTML page. Knows no results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from bench.report import page

TEXT_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below headings with units. A row of one cell and a reason is one that failed."""

    headings: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """Sentences, a paragraph each."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing as HTML, with a note below; other forms have the table."""

    html: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    pairs: tuple[tuple[str, str], ...]


Block = Table | Words | Drawing | Facts


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it. ``brief``: whether a terminal shows it too."""

    title: str
    blocks: tuple[Block, ...]
    brief: bool = True


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    lead: str
    sections: tuple[Section, ...]


def failed(table: Table, row: Sequence[str]) -> bool:
    """True for a row that holds a name and a reason only."""
    return len(row) == 2 and len(table.headings) > 2


# Text.


def format_text(document: Document) -> str:
    """Return the report for a terminal: its brief sections."""
    parts = []
    for section in document.sections:
        shown = [text for text in map(text_block, section.blocks) if text]
        if section.brief and shown:
            parts.append("\n".join([section.title, "-" * len(section.title), *shown]))
    return "\n\n".join(parts)


def text_block(block: Block) -> str:
    """Return one block as text."""
    if isinstance(block, Table):
        return text_table(block)
    if isinstance(block, Words):
        return "\n".join(textwrap.fill(line, TEXT_WIDTH, subsequent_indent="  ") for line in block.sentences)
    if isinstance(block, Facts):
        return "\n".join(f"{name:<12} {value}" for name, value in block.pairs)
    return ""


def text_table(table: Table) -> str:
    """Return a table in columns: the first to the left, the others to the right."""
    heads = [[name for name, _ in table.headings], [unit for _, unit in table.headings]]
    full = [*heads, *(row for row in table.rows if not failed(table, row))]
    widths = [max(len(row[i]) for row in full) for i in range(len(table.headings))]
    widths[0] = max(widths[0], *(len(row[0]) for row in table.rows), 0) if table.rows else widths[0]
    lines = [align(row, widths) for row in heads if any(row)]
    lines.append("  ".join("-" * width for width in widths))
    lines += [f"{row[0]:<{widths[0]}}  {row[1]}" if failed(table, row) else align(row, widths) for row in table.rows]
    return "\n".join([*lines, *(textwrap.fill(note, TEXT_WIDTH) for note in table.notes)])


def align(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line of a table."""
    pairs = zip(cells, widths, strict=True)
    return "  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(pairs)).rstrip()


# Markdown.


def format_markdown(document: Document) -> str:
    """Return the report as Markdown."""
    lines = [f"# {document.title}", "", document.lead, ""]
    for section in document.sections:
        shown = [text for text in map(markdown_block, section.blocks) if text]
        if shown:
            lines += [f"## {section.title}", "", *(f"{text}\n" for text in shown)]
    return "\n".join(lines).rstrip() + "\n"


def markdown_block(block: Block) -> str:
    """Return one block as Markdown."""
    if isinstance(block, Table):
        return markdown_table(block)
    if isinstance(block, Words):
        return "\n\n".join(map(markdown_text, block.sentences))
    if isinstance(block, Facts):
        return "\n".join(f"- {markdown_text(name)}: {markdown_text(value)}" for name, value in block.pairs)
    return ""


def markdown_table(table: Table) -> str:
    """Return a table as Markdown."""
    heads = [f"{name} ({unit})" if unit else name for name, unit in table.headings]
    lines = [markdown_row(heads), markdown_row(["---", *["---:"] * (len(heads) - 1)], plain=True)]
    for row in table.rows:
        cells = [*row, *[""] * (len(heads) - len(row))]
        lines.append(markdown_row(cells))
    return "\n".join([*lines, *(f"\n{markdown_text(note)}" for note in table.notes)])


def markdown_row(cells: Sequence[str], plain: bool = False) -> str:
    """Return one row of a table."""
    return f"| {' | '.join(cells if plain else map(markdown_text, cells))} |"


def markdown_text(text: str) -> str:
    """Return text whose signs mean nothing to Markdown."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return text


# HTML.


def format_html(document: Document) -> str:
    """Return the report as one page."""
    sections = [page.section(section.title, *map(html_block, section.blocks)) for section in document.sections]
    return page.format_page(document.title, document.lead, sections)


def html_block(block: Block) -> str:
    """Return one block as HTML."""
    if isinstance(block, Table):
        return html_table(block) + "".join(map(page.small, block.notes))
    if isinstance(block, Words):
        return page.paragraphs(block.sentences)
    if isinstance(block, Facts):
        return page.definition_list(block.pairs)
    return block.html + (page.small(block.note) if block.note and block.html else "")


def html_table(table: Table) -> str:
    """Return a table; on narrow pages each row becomes a card, with its headings from ``data-label``."""
    heads = "".join(
        f"<th scope=col>{escape(name)}{f'<br><small>{escape(unit)}</small>' if unit else ''}</th>"
        for name, unit in table.headings
    )
    body = "\n".join(html_row(table, row) for row in table.rows)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def html_row(table: Table, row: Sequence[str]) -> str:
    """Return one row."""
    name = f"<th scope=row>{escape(row[0])}</th>"
    if failed(table, row):
        return f"<tr class=failed>{name}<td colspan={len(table.headings) - 1}>{escape(row[1])}</td></tr>"
    return f"<tr>{name}{''.join(html_cells(table.headings[1:], row[1:]))}</tr>"


def html_cells(headings: Sequence[tuple[str, str]], cells: Sequence[str]) -> Iterable[str]:
    """Yield the cells after a row's name."""
    for (name, unit), cell in zip(headings, cells, strict=True):
        label = f"{name} {unit}".strip()
        yield f'<td data-label="{escape(label)}"{page.wide(cell, label)}>{escape(cell)}</td>'
