"""From checked sections to settings: which values contradict each other, and what the ungiven ones become.

Looks at the disk to see whether targets are there; imports no application.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateways.config.addresses import ListenAddress
from gateways.config.directives import REQUIRED, SCRIPT_MODELS
from gateways.config.exposure import find_exposure, find_unreachable
from gateways.config.secrets import read_secret
from gateways.config.sections import Mistakes, Section
from gateways.config.settings import MountSettings, PoolSettings, ServerSettings
from gateways.config.targets import (
    CALLABLE_FILE,
    CALLABLE_MODULE,
    EXECUTABLE,
    FOLDER,
    SCRIPT,
    Target,
    TargetError,
    choose_model,
    choose_name,
    read_target,
)

NOTHING = Target(SCRIPT, "")
"""Stands for a target that was refused; no settings with it are ever handed out."""

_NOT_MORE = (
    ("min_spare_servers", "MinSpareServers", "max_spare_servers", "MaxSpareServers"),
    ("start_servers", "StartServers", "max_servers", "MaxServers"),
    ("min_spare_servers", "MinSpareServers", "max_servers", "MaxServers"),
)
"""Rows (lower setting, its name, upper setting, its name): the first may not be more than the second."""


def build_server(
    file: str, section: Section, pools: Sequence[tuple[PoolSettings, Section]], mistakes: Mistakes
) -> ServerSettings:
    """Return the server's settings; note addresses that two pools claim, and folders that are not there."""
    owners: dict[str, str] = {}
    for pool, place in pools:
        for address in () if "listen" in place.bad else [item.address for item in pool.listen]:
            owner = owners.setdefault(address, pool.name)
            if owner != pool.name and not address.endswith(":0"):
                mistakes.add(
                    f'pools "{owner}" and "{pool.name}" both listen on {address}: give each its own Listen',
                    place.line_of("listen"),
                )
    check_folder(section, "error_log", "ErrorLog", mistakes)
    check_folder(section, "slow_log", "SlowLog", mistakes)
    return ServerSettings(file=file, pools=tuple(pool for pool, _ in pools), **section.values)


def check_folder(section: Section, attribute: str, name: str, mistakes: Mistakes) -> None:
    """Note a log whose folder is not there."""
    folder = os.path.dirname(section.values[attribute])
    if folder and not os.path.isdir(folder):
        mistakes.add(
            f"{section.label(attribute, name)} is in a folder that does not exist: {folder}", section.line_of(attribute)
        )


def build_pool(name: str, section: Section, mounts: Sequence[MountSettings], mistakes: Mistakes) -> PoolSettings:
    """Return a pool's settings; note numbers that contradict each other."""
    values = {key: value for key, value in section.values.items() if key in PoolSettings.__dataclass_fields__}
    values.update(fit_defaults(values, section.given))
    for lower, lower_name, upper, upper_name in _NOT_MORE:
        if values[lower] > values[upper] and not section.bad & {lower, upper}:
            later = max((lower, upper), key=section.line_of)
            mistakes.add(
                f"{section.label(lower, lower_name)} ({values[lower]}) is more than "
                f"{section.label(upper, upper_name)} ({values[upper]}): lower the one or raise the other",
                section.line_of(later),
            )
    values["listen"] = settle_listen(values["listen"], values["wire"])
    if twice := find_twice([item.address for item in values["listen"]]):
        mistakes.add(
            f"{section.label('listen', 'Listen')} names {twice} twice: one address speaks one wire",
            section.line_of("listen"),
        )
    check_listen(values, section, mistakes)
    check_folder(section, "access_log", "AccessLog", mistakes)
    for folder in values["python_path"]:
        if not os.path.isdir(folder):
            mistakes.add(
                f"{section.label('python_path', 'PythonPath')} names a folder that does not exist: {folder}",
                section.line_of("python_path"),
            )
    return PoolSettings(name=name, mounts=tuple(mounts), **values)


def settle_listen(listen: Sequence[ListenAddress], wire: str) -> tuple[ListenAddress, ...]:
    """Return the addresses of a pool, each with its wire; ``wire`` for those that name none."""
    return tuple(ListenAddress(item.address, item.wire or wire) for item in listen)


