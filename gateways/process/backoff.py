"""When the next worker may be started after some have failed: a clock reading in, a number out.

Knows why nothing failed and starts nothing itself.
"""

from __future__ import annotations

FIRST_DELAY = 0.1
MAX_DELAY = 10.0
DOUBLINGS = 16
MAX_UNPROVEN = 8
"""Workers that may be starting at once while none of their generation has ever been ready."""
NO_BOUND = 1 << 30


class Backoff:
    """A delay that doubles from 0.1 to 10 seconds with each failure in a row, and is gone with a success."""

    __slots__ = ("failures", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0

    def fail(self, now: float) -> float:
        """Note a failure at ``now`` (monotonic seconds) and return the seconds to wait."""
        delay = min(MAX_DELAY, FIRST_DELAY * (1 << min(self.failures, DOUBLINGS)))
        self.failures += 1
        self.until = now + delay
        return delay

    def succeed(self) -> None:
        """Forget the failures."""
        self.failures = 0
        self.until = 0.0

    def allowance(self, now: float, starting: int, proven: bool) -> int:
        """Return how many workers may be started at ``now``, while ``starting`` are not ready yet.

        After a failure they are tried one at a time. ``proven``: some worker of this generation has been ready.
        """
        if now < self.until:
            return 0
        if self.failures:
            return max(0, 1 - starting)
        return NO_BOUND if proven else max(0, MAX_UNPROVEN - starting)
