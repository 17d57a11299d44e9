"""Meta-variables of a peer: names, repetitions, CONTENT_LENGTH."""

from __future__ import annotations

import pytest

from gateways.core.errors import RemoteProtocolError
from gateways.core.variables import VariableKeys, check_values, format_key, merge_repeated, parse_content_length


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("HTTP_HOST", "HTTP_HOST"),
        ("my_setting", "my_setting"),
        ("_X1", "_X1"),
        ("HTTP_PROXY", ""),
        ("http_proxy", ""),
        ("Http_Proxy", ""),
        ("HTTP_PROXY_X", "HTTP_PROXY_X"),
        ("wsgi.input", ""),
        ("HTTP-HOST", ""),
        ("1X", ""),
        ("", ""),
        ("A=B", ""),
        ("A\0", ""),
        ("A\n", ""),
        ("\xe9", ""),
        ("\uff21", ""),
    ],
)
def test_h15_which_names_are_kept(name: str, key: str) -> None:
    assert format_key(name) == key


def test_the_memo_of_names_is_bounded() -> None:
    keys = VariableKeys()
    assert keys["X" * 65] == "X" * 65
    assert len(keys) == 0
    for number in range(2000):
        assert keys[f"HTTP_{number}"] == f"HTTP_{number}"
    assert len(keys) == 1024


@pytest.mark.parametrize(
    ("pairs", "strict", "expected"),
    [
        ([("HTTP_X", "1"), ("HTTP_X", "2")], False, {"HTTP_X": "1"}),
        ([("HTTP_X", "1"), ("HTTP_X", "2")], True, {"HTTP_X": "1"}),
        ([("A", "1"), ("A", "2")], False, {"A": "2"}),
        ([("A", "1"), ("A", "2")], True, None),
        ([("A", "1"), ("A", "1")], True, {"A": "1"}),
        ([("REMOTE_USER", "a"), ("REMOTE_USER", "b")], False, None),
        ([("REMOTE_USER", "a"), ("REMOTE_USER", "")], False, None),
        ([("AUTH_TYPE", "Basic"), ("AUTH_TYPE", "x")], False, None),
        ([("REQUEST_METHOD", "GET"), ("REQUEST_METHOD", "POST")], False, None),
        ([("SSL_CLIENT_S_DN", "a"), ("SSL_CLIENT_S_DN", "b")], False, None),
        ([("HTTP_PROXY", "1"), ("a.b", "2"), ("A", "3")], True, {"A": "3"}),
    ],
)  # fmt: skip
def test_s04_names_that_come_twice(pairs: list[tuple[str, str]], strict: bool, expected: dict[str, str] | None) -> None:
    if expected is None:
        with pytest.raises(RemoteProtocolError) as caught:
            merge_repeated(pairs, strict, "section 1")
        assert (caught.value.status, caught.value.section) == (400, "section 1")
    else:
        assert merge_repeated(pairs, strict, "") == expected


def test_h13_nul_in_a_value_is_refused() -> None:
    check_values({"A": "x", "B": ""}, "")
    with pytest.raises(RemoteProtocolError, match="value of B"):
        check_values({"A": "x", "B": "a\0b"}, "")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("", 0), ("0", 0), ("5", 5), ("010", 10), ("100", 100), ("101", 413), ("9" * 18, 413), ("9" * 19, 400),
        ("+5", 400), ("-1", 400), (" 5", 400), ("5 ", 400), ("1_0", 400), ("0x5", 400), ("5,5", 400), ("\xb2", 400),
        ("\u0661", 400), ("5\n", 400), ("x", 400),
    ],
)  # fmt: skip
def test_f12_s02_u06_content_length(text: str, outcome: int) -> None:
    if outcome <= 100:
        assert parse_content_length(text, 100) == outcome
    else:
        with pytest.raises(RemoteProtocolError) as caught:
            parse_content_length(text, 100)
        assert caught.value.status == outcome
