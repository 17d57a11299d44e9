"""An audit as a person reads it, as a program reads it, and as an exit status. Pure: text out of data."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from gateways.audit.conduct import ROUNDS, Audit
from gateways.audit.expect import Difference
from gateways.audit.judge import NOT_SET, Cause, Standing, Verdict
from gateways.audit.kinds import KINDS, OWN_KINDS
from gateways.audit.locate import Place, format_place

WIDTH = 110
MAX_SHOWN = 3
"""Answers that are shown of one finding."""
MAX_KEPT = 6
MAX_VALUE = 70
_ADDRESS = re.compile(r" \(?[0-9a-f]{9,16}\b\)?")
_SPEED = ("handler", "wsgi", "registry", "perlrun", "zygote")
"""Rungs that are recommended, fastest first; a shared namespace is not worth its danger."""
_FINE = (Standing.SAFE, Standing.YARDSTICK)


@dataclass(frozen=True, slots=True)
class Finding:
    """Causes that one place of source makes. ``causes``: of any rung, the first of each kind and name."""

    causes: tuple[Cause, ...]
    rungs: tuple[str, ...]
    places: tuple[Place, ...]

    @property
    def differences(self) -> list[Difference]:
        """The answers that it may explain, each kind of them once; first those right after what they belong to."""
        found = next((cause.differences for cause in self.causes if cause.differences), [])
        found = sorted(found, key=lambda difference: difference.whose < 0 or difference.whose != difference.previous)
        return list({(d.request, d.whose, d.what, d.got if d.whose < 0 else ""): d for d in reversed(found)}.values())[
            ::-1
        ]

    @property
    def is_disclosure(self) -> bool:
        """True when the application itself kept something, and a request was sent what belongs to another's answer."""
        own = any(cause.kind in OWN_KINDS for cause in self.causes)
        return own and any(difference.whose >= 0 for difference in self.differences)


def list_findings(audit: Audit) -> list[Finding]:
    """Return the faults of all rungs, grouped by the line that makes them, the gravest first."""
    groups: dict[object, list[Cause]] = {}
    rungs: dict[object, dict[str, None]] = {}
    for verdict in audit.verdicts:
        for cause in verdict.causes:
            if not cause.fault:
                continue
            places = audit.places.get(cause.key, [])
            group: object = places[0] if places else cause.key
            known = groups.setdefault(group, [])
            same = next((other for other in known if other.key == cause.key), None)
            if same is None:
                known.append(cause)
            elif cause.differences and not same.differences:
                known[known.index(same)] = cause
            rungs.setdefault(group, {})[verdict.rung] = None
    findings = []
    for group, causes in groups.items():
        places = [place for cause in causes for place in audit.places.get(cause.key, [])]
        findings.append(Finding(tuple(causes), tuple(rungs[group]), tuple(dict.fromkeys(places))))
    return sorted(findings, key=lambda finding: (not finding.is_disclosure, not finding.differences))


def has_passed(audit: Audit, model: str = "") -> bool:
    """True when ``model``, or every rung, is safe as it is."""
    return all(verdict.standing in _FINE for verdict in audit.verdicts if not model or verdict.rung == model)


def find_best(audit: Audit) -> Verdict | None:
    """Return the verdict on the fastest rung that is safe, with or without a setting."""
    fine = {v.rung: v for v in audit.verdicts if v.standing in (Standing.SAFE, Standing.SETTING)}
    return next((fine[rung] for rung in _SPEED if rung in fine), None)


def format_command(audit: Audit) -> tuple[str, str]:
    """Return (the command that serves the application safely, why that)."""
    best = find_best(audit)
    yardstick = audit.verdicts[0].rung.partition(" ")[0]
    words = ["gateways", "serve", audit.plan.shown]
    if best is not None:
        words += ["--model", best.rung]
        settings: tuple[tuple[str, str], ...] = best.settings
        why = "the fastest model that is safe for it"
    elif yardstick in ("cgi", "zygote"):
        words += ["--model", yardstick]
        settings, why = (), "a new process for every request, until the findings are mended"
    else:
        words += ["--model", yardstick]
        settings = (("MaxRequestsPerChild", "1"),)
        why = "a new process for every request, until the findings are mended: slow, and right"
    for name, value in settings:
        words += [_FLAGS[name], value]
    for folder in audit.plan.python_path:
        words += ["--python-path", folder]
    return shlex.join(words), why


_FLAGS = {"Namespace": "--namespace", "Stdio": "--stdio", "MaxRequestsPerChild": "--max-requests-per-child"}


