"""``python -m bench.sized FOLDER``: what ``apps/hello.py`` sends for /size/N, as files N.bin for servers of files."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.answers import call_application
from bench.servers import HELLO

SIZES = (2, 8192, 16384, 1 << 20)


def main(words: list[str]) -> int:
    """Write the files; return the exit status."""
    if len(words) != 1:
        print("usage: python -m bench.sized FOLDER", file=sys.stderr)
        return 2
    folder = Path(words[0])
    folder.mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        (folder / f"{size}.bin").write_bytes(call_application(HELLO, f"/size/{size}").body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
