"""docs/emulation.md: what it names as the test of a promise is there, and its numbers are right."""

from __future__ import annotations

import re

from tests.script_kinds import KINDS, MODES
from tests.servers import ROOT

TEXT = (ROOT / "docs" / "emulation.md").read_text()


def test_every_test_that_the_table_names_exists() -> None:
    sources = "".join(path.read_text() for path in sorted((ROOT / "tests").glob("*.py")))
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`([^`]+)`", row.split(" | ")[-1])
        assert named, row
        for name in named:
            assert f"def {name}(" in sources or f'"{name}"' in sources, name


def test_its_numbers_are_right() -> None:
    numbers = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert f"{len(KINDS)} kinds of scripts under each of {numbers[len(MODES)]} modes" in TEXT
