"""Whom a worker may become: looked up before, put on in one order, checked afterwards (P15)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateways.core.errors import ConfigurationError
from gateways.process.privileges import Identity, look_up_identity

ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
PROGRAM = """
import os
from gateways.core.errors import GatewayError
from gateways.process import privileges
from gateways.process.privileges import Identity, become, look_up_identity
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_nothing_given_is_nobody_to_become() -> None:
    assert look_up_identity("", "") is None


@ROOT_ONLY
@pytest.mark.parametrize(
    ("user", "group", "identity"),
    [
        ("nobody", "", Identity(65534, 65534, (65534,), "nobody", "/nonexistent")),
        ("nobody", "root", Identity(65534, 0, (0,), "nobody", "/nonexistent")),
        ("65534", "7", Identity(65534, 7, (7,), "nobody", "/nonexistent")),
        ("", "65534", Identity(0, 65534, (65534,))),
        ("54321", "54322", Identity(54321, 54322, (54322,))),
    ],
)
def test_p15_names_and_numbers(user: str, group: str, identity: Identity) -> None:
    found = look_up_identity(user, group)
    assert found is not None
    assert (found.uid, found.gid, found.groups) == (identity.uid, identity.gid, identity.groups)
    assert found.name == identity.name


@pytest.mark.parametrize(
    ("user", "group", "sentence"),
    [
        ("no-such-user", "", "there is no user 'no-such-user' on this machine"),
        ("", "no-such-group", "there is no group 'no-such-group' on this machine"),
        ("54321", "", "User 54321 is a number that the user database does not know: give a Group too"),
    ],
)
def test_p15_whoever_is_not_there_is_refused(user: str, group: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        look_up_identity(user, group)


@ROOT_ONLY
def test_p15_groups_group_and_user_are_gone_for_good() -> None:
    said = run("""
become(Identity(54321, 54322, (54323,), "somebody", "/home/somebody"))
for call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.seteuid(0)):
    try:
        call()
    except PermissionError:
        print("refused")
print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ["HOME"], os.environ["USER"])
""")
    assert said == "refused\n" * 4 + ("(54321, 54321, 54321) (54322, 54322, 54322) [54323] /home/somebody somebody\n")


@ROOT_ONLY
@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        ("os.setresuid(54321, 54321, 54321)", "cannot become user 65534, group 65534: Operation not permitted"),
        ("os.setresuid = lambda *ids: None", "is not user 65534, group 65534 after becoming it"),
        ("os.setresgid = lambda *ids: None", "is not user 65534, group 65534 after becoming it"),
        ("os.setgroups = lambda ids: None", "has other groups than"),
    ],
    ids=["already somebody", "setuid that does nothing", "setgid that does nothing", "setgroups that does nothing"],
)
def test_p15_a_step_that_fails_in_any_way_ends_the_worker(prepare: str, sentence: str) -> None:
    said = run(f"""
os.setgroups([0, 4])
{prepare}
try:
    become(Identity(65534, 65534, (65534,)))
except GatewayError as error:
    print(error)
""")
    assert sentence in said


@ROOT_ONLY
def test_p15_who_is_not_root_is_told_at_the_start() -> None:
    said = run("""
os.setgid(54321)
os.setuid(54321)
print(look_up_identity("54321", "54321"))
try:
    look_up_identity("nobody", "")
except GatewayError as error:
    print(error)
""")
    assert said == "None\nUser nobody, Group (its own): only root can change to these\n"