def format_text(audit: Audit, folder: str) -> str:
    """Return the report for a terminal; paths are shown relative to ``folder``."""
    findings = list_findings(audit)
    lines = [*_format_head(audit), "", *_format_ladder(audit, findings)]
    for number, finding in enumerate(findings, 1):
        lines += ["", *_format_finding(audit, number, finding, folder)]
    lines += _format_notes(audit)
    lines += ["", "What to do next", *_format_next(audit)]
    lines += ["   and this audit once more, when something is changed"] if findings else []
    return "\n".join([*lines, ""])


def _format_next(audit: Audit) -> list[str]:
    tried = [verdict for verdict in audit.verdicts if verdict.standing not in (Standing.YARDSTICK, Standing.UNTRIED)]
    if not tried:
        return ["   mend what kept the application from being tried, and audit it again"]
    command, why = format_command(audit)
    return [f"   {command}", f"      {why}"]


def _format_head(audit: Audit) -> list[str]:
    count = len(audit.requests)
    asked = "1 request" if count == 1 else f"{count} requests"
    lines = [
        f"gateways audit {audit.plan.shown}",
        f"{asked}, {ROUNDS} times each, in shuffled orders (seed {audit.plan.seed}):",
    ]
    shown = [f"   {asked.label}" for asked in audit.requests[:8]]
    return [*lines, *shown, *([f"   and {count - 8} more"] if count > 8 else [])]


def _format_ladder(audit: Audit, findings: Sequence[Finding]) -> list[str]:
    rows = []
    for verdict in audit.verdicts:
        numbers = [str(number) for number in _number(verdict, findings)]
        rows.append((verdict.rung, *_describe(verdict), ", ".join(numbers)))
    names = max(len("model"), *(len(row[0]) for row in rows))
    words = max(len("verdict"), *(len(row[1]) for row in rows))
    lines = [f"   {'model':<{names}}  {'verdict':<{words}}  findings", f"   {'-' * names}  {'-' * words}  --------"]
    for name, word, more, found in rows:
        lines.append(f"   {name:<{names}}  {word:<{words}}  {found}".rstrip())
        lines += [f"   {'':<{names}}  {line}" for line in textwrap.wrap(more, WIDTH - names - 5)]
    return lines


def _number(verdict: Verdict, findings: Sequence[Finding]) -> list[int]:
    """Return the numbers of a rung's findings."""
    return [number for number, finding in enumerate(findings, 1) if verdict.rung in finding.rungs]


def _describe(verdict: Verdict) -> tuple[str, str]:
    """Return (a few words, more of them or "") for a verdict."""
    settings = ", ".join(f"{name} = {value}" for name, value in verdict.settings)
    if verdict.standing is Standing.YARDSTICK:
        return "the yardstick: a new process for every request", ""
    if verdict.standing is Standing.UNTRIED:
        return "not tried", verdict.reason
    if verdict.standing is Standing.UNSAFE:
        return "UNSAFE", ""
    default = ", the default" if verdict.settings == (("Namespace", "fresh"),) else ""
    return f"safe with {settings}{default}" if settings else "safe", ""


def _format_finding(audit: Audit, number: int, finding: Finding, folder: str) -> list[str]:
    rungs = ", ".join(finding.rungs)
    grave = "PRIVILEGE LEAK  one request is sent what belongs to the answer of another" if finding.is_disclosure else ""
    title = grave or _capitalise(_tell(audit, finding.causes[0]))
    lines = [f"{number}  {title}  [{rungs}]", ""]
    if finding.places:
        wheres = [format_place(place, folder) for place in finding.places]
        width = max(map(len, wheres))
        lines += [f"   {where:<{width}}   {place.text}" for where, place in zip(wheres, finding.places, strict=True)]
    else:
        lines.append("   (no line of the application could be told)")
    lines += ["", "   What happened"]
    for cause in finding.causes:
        lines += _wrap(f"{_capitalise(_tell(audit, cause))}{_tell_values(audit, cause)}.", 6)
    for difference in finding.differences[:MAX_SHOWN]:
        lines += _format_difference(audit, difference)
    rest = len(finding.differences) - MAX_SHOWN
    lines += [f"      and {rest} more answers like that"] if rest > 0 else []
    lines += ["", "   What to change"]
    for change in dict.fromkeys(_fill(KINDS[cause.kind].change, cause) for cause in finding.causes):
        lines += _wrap(f"{_capitalise(change)}.", 6)
    return lines


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrap(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)


def _fill(text: str, cause: Cause) -> str:
    return text.replace("{name}", cause.name)


