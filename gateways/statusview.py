"""A running server's status, asked for from another process: once, or again and again on a terminal, in one place.

Gives text to print; prints nothing. On a terminal it takes the second screen for itself, and leaves the last table on
the first one when it is interrupted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateways.core.errors import GatewayError
from gateways.process.report import format_json
from gateways.process.table import format_lines, format_text
from gateways.process.visiting import read_status

JSON, ONCE, LIVE = "json", "once", "live"
PERIOD = 1.0
"""Seconds from one table to the next."""
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def choose_kind(as_json: bool, once: bool, terminal: bool, variables: Mapping[str, str]) -> str:
    """Return how to show a status: a terminal that can move its cursor gets the live table."""
    if as_json:
        return JSON
    return LIVE if terminal and not once and variables.get("TERM", "dumb") not in ("", "dumb") else ONCE


def show(address: str, kind: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield what to print of the server with StatusListen ``address``. Raise ``GatewayError`` when there is none."""
    if kind == LIVE:
        colour = not variables.get("NO_COLOR")
        yield from draw(lambda: read_status(address), lambda: tuple(shutil.get_terminal_size()), time.sleep, colour)
    else:
        yield (format_json if kind == JSON else format_text)(read_status(address))


def draw(
    read: Callable[[], dict[str, Any]],
    find_size: Callable[[], tuple[int, ...]],
    pause: Callable[[float], object],
    colour: bool,
) -> Iterator[str]:
    """Yield one screen after another, until interrupted; then what puts the terminal right, and the last table.

    A server that does not answer any more is waited for: it may be about to be replaced. The first time it must.
    """
    data = read()
    notice = ""
    try:
        yield _ENTER
        while True:
            width, height = find_size()
            yield format_screen(data, width, height, colour, notice)
            pause(PERIOD)
            try:
                data, notice = read(), ""
            except GatewayError as error:
                notice = f"{error}; Ctrl-C ends this"
    except KeyboardInterrupt:
        pass
    finally:
        yield _LEAVE
    yield format_text(data)


def format_screen(data: dict[str, Any], width: int, height: int, colour: bool, notice: str = "") -> str:
    """Return what draws a report over the one before, without clearing the screen in between."""
    lines = format_lines(data, width, height - 1, colour)
    if notice:
        shown = ascii(notice)[1:-1][:width]
        lines = [f"\x1b[1;31m{shown}\x1b[0m" if colour else shown, *lines[: height - 2]]
    return _HOME + "".join(f"{line}{_END_OF_LINE}\r\n" for line in lines) + _END_OF_SCREEN
