"""The figures of 2008, from ``historic.toml`` beside this file. Knows which mode of today stands for which of then."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bench.stats import median

FILE = Path(__file__).with_name("historic.toml")
MODES_2008 = {
    "cgi": "cgi",
    "perlrun": "perlrun",
    "registry": "registry",
    "wsgi": "perl-script",  # a persistent handler with the CGI environment filled in
    "handler": "modperl",  # a persistent handler with nothing filled in
}
"""Today's mode -> the mode of 2008 that does the same work. A zygote had no counterpart then."""


def parse_rates_2008(text: str) -> dict[str, float]:
    """Return today's mode -> requests per second in 2008, second round, asked directly."""
    rows = tomllib.loads(text)["mod_perl"]["second_round"]
    direct = {row["mode"]: float(row["rate"]) for row in rows if not row["proxy"]}
    return {mode: direct[then] for mode, then in MODES_2008.items()}


def read_rates_2008() -> dict[str, float]:
    """Return today's mode -> requests per second in 2008."""
    return parse_rates_2008(FILE.read_text(encoding="utf-8"))


def ratios_2008(base: str = "cgi") -> dict[str, float]:
    """Return today's mode -> how many times the base mode's rate it had in 2008; empty for a base that had none."""
    rates = read_rates_2008()
    return {mode: rate / rates[base] for mode, rate in rates.items()} if base in rates else {}


_STEP = re.compile(r"([A-Za-z0-9_]+)(?:\[([^\]]*)\])?")


def split_key(key: str) -> list[tuple[str, dict[str, str]]]:
    """Split ``a.b[c=d,e=f].g`` into names with conditions; raise ``ValueError`` for anything else."""
    steps, at = [], 0
    while match := _STEP.match(key, at):
        pairs = [pair.partition("=") for pair in (match[2] or "").split(",") if pair]
        steps.append((match[1], {name.strip(): value.strip() for name, _, value in pairs}))
        at = match.end()
        if at == len(key):
            return steps
        if key[at] != ".":
            break
        at += 1
    raise ValueError(f"not a key into historic.toml: {key!r}")


def find_figure(key: str, table: dict[str, Any]) -> float:
    """Return the figure that a key names; the median where it is a list. Raise ``ValueError`` when there is none.

    ``mod_perl.second_round[mode=cgi,proxy=false].rate``: of several tables, the one whose entries are these.
    """
    place: Any = table
    for name, wanted in split_key(key):
        place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, list) and place and isinstance(place[0], dict):
            place = next((row for row in place if fits(row, wanted)), None)
    if isinstance(place, list) and place:
        return median(place)
    if not isinstance(place, int | float) or isinstance(place, bool):
        raise ValueError(f"historic.toml has no figure {key!r}")
    return float(place)


def fits(row: dict[str, Any], wanted: dict[str, str]) -> bool:
    """True when a row's entries are those wanted, compared as TOML writes them."""
    return all(str(row.get(name)).lower() == value.lower() for name, value in wanted.items())


def read_figures() -> dict[str, Any]:
    """Return the whole of ``historic.toml``."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
