"""The reference of directives is made from the table, and the copy in docs/ is the one that the table makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateways.config.directives import DIRECTIVES, Directive
from gateways.config.reference import format_reference

ROOT = Path(__file__).resolve().parent.parent


def test_the_reference_in_docs_is_fresh() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "gateways.config.reference"], cwd=ROOT, capture_output=True, timeout=30, check=True
    )
    written = (ROOT / "docs" / "directives.md").read_bytes()
    assert written == made.stdout, "run: python -m gateways.config.reference > docs/directives.md"


@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_the_reference_explains_every_directive(directive: Directive) -> None:
    _, found, section = format_reference().partition(f"### {directive.name}\n")
    section = section.partition("\n#")[0]
    assert found
    assert directive.help in section
    assert "- default: " in section
    assert directive.name == "Target" or f"`{directive.flag} " in section
    assert directive.unit in section
