"""The figures of 2008, from ``historic.toml`` beside this file. Knows which mode of today stands for which of then."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