def _tell(audit: Audit, cause: Cause) -> str:
    named = cause
    if cause.kind == "answer":
        named = Cause(cause.kind, audit.requests[cause.request].label, True)
    return _fill(KINDS[cause.kind].happened, named)


def _tell_values(audit: Audit, cause: Cause) -> str:
    """Return what a cause changed, from what to what, where that says something to a reader."""
    if cause.kind in ("no end", "answer", "memory", "loaded modules", "random numbers") or cause.request < 0:
        return ""
    where = f"; seen at {audit.requests[cause.request].label}"
    if cause.kind == "end of the process":
        return f": {cause.after}"
    if cause.kind == "leftover":
        usual = "it is not set" if cause.before == NOT_SET else f"it is {_show(cause.before)}"
        return f": it is {_show(cause.after)}, and in a new namespace {usual}{where}"
    if cause.before or cause.after:
        return f" ({_show(cause.before)} -> {_show(cause.after)}){where}"
    return where


def _show(text: str) -> str:
    """Return a value in a few words, without addresses."""
    text = _ADDRESS.sub("", text)
    return (text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "...") or "nothing"


def _format_difference(audit: Audit, difference: Difference) -> list[str]:
    asked = audit.requests[difference.request].label
    after = f", after {audit.requests[difference.previous].label}" if difference.previous >= 0 else ""
    whose = ""
    if difference.whose >= 0:
        whose = f", got what belongs to the answer to {audit.requests[difference.whose].label}"
    lines = _wrap(f"{asked}{after}{whose}:", 6)
    what = "" if difference.what == "body" else f"{difference.what} "
    lines.append(f"         {what}expected  {_one_line(difference.expected)}")
    lines.append(f"         {what}got       {_one_line(difference.got)}")
    return [*lines, f"         raised    {_one_line(difference.error)}"] if difference.error else lines


def _one_line(text: str) -> str:
    shown = text.encode("unicode_escape").decode("ascii")
    return shown if len(shown) < WIDTH - 20 else shown[: WIDTH - 23] + "..."


def _format_notes(audit: Audit) -> list[str]:
    lines = [line for note in audit.notes for line in _wrap(note, 3)]
    kept = dict.fromkeys(
        f"{cause.kind} {cause.name}"
        for verdict in audit.verdicts
        for cause in verdict.causes
        if not cause.fault and cause.kind != "leftover"
    )
    if kept:
        more = f" and {len(kept) - MAX_KEPT} more" if len(kept) > MAX_KEPT else ""
        text = "kept, and settled after the first round, as caches are: " + ", ".join(list(kept)[:MAX_KEPT]) + more
        lines += _wrap(text, 3)
    return ["", "Notes", *lines] if lines else []


def format_json(audit: Audit, model: str = "") -> str:
    """Return the outcome as JSON: ``passed``, ``verdicts``, ``findings``, ``notes``, ``serve``."""
    findings = list_findings(audit)
    document = {
        "target": audit.plan.shown,
        "passed": has_passed(audit, model),
        "seed": audit.plan.seed,
        "requests": [asked.label for asked in audit.requests],
        "verdicts": [
            {
                "model": verdict.rung,
                "verdict": verdict.standing.value,
                "settings": dict(verdict.settings),
                "reason": verdict.reason,
                "findings": _number(verdict, findings),
            }
            for verdict in audit.verdicts
        ],
        "findings": [_make_finding(audit, number, finding) for number, finding in enumerate(findings, 1)],
        "kept": sorted({f"{c.kind} {c.name}" for v in audit.verdicts for c in v.causes if not c.fault}),
        "notes": list(audit.notes),
        "serve": format_command(audit)[0],
    }
    return json.dumps(document, indent=2) + "\n"


def _make_finding(audit: Audit, number: int, finding: Finding) -> dict[str, object]:
    return {
        "number": number,
        "models": list(finding.rungs),
        "discloses": finding.is_disclosure,
        "places": [{"file": place.file, "line": place.line, "text": place.text} for place in finding.places],
        "causes": [
            {
                "kind": cause.kind,
                "name": cause.name,
                "happened": _tell(audit, cause),
                "before": cause.before,
                "after": cause.after,
                "change": _fill(KINDS[cause.kind].change, cause),
            }
            for cause in finding.causes
        ],
        "answers": [
            {
                "request": audit.requests[difference.request].label,
                "after": audit.requests[difference.previous].label if difference.previous >= 0 else "",
                "belongs_to": audit.requests[difference.whose].label if difference.whose >= 0 else "",
                "what": difference.what,
                "expected": difference.expected,
                "got": difference.got,
            }
            for difference in finding.differences
        ],
    }
