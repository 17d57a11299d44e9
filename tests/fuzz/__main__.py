"""``python -m tests.fuzz WIRE [--runs N] [--seconds S]``: fuzz one wire, or ``all``; 1 when something was found.

With atheris (``pip install atheris``, or the extra ``fuzz``) inputs are guided by coverage; without it a plain engine
mutates the same seeds. Both run the same property, ``tests.fuzz.check``. An input that breaks it is kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from tests.fuzz.check import check
from tests.fuzz.hang import begin_execution, end_executions, watch_hangs
from tests.fuzz.mutation import Mutator
from tests.fuzz.seeds import TOKENS, make_seeds
from tests.fuzz.tally import Tally
from tests.fuzz.targets import TARGETS, Target

FINDINGS = Path("tests/fuzz/findings")
RUNS = 50_000
ENGINES = ("auto", "atheris", "plain")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the parser of a wire.")
    parser.add_argument("wire", choices=[*TARGETS, "all"], help="which one; all: one after the other")
    parser.add_argument("--runs", type=int, default=0, help=f"executions for each wire (default {RUNS:,})")
    parser.add_argument("--seconds", type=float, default=0, help="at most so long for each wire")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="auto: atheris where it is installed")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn; drawn itself if not given")
    parser.add_argument("--corpus", type=Path, help="a folder where atheris keeps what it found new, for the next time")
    parser.add_argument("--input", type=Path, action="append", default=[], help="only run this kept input again")
    return parser


def run_inputs(target: Target, paths: Iterable[Path]) -> int:
    """Run kept inputs; their exceptions are shown."""
    failed = 0
    for path in paths:
        if holds(target, path.read_bytes()):
            print(f"{path}: nothing found")
        else:
            failed = 1
    return failed


def holds(target: Target, data: bytes) -> bool:
    """True when an execution found nothing; otherwise its exception is shown."""
    begin_execution()
    try:
        check(target, data)
    except Exception:  # noqa: BLE001 whatever a wire raises is what is looked for
        traceback.print_exc()
        return False
    finally:
        end_executions()
    return True


def run_plain(target: Target, arguments: argparse.Namespace, seed: int) -> int:
    """Fuzz with the plain engine."""
    seeds = make_seeds(target.name)
    mutator = Mutator(seeds, TOKENS[target.name], seed)
    tally = Tally(target.name, arguments.runs, arguments.seconds)
    for number in range(sys.maxsize):
        data = seeds[number] if number < len(seeds) else mutator.make()
        if not holds(target, data):
            path = FINDINGS / f"{target.name}-{seed}-{number}"
            path.write_bytes(data)
            tally.tell("until something was found")
            return report([path], target.name)
        if not tally.count():
            break
    tally.tell("done, nothing found")
    return 0


def run_guided(target: Target, arguments: argparse.Namespace, seed: int) -> int:
    """Fuzz with atheris, in a process of its own; what was kept there before is found by the prefix of its name."""
    prefix = f"{FINDINGS}/{target.name}-{seed}-"
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, target.name) if arguments.corpus is None else arguments.corpus / target.name
        corpus.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(make_seeds(target.name)):
            (corpus / f"seed-{number:04}").write_bytes(data)
        dictionary = "".join(f'"{escape(token)}"\n' for token in TOKENS[target.name])
        Path(f"{corpus}.dict").write_text(dictionary, encoding="ascii")
        command = [sys.executable, "-m", "tests.fuzz.guided", target.name, str(arguments.runs)]
        status = subprocess.run(
            [*command, str(arguments.seconds), str(seed), str(corpus), prefix], check=False
        ).returncode
    if not status:
        return 0
    return report(sorted(FINDINGS.glob(f"{target.name}-{seed}-*")), target.name)


def escape(token: bytes) -> str:
    """Return a token as libFuzzer's dictionaries have it."""
    return "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02X}" for c in token)


def report(paths: list[Path], wire: str) -> int:
    """Say where what was found is kept."""
    for path in paths:
        print(f"FOUND: {path}\nrun it again: python -m tests.fuzz {wire} --input {path}", file=sys.stderr)
    if not paths:
        print(f"the engine for {wire} ended without an input to keep; see above", file=sys.stderr)
    return 1


def choose_engine(name: str) -> str:
    """Return the engine's name; raise ``ValueError`` for one that is not installed."""
    here = importlib.util.find_spec("atheris") is not None
    if name == "atheris" and not here:
        raise ValueError("atheris is not installed for this Python: python -m pip install atheris")
    if name != "auto":
        return name
    if not here:
        print("atheris is not installed for this Python: inputs are mutated without coverage", file=sys.stderr)
    return "atheris" if here else "plain"


def main() -> int:
    """Run the command line; 2 for what cannot be done."""
    arguments = make_parser().parse_args()
    if not Path("tests/fuzz").is_dir():
        print("fuzz: run this from the repository's root", file=sys.stderr)
        return 2
    if not arguments.runs and not arguments.seconds:
        arguments.runs = RUNS
    watch_hangs()
    wires = list(TARGETS) if arguments.wire == "all" else [arguments.wire]
    if arguments.input:
        return max(run_inputs(TARGETS[wire], arguments.input) for wire in wires)
    try:
        engine = choose_engine(arguments.engine)
    except ValueError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2
    FINDINGS.mkdir(exist_ok=True)
    run = run_guided if engine == "atheris" else run_plain
    status = 0
    for wire in wires:
        seed = arguments.seed or int.from_bytes(os.urandom(3)) or int(time.time())
        print(f"{wire}: engine {engine}, seed {seed}", file=sys.stderr)
        status |= run(TARGETS[wire], arguments, seed)
    return status


if __name__ == "__main__":
    sys.exit(main())
