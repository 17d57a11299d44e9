"""What ladders say, in words made from their numbers. Pure.

Nothing is said that the figures of this very run do not show: where an interval holds 1, the text says that the order
is open, and not who won.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.ladders import HOLDS, NEAR, REVERSED, Judged, Step
from bench.report.figures import show_ratio, significant
from bench.report.words import join


def tell_original(ladder: Judged) -> list[str]:
    """Return the original's figures of a ladder, from the least to the most; nothing where it had none."""
    known = sorted((rung for rung in ladder.rungs if rung.original), key=lambda rung: rung.original or 0)
    if not known:
        return []
    listed = [f"{ladder.name(rung)} {significant(rung.original or 0)}" for rung in known]
    return [f"{ladder.title}: {join(listed)} ({ladder.measure.unit})."]


def tell_run(ladder: Judged) -> list[str]:
    """Return this run's figures of a ladder in the ladder's order, and who has none."""
    listed = [f"{ladder.name(rung)} {significant(rung.value.median)}" for rung in ladder.rungs if rung.value]
    found = [f"{ladder.title}: {join(listed)} ({ladder.measure.unit})."] if listed else []
    without = [f"{ladder.name(rung)} has no figures: {rung.failed}." for rung in ladder.rungs if rung.failed]
    return [*found, *without]


def tell_order(ladder: Judged) -> list[str]:
    """Return whether a ladder's order holds, and where it does not."""
    if not ladder.steps:
        return [f"{ladder.title}: fewer than two steps have figures, and there is no order to judge."]
    order = " < ".join(ladder.name(rung) for rung in ladder.rungs if rung.value)
    doubtful = [step for step in ladder.steps if step.verdict != HOLDS]
    if not doubtful:
        return [f"{ladder.title}: the order holds ({order}); every step is above 1 in its whole 95 % interval."]
    broken = [step for step in doubtful if step.verdict == REVERSED]
    what = "the order does not hold" if broken else "the order is not contradicted, and not shown throughout"
    return [f"{ladder.title}: {what} ({order}). {' '.join(tell_step(ladder, step) for step in doubtful)}"]


def tell_step(ladder: Judged, step: Step) -> str:
    """Return what a step that does not hold is like."""
    ratio, then = show_ratio(step.ratio), "" if step.then is None else f", and then {significant(step.then)}"
    names = f"{ladder.name(step.upper)} against {ladder.name(step.lower)}"
    if step.verdict == REVERSED:
        return f"{names} is the other way round: {ratio} times its {ladder.measure.title}{then}."
    return f"{names} is open: {ratio} times its {ladder.measure.title}{then}."


def tell_ratios(ladder: Judged) -> list[str]:
    """Return whether a ladder's ratios agree with the original's; nothing where there are none to compare."""
    compared = [rung for rung in ladder.rungs if rung.agrees is not None]
    if not compared:
        return []
    near = [rung for rung in compared if rung.agrees]
    if len(near) == len(compared):
        said = f"all {len(near)} ratios" if len(near) > 1 else "the ratio"
        verb = "agree" if len(near) > 1 else "agrees"
        return [f"{ladder.title}: {said} to {ladder.base} {verb} with the original."]
    far = [
        f"{ladder.name(rung)} ({show_ratio(rung.ratio)} now, {significant(rung.original_ratio or 0)} then)"
        for rung in compared
        if not rung.agrees
    ]
    count = f"{len(near)} of {len(compared)} ratios to {ladder.base} agree with the original"
    return [f"{ladder.title}: {count}; not those of {join(far)}."]


def tell_briefly(ladder: Judged) -> tuple[str, str, str]:
    """Return a ladder's verdict as cells: order, steps that hold, ratios that agree."""
    if not ladder.steps:
        return ("not measured", "-", "-")
    held = sum(step.verdict == HOLDS for step in ladder.steps)
    broken = any(step.verdict == REVERSED for step in ladder.steps)
    order = "holds" if held == len(ladder.steps) else "does not hold" if broken else "open"
    compared = [rung for rung in ladder.rungs if rung.agrees is not None]
    near = f"{sum(bool(rung.agrees) for rung in compared)} of {len(compared)}" if compared else "-"
    return (order, f"{held} of {len(ladder.steps)}", near)


def tell_agreement(ladders: Sequence[Judged]) -> list[str]:
    """Return, for all ladders together, whether the original is reproduced, then each ladder's own."""
    judged = [ladder for ladder in ladders if ladder.steps]
    steps = [step for ladder in judged for step in ladder.steps]
    rungs = [rung for ladder in judged for rung in ladder.rungs if rung.agrees is not None]
    sentences = []
    if steps:
        held, broken = (sum(step.verdict == verdict for step in steps) for verdict in (HOLDS, REVERSED))
        sentences.append(
            f"Of {len(steps)} step{'s' if len(steps) != 1 else ''} in {len(judged)} ladder"
            f"{'s' if len(judged) != 1 else ''}, {held} hold, {broken} {'is' if broken == 1 else 'are'} the other way "
            f"round, and {len(steps) - held - broken} {'is' if len(steps) - held - broken == 1 else 'are'} open."
        )
    if rungs:
        near = sum(bool(rung.agrees) for rung in rungs)
        sentences.append(f"Of {len(rungs)} ratios that the original has too, {near} agree ({NEAR}).")
    for ladder in ladders:
        sentences += [*tell_order(ladder), *tell_ratios(ladder)]
    return sentences
