"""``python -m bench.parsers``: our HTTP parser against others, on what it costs and on how often it is right.

Cost: CPU microseconds from a head's bytes to method, target, path, query and fields as text, medians of alternating
rounds. Right: the cases of both corpora whose outcome a parser agrees with, each sent whole; "with Host" is the same
with a Host put into every HTTP/1.1 head that has none, because only a server, not a parser, must insist on one.

A parser that is not installed is left out. ``bench/parsers.md`` keeps the figures that the choice was made on.
"""

from __future__ import annotations

import sys
import timeit
from time import process_time

from bench.corpora import load_cases
from bench.machine import describe_machine
from bench.parser_contenders import Contender, find_contenders
from bench.stats import median

HEADS = {
    "small": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n",
    "ab": (
        b"GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: 127.0.0.1:8000\r\n"
        b"User-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n"
    ),
    "browser": (
        b"GET /articles/2026/?page=2 HTTP/1.1\r\nHost: www.example.com\r\n"
        b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en-US\r\n"
        b"Accept-Encoding: gzip, deflate, br, zstd\r\nReferer: https://www.example.com/articles/\r\nDNT: 1\r\n"
        b"Connection: keep-alive\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
        b"Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n"
        b"Sec-Fetch-Site: same-origin\r\nPriority: u=0, i\r\n\r\n"
    ),
}
ROUNDS = 15
SLICE = 0.01
"""Seconds of CPU that one contender gets in one round, for each head."""


def make_timer(contender: Contender, data: bytes) -> timeit.Timer:
    """Return a timer of CPU seconds for one head."""
    take = contender.take
    return timeit.Timer(lambda: take(data), timer=process_time)


def measure(contenders: list[Contender]) -> dict[tuple[str, str], float]:
    """Return CPU microseconds of (parser, head): medians of rounds in which parsers and heads take turns."""
    timers = {(c.name, head): make_timer(c, data) for head, data in HEADS.items() for c in contenders}
    repeats = {key: max(1, int(SLICE / (timer.timeit(200) / 200))) for key, timer in timers.items()}
    figures: dict[tuple[str, str], list[float]] = {key: [] for key in timers}
    for _ in range(ROUNDS):
        for key, timer in timers.items():
            figures[key].append(timer.timeit(repeats[key]) / repeats[key] * 1e6)
    return {key: median(values) for key, values in figures.items()}


def count_right(contender: Contender, hosted: bool) -> tuple[int, int, int]:
    """Return (cases right, cases wrongly refused, cases wrongly accepted) over both corpora."""
    right = refused_wrongly = accepted_wrongly = 0
    for case in load_cases().values():
        data = case.insert_host() if hosted else case.data
        requests, refused = contender.read(data)
        if case.agrees(requests, refused, data != case.data):
            right += 1
        elif refused:
            refused_wrongly += 1
        else:
            accepted_wrongly += 1
    return right, refused_wrongly, accepted_wrongly


def format_table(rows: list[list[str]]) -> str:
    """Return rows, the first of them the heading, as a Markdown table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main() -> int:
    """Print the table and what it was measured on; return the exit status."""
    contenders = find_contenders()
    figures = measure(contenders)
    total = len(load_cases())
    rows = [["parser", *(f"{head}, us" for head in HEADS), f"right of {total}", "with Host", "refuses", "lets in"]]
    for contender in contenders:
        bare, hosted = count_right(contender, False), count_right(contender, True)
        costs = [f"{figures[contender.name, head]:.1f}" for head in HEADS]
        rows.append([contender.name, *costs, *map(str, (bare[0], *hosted))])
    machine = describe_machine()
    print(format_table(rows))
    print()
    print('"refuses" and "lets in" are the cases, with Host, that a parser should not have refused, or should have.')
    print("Chosen: gateways. bench/parsers.md says why.")
    print(f"{machine['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['python']}, {machine['kernel']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