def check_listen(values: dict[str, Any], section: Section, mistakes: Mistakes) -> None:
    """Read the secret into ``values``; note who could reach an address who must not, or cannot and should."""
    try:
        values["secret"] = read_secret(values["secret"])
    except ValueError as error:
        section.bad.add("secret")
        mistakes.add(f"{section.label('secret', 'Secret')} {error}", section.line_of("secret"))
    listen = () if section.bad & {"listen", "wire", "allow_wildcard", "allowed_peers", "secret"} else values["listen"]
    for setting, sentence in check_places(listen, values):
        mistakes.add(sentence, section.line_of(setting))
    if listen and values["secret"] and all(place.wire != "ajp" for place in listen):
        mistakes.add(
            f"{section.label('secret', 'Secret')} protects ajp only, and no address of the pool speaks it",
            section.line_of("secret"),
        )


def check_places(listen: Sequence[ListenAddress], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with who can reach the addresses of a pool: (the setting to look at, the sentence)."""
    for place in listen:
        if sentence := find_exposure(place, values["allow_wildcard"], bool(values["secret"])):
            yield "listen", sentence
        if sentence := find_unreachable(place, values["allowed_peers"]):
            yield "allowed_peers", sentence


def find_twice(addresses: Sequence[str]) -> str:
    """Return an address that stands twice, ``""`` if there is none; each port 0 is another port."""
    seen = set()
    for address in addresses:
        if address in seen and not address.endswith(":0"):
            return address
        seen.add(address)
    return ""


def fit_defaults(values: dict[str, Any], given: dict[str, Any]) -> dict[str, int]:
    """Return the numbers of workers, those that were not given fitted to those that were. Pure."""
    start, least = values["start_servers"], values["min_spare_servers"]
    spare, most = values["max_spare_servers"], values["max_servers"]
    if "max_servers" not in given:
        most = max(most, start, least)
    if "start_servers" not in given:
        start = min(start, most)
    if "min_spare_servers" not in given:
        least = min(least, most, spare) if "max_spare_servers" in given else min(least, most)
    if "max_spare_servers" not in given:
        spare = max(spare, least)
    return {"start_servers": start, "min_spare_servers": least, "max_spare_servers": spare, "max_servers": most}


def build_mount(section: Section, folder: str, mistakes: Mistakes) -> MountSettings:
    """Return a mount's settings; note a target that is not there or does not fit its model."""
    values = dict(section.values)
    text, model = values["target"], values["model"]
    values["target"] = NOTHING
    if text is REQUIRED:
        if "target" not in section.bad:
            mistakes.add("a mount needs a Target: the file or module of the application", section.line)
    elif "model" not in section.bad:
        try:
            values["target"], values["model"] = settle_target(text, model, folder)
        except TargetError as error:
            mistakes.add(f"{section.label('target', 'Target')}: {error}", section.line_of("target"))
    values["path"] = values["path"].rstrip("/") + "/"
    return MountSettings(**values)


def settle_target(text: str, model: str, folder: str) -> tuple[Target, str]:
    """Return (target, model) for a target as written and a model, ``""`` for the target's own.

    Raise ``TargetError`` when the target is not there or the model cannot run it.
    """
    return fit_model(read_target(text, folder), model)


def fit_model(target: Target, model: str) -> tuple[Target, str]:
    """Return (target, model) for a target and a model, ``""`` for the target's own. Raise ``TargetError``."""
    if not model:
        return choose_model(target)
    if model not in SCRIPT_MODELS:
        return choose_name(target, model), model
    if target.kind in (CALLABLE_FILE, CALLABLE_MODULE):
        raise TargetError(
            f"model {model} runs a file from its top, so the name {target.name} means nothing: "
            f"leave out :{target.name}, or use model wsgi or handler"
        )
    if target.kind == EXECUTABLE and model != "cgi":
        raise TargetError(f"model {model} runs one Python file, and {target.path} is none: use model cgi")
    if model == "cgi" and target.kind != FOLDER and not os.access(target.path, os.X_OK):
        raise TargetError(f"model cgi starts {target.path} as a program, and it is not executable: chmod +x it")
    return target, model


def check_paths(sections: Sequence[Section], mounts: Sequence[MountSettings], mistakes: Mistakes) -> None:
    """Note mounts of one pool that claim the same path."""
    owners: dict[str, int] = {}
    for section, mount in zip(sections, mounts, strict=True):
        if "path" in section.bad:
            continue
        if mount.path in owners:
            first = owners[mount.path]
            where = f" (the other is on line {first})" if first else ""
            mistakes.add(f'two mounts have the Path "{mount.path}"{where}: give each its own', section.line_of("path"))
        owners.setdefault(mount.path, section.line_of("path"))
