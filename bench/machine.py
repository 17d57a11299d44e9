"""What a result was measured on: processor, cores, kernel, Python, date, load. Knows nothing of what is measured."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime


def parse_cpu_model(text: str) -> str:
    """Return the processor's name from /proc/cpuinfo; ``"unknown"`` when it has none."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return "unknown"


def read_text(path: str) -> str:
    """Return a small file's text, ``""`` when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""


def describe_machine() -> dict[str, object]:
    """Return what a reader needs to judge a figure, as plain values for JSON."""
    return {
        "cpu": parse_cpu_model(read_text("/proc/cpuinfo")),
        "cores": os.cpu_count() or 1,
        "usable_cores": sorted(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "date": datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        "load_average": list(os.getloadavg()),
        "command": ["python", "-m", "bench", *sys.argv[1:]],
    }


def choose_cores(usable: list[int]) -> tuple[int | None, int | None]:
    """Return (core for the load, core for the server); ``(None, None)`` when there is only one."""
    return (usable[0], usable[-1]) if len(usable) > 1 else (None, None)
