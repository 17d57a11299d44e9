"""The property of every execution, whichever engine found its bytes: ``check(target, data)`` returns or raises.

- Nothing but the exceptions of the contract leaves a wire, and everything that it sends can be read by a client.
- A wire that waits for more holds no more than its limits allow, and sends no more than a small multiple of its input.
- However the input is cut, it comes to the same.
- Bytes of a body are never a request, whether it was read or not.
- A connection that was kept takes another request; one that was not never does.
"""

from __future__ import annotations

from gateways.core.errors import RemoteProtocolError
from tests.fuzz.choices import EARLY, Choices, cut, parse_choices
from tests.fuzz.player import INCOMPLETE, Outcome, Player, play
from tests.fuzz.targets import ALWAYS, NEVER, Target

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
FIXED = 200
"""Bytes of an answer that do not depend on the input."""


def check(target: Target, data: bytes) -> None:
    """Run one execution; raise ``AssertionError``, or what a wire raised against its contract."""
    choices, stream = parse_choices(data)
    body = stream
    if choices.wrap:
        stream = target.wrap(body, choices)
        stream += target.follow(choices)
    whole, first = play(target, choices, [stream] if stream else [])
    parts, second = play(target, choices, cut(stream, choices))
    if is_settled(choices, target.hasty(stream)):
        compare(whole, parts)
    if choices.wrap:
        check_wrapped(target, choices, body, whole)
        check_wrapped(target, choices, body, parts)
    for player in (first, second):
        check_output(player, len(stream))
        check_after(player)


def is_settled(choices: Choices, hasty: int) -> bool:
    """True when what an input comes to may not depend on when its bytes come."""
    if choices.reads_all and not choices.first:
        return hasty != ALWAYS
    return choices.waits and hasty == NEVER


def compare(whole: Outcome, parts: Outcome) -> None:
    """Assert that two ways to cut the same input came to the same."""
    assert parts.calls == whole.calls, f"\n{parts.calls}\n{whole.calls}"
    assert parts.error == whole.error, f"\n{parts.error}\n{whole.error}"
    if whole.error != INCOMPLETE:
        assert parts.open == whole.open
        one, other = (outcome.sent.replace(CONTINUE, b"") for outcome in (parts, whole))
        assert one == other, f"\n{one[:2000]!r}\n{other[:2000]!r}"


def check_wrapped(target: Target, choices: Choices, body: bytes, outcome: Outcome) -> None:
    """Assert that a body came through as it was sent, and that the request behind it is the only other one."""
    assert outcome.error is None, outcome.error
    paths = [call.path for call in outcome.calls]
    assert paths[:1] == ["/body"]
    seen = outcome.calls[0].body
    if choices.reads_all:
        assert seen == body
    else:
        assert body.startswith(seen)
        assert len(seen) >= (min(EARLY, len(body)) if choices.read else 0)
    assert paths[1:] in ([], ["/next"])
    if target.keeps and outcome.open:
        assert paths[1:] == ["/next"]


def check_output(player: Player, size: int) -> None:
    """Assert that what input causes to be sent, beside the answers to requests, is no flood."""
    answers = len(player.calls) + 1
    most = player.target.amplifies * size + answers * (2 * player.choices.answer.size + FIXED) + FIXED
    assert sum(map(len, player.sent)) <= most + error_bytes(player)


def error_bytes(player: Player) -> int:
    """The most that an error page may take: its text may quote a part of the input."""
    return 1000 if player.error is not None else 0


def check_after(player: Player) -> None:
    """Assert that a connection that is open takes another request, and a closed one none."""
    follow = player.target.follow(player.choices)
    calls = len(player.calls)
    if player.is_idle and player.choices.ample:
        player.feed(follow)
        assert [call.path for call in player.calls[calls:]] == ["/next"]
    elif player.over:
        wire = player.wire
        wire.receive(follow)
        try:
            assert wire.take_request() is None
        except RemoteProtocolError:
            pass
