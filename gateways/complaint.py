"""Says what is wrong with what was given, and with which exit status. Knows nothing of why it is wrong."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateways.core.errors import ConfigurationError

WRONG_USAGE = 2
FAILED = 1
CGI_USAGE = "gateways cgi TARGET [--model MODEL]"
RUN_USAGE = "gateways run [--model MODEL] [--bind ADDRESS] [--start-servers N] FILE [ARGUMENT ...]"


def complain(sentence: str) -> int:
    """Print what is wrong and return the exit status for it."""
    if sys.stderr is not None:  # closed, as FastCGI 2.2 allows
        sys.stderr.write(f"gateways: {sentence}\n")
    return WRONG_USAGE


def print_mistakes(mistakes: Sequence[ConfigurationError]) -> int:
    """Print mistakes, one a line, and return the exit status for them."""
    for mistake in mistakes:
        sys.stderr.write(f"{mistake}\n" if mistake.file else f"gateways: {mistake}\n")
    return WRONG_USAGE
