"""Every row of the checklists has a test that names it."""

from __future__ import annotations

import pytest

from tests.rows import ROOT, collect_tests, find_tests, read_rows


def test_every_row_has_a_test(request: pytest.FixtureRequest) -> None:
    items = [item.nodeid for item in request.session.items]
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py")}
    # A part of the suite was asked for: then it has to be collected once more, as a whole.
    whole = files <= {item.partition("::")[0] for item in items}
    found = find_tests(read_rows(), items if whole else collect_tests())
    assert len(found) > 200
    assert [row for row, tests in found.items() if not tests] == []


@pytest.mark.parametrize(
    ("node_id", "rows"),
    [
        ("tests/test_p01.py::test_it", []),
        ("tests/test_x.py::test_p01_b129_it", ["P01", "B129"]),
        ("tests/test_x.py::test_it[B129 busy-x]", ["B129"]),
        ("tests/test_x.py::test_it[ab129-P0]", []),
    ],
    ids=["file", "name", "parameter", "neither"],
)
def test_where_a_row_is_named(node_id: str, rows: list[str]) -> None:
    found = find_tests(["P01", "B129"], [node_id])
    assert sorted(row for row, tests in found.items() if tests) == sorted(rows)
