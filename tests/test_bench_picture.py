"""One case of a result as an SVG file of its own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.__main__ import make_parser
from bench.report.picture import format_picture
from bench.results import read_run, write_run
from tests.test_bench_comparison import run_of

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_a_file_that_needs_no_other() -> None:
    run = run_of({"slow <b>": [100.0, 101, 99], "fast": [200.0, 201, 199]}, {})
    root = ElementTree.fromstring(format_picture(run, "direct"))
    assert root.tag == f"{SVG}svg"
    words = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert words[0] == "T"
    assert words[1].startswith("direct; 1 at a time, a new connection for each request")
    assert {"slow <b>", "fast", "500", "1,000"} <= {*words}
    assert len(root.findall(f".//{SVG}rect")) == 2
    assert not [name for element in root.iter() for name in element.attrib if "href" in name]


def test_the_command_writes_it_beside_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.json"
    write_run(run_of({"a": [100.0], "b": [200.0]}, {}), path)
    arguments = make_parser().parse_args(["report", str(path), "--picture", "direct"])
    assert arguments.run(arguments) == 0
    assert f"picture: {tmp_path / 'small-direct.svg'}" in capsys.readouterr().out
    assert (tmp_path / "small-direct.svg").read_text().startswith("<svg xmlns=")


def test_a_case_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="there is no case 'sideways'; there are direct"):
        format_picture(run_of({"a": [100.0]}, {}), "sideways")
    with pytest.raises(ValueError, match="and this is compare"):
        format_picture(read_run(Path(__file__).with_name("data") / "bench_compare.json"), "direct")
