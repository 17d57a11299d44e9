"""The life of a worker as a picture: the table of legal steps as Mermaid text. ``docs/process-model.md`` holds it."""

from __future__ import annotations

from gateways.process.scoreboard import TRANSITIONS, State

STEPS: dict[tuple[State, State], str] = {
    (State.DEAD, State.STARTING): "forked",
    (State.STARTING, State.IDLE): "application loaded",
    (State.STARTING, State.CLOSING): "supervisor gone",
    (State.STARTING, State.DEAD): "could not load, or TERM",
    (State.IDLE, State.BUSY): "request complete",
    (State.IDLE, State.CLOSING): "QUIT, TERM, supervisor gone",
    (State.IDLE, State.DEAD): "killed",
    (State.BUSY, State.IDLE): "response sent",
    (State.BUSY, State.CLOSING): "request limit, QUIT, TERM",
    (State.BUSY, State.DEAD): "killed, or RequestTimeout",
    (State.CLOSING, State.DEAD): "last connection done, or GracefulTimeout",
}
"""What makes a worker take each step."""


def format_diagram() -> str:
    """Return ``TRANSITIONS`` as a Mermaid state diagram, a line a step."""
    lines = ["stateDiagram-v2", "    [*] --> dead"]
    for state, following in TRANSITIONS.items():
        for after in sorted(following):
            lines.append(f"    {state.name.lower()} --> {after.name.lower()}: {STEPS[state, after]}")
    return "\n".join(lines) + "\n"
