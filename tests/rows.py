"""Which test stands for which row of the checklists: ``python -m tests.rows`` prints it; a test sees that none lacks.

A row is in the name of a test or in the id of its parameter: ``test_p13_...``, ``[B135-raw]``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "data" / "rows.txt"
_ROW = re.compile(r"(?<![A-Za-z0-9])([HCFSAUPB][0-9]{2,3})(?![A-Za-z0-9])", re.IGNORECASE)


def read_rows() -> list[str]:
    """The rows that are to have a test."""
    lines = LIST.read_text().splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


def find_tests(rows: Iterable[str], node_ids: Iterable[str]) -> dict[str, list[str]]:
    """Row -> the tests that name it."""
    found: dict[str, list[str]] = {row: [] for row in rows}
    for node_id in node_ids:
        for row in {match.upper() for match in _ROW.findall(node_id.partition("::")[2])} & set(found):
            found[row].append(node_id)
    return found


def collect_tests() -> list[str]:
    """Every test there is, as pytest names them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


if __name__ == "__main__":
    for row, tests in find_tests(read_rows(), collect_tests()).items():
        more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
        print(f"{row:<5}{tests[0] if tests else 'NO TEST'}{more}")
