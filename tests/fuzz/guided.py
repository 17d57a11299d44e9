"""The engine that is guided by coverage: atheris over libFuzzer. Run as a process of its own, which the engine ends.

``python -m tests.fuzz.guided WIRE RUNS SECONDS SEED CORPUS FINDINGS``. Exit status 0: nothing was found.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr
from io import StringIO

import atheris

MAX_SIZE = 4096
STUCK = 1200
"""Seconds after which libFuzzer itself ends an execution that no Python exception can (see ``hang``)."""
MEMORY = 768
"""MiB beyond which the process counts as leaking."""


def main(wire: str, runs: str, seconds: str, seed: str, corpus: str, findings: str) -> None:
    """Fuzz one wire; does not return."""
    # It names each module that it instruments.
    with redirect_stderr(StringIO()), atheris.instrument_imports(include=["gateways.wire", "gateways.core"]):
        from tests.fuzz.check import check
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.hang import begin_execution, watch_hangs
    from tests.fuzz.tally import Tally

    target = TARGETS[wire]
    tally = Tally(wire, int(runs), float(seconds))

    def run(data: bytes) -> None:
        begin_execution()
        check(target, data)
        if not tally.count():
            tally.tell("done, nothing found")
            # libFuzzer counts time only between generations of inputs, and exits without a word.
            sys.stderr.flush()
            os._exit(0)

    arguments = [
        sys.argv[0], f"-max_len={MAX_SIZE}", f"-timeout={STUCK}", f"-rss_limit_mb={MEMORY}", f"-seed={seed}",
        f"-dict={corpus}.dict", f"-artifact_prefix={findings}", "-verbosity=0", corpus,
    ]  # fmt: skip
    atheris.Setup(arguments, run)
    watch_hangs()
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
