"""The conformance table over our workers under gunicorn, by http and by fastcgi."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.addresses import parse_address
from tests.conformance.runner import Target, run_row
from tests.conformance.table import Row
from tests.gunicorn_server import hosted
from tests.support_matrix import IN_GUNICORN, Record, note_rows
from tests.test_conformance_http import CASES as ALL_CASES
from tests.test_conformance_http import PROVOKED

pytest.importorskip("gunicorn")

CASES = [(scheme, row) for scheme, row in ALL_CASES if scheme in ("http", "fastcgi")]
LIMITS = ["--limit-request-line", "8190", "--keep-alive", "5", "--workers", "2"]
"""Where gunicorn's own defaults differ from what the table asks of a server."""


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A gunicorn with two workers that speak a wire, and how to reach it."""
    folder = tmp_path_factory.mktemp("gunicorn")
    scheme = str(request.param)
    options = [*LIMITS, "--env", f"GATEWAYS_WIRE={scheme}", "apps.conformance:application"]
    with hosted(folder, *options, tolerated=PROVOKED) as server:
        yield Target(scheme, parse_address(f"{scheme}://127.0.0.1:{server.port}/"))


@pytest.mark.parametrize(
    ("target", "row"), CASES, indirect=["target"], scope="module", ids=[f"{scheme}-{row.name}" for scheme, row in CASES]
)
def test_row(row: Row, target: Target, record_property: Record) -> None:
    note_rows(record_property, IN_GUNICORN, target.name, 1)
    assert run_row(row, target).reason == ""
