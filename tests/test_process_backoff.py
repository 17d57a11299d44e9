"""When the next worker may start after some have failed (P04, P05, B120)."""

from __future__ import annotations

from gateways.process.backoff import MAX_DELAY, MAX_UNPROVEN, NO_BOUND, Backoff


def test_the_delay_doubles_from_a_tenth_of_a_second_to_ten() -> None:
    backoff = Backoff()
    delays = [backoff.fail(0.0) for _ in range(10)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


def test_the_delay_stays_at_its_cap_however_long_it_fails() -> None:
    backoff = Backoff()
    assert {backoff.fail(0.0) for _ in range(5000)} >= {MAX_DELAY}
    assert backoff.fail(0.0) == MAX_DELAY


def test_nothing_starts_before_the_delay_is_over_then_one_at_a_time() -> None:
    backoff = Backoff()
    backoff.fail(100.0)
    assert backoff.allowance(100.05, 0, True) == 0
    assert backoff.allowance(100.11, 0, True) == 1
    assert backoff.allowance(100.11, 1, True) == 0


def test_a_success_forgets_the_failures() -> None:
    backoff = Backoff()
    backoff.fail(100.0)
    backoff.succeed()
    assert backoff.allowance(100.0, 3, True) == NO_BOUND
    assert backoff.fail(100.0) == 0.1


def test_a_generation_that_has_never_been_ready_starts_few_at_once() -> None:
    backoff = Backoff()
    assert backoff.allowance(0.0, 0, False) == MAX_UNPROVEN
    assert backoff.allowance(0.0, MAX_UNPROVEN, False) == 0


def test_b120_b128_a_loop_of_dying_workers_is_less_than_twenty_forks_a_minute() -> None:
    """Ten workers die at once and all that follow die at once: the clock runs from one permitted start to the next."""
    backoff = Backoff()
    now, forks = 0.0, 0
    for _ in range(10):
        backoff.fail(now)
    while backoff.until < 60.0:
        now = backoff.until
        forks += min(5, backoff.allowance(now, 0, True))
        backoff.fail(now)
    assert forks < 10
