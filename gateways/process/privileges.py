"""Whom a worker becomes: looked up while still root, then put on in the one order that works, and checked.

Knows no pool and no signal. ``become`` runs in a worker only; the supervisor stays who it is, to open and to fork.
"""

from __future__ import annotations

import grp
import os
import pwd
from typing import NamedTuple

from gateways.core.errors import ConfigurationError, GatewayError


class Identity(NamedTuple):
    """A user and groups by number. ``name`` and ``home`` go into the environment; ``""`` where nobody has them."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str = ""
    home: str = ""


def look_up_identity(user: str, group: str) -> Identity | None:
    """Return whom ``user`` and ``group`` (names or numbers, ``""`` for not given) mean; None for whom we are.

    A user without a group has the groups of the user database; a group that is given is the only one beside those of
    the user. Raise ``ConfigurationError`` for an unknown name, for a number without a group, and when this process
    may not become somebody else.
    """
    if not user and not group:
        return None
    entry = _find_user(user) if user else None
    uid = entry.pw_uid if entry else int(user or os.getuid())
    gid = _find_group(group) if group else entry.pw_gid if entry else -1
    if gid < 0:
        raise ConfigurationError(f"User {user} is a number that the user database does not know: give a Group too")
    groups = tuple(os.getgrouplist(entry.pw_name, gid)) if entry else (gid,)
    identity = Identity(uid, gid, groups, entry.pw_name if entry else "", entry.pw_dir if entry else "")
    if os.geteuid() == 0:
        return identity
    if uid == os.geteuid() and gid == os.getegid():
        return None
    raise ConfigurationError(
        f"User {user or '(the same)'}, Group {group or '(its own)'}: only root can change to these"
    )


def _find_user(user: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except KeyError:
        if user.isdigit():
            return None
        raise ConfigurationError(f"there is no user {user!r} on this machine") from None


def _find_group(group: str) -> int:
    try:
        return int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigurationError(f"there is no group {group!r} on this machine") from None


def become(identity: Identity) -> None:
    """Become ``identity``, for good: groups, group, user, in this order (after setuid the others are forbidden).

    Raise ``GatewayError`` when any step fails (setuid does with EAGAIN when the user has too many processes), or when
    the way back is open afterwards. Linux makes a process that changes its user undumpable, and so out of reach for
    ptrace by others of that user, unless ``fs.suid_dumpable`` says otherwise.
    """
    try:
        os.setgroups(identity.groups)
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)
    except OSError as error:
        raise GatewayError(f"cannot become user {identity.uid}, group {identity.gid}: {error.strerror}") from error
    _verify(identity)
    if identity.name:
        os.environ.update(HOME=identity.home, USER=identity.name, LOGNAME=identity.name)


def _verify(identity: Identity) -> None:
    if os.getresuid() != (identity.uid,) * 3 or os.getresgid() != (identity.gid,) * 3:
        raise GatewayError(f"is not user {identity.uid}, group {identity.gid} after becoming it")
    if set(os.getgroups()) != set(identity.groups):
        raise GatewayError(f"has other groups than {identity.groups} after becoming user {identity.uid}")
    if identity.uid == 0:
        return
    try:
        os.setuid(0)
    except OSError:
        return
    raise GatewayError(f"could become root again after becoming user {identity.uid}")
