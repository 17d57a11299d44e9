"""What a worker is doing, as the numbers that stand in shared memory: read by processes of different parts."""

from __future__ import annotations

DEAD, STARTING, IDLE, BUSY, CLOSING = range(5)
"""``CLOSING`` is said in a word of its own: a worker that leaves is busy or idle meanwhile."""
SERVING = (STARTING, IDLE, BUSY)
"""A worker that takes new connections, or will in a moment."""
