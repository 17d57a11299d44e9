"""The environment a script sees: the request's meta-variables, a short list of the server's own, the mount's.

The same in every execution model, so that ``cgi``, ``zygote``, ``perlrun`` and ``registry`` differ in nothing a script
can print. Values are native strings (each character one byte) until the last moment, so no locale plays a part (C15).
"""

from __future__ import annotations

import os
import sys

from gateways.execution.sources import format_native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.mounts import Mount
    from gateways.core.request import Endpoint, Request
    from gateways.execution.sources import Script

    Template = tuple[dict[str, str], frozenset[str]]

PASSED = ("PATH", "TZ", "LANG", "LANGUAGE", "LC_*", "LD_LIBRARY_PATH")
"""The server's own variables that reach a script by default (C02); a ``*`` at the end stands for any ending."""

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

_LOADER_NAMES = (
    "BASH_ENV BASHOPTS ENV GCONV_PATH GETCONF_DIR IFS LD_AUDIT LD_DEBUG LD_LIBRARY_PATH LD_PRELOAD LD_PROFILE "
    "LOCPATH NLSPATH NODE_OPTIONS NODE_PATH PATH PERL5DB PERL5LIB PERL5OPT PERLLIB PYTHONBREAKPOINT PYTHONHASHSEED "
    "PYTHONHOME PYTHONINSPECT PYTHONIOENCODING PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE RUBYLIB RUBYOPT SHELLOPTS"
)
_LOADER = frozenset(_LOADER_NAMES.split())
"""Names that choose which code a program loads: a front may send any variable, but not these (F02)."""


def list_inherited(environment: dict[str, str], passed: tuple[str, ...]) -> dict[str, str]:
    """Return those of ``environment`` that ``passed`` lists, and PATH with the running interpreter's folder first.

    So ``#!/usr/bin/env python3`` finds the interpreter that runs the gateway.
    """
    chosen = {}
    for name, value in environment.items():
        for pattern in passed:
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
                chosen[name] = value
                break
    folder = os.path.dirname(sys.executable)
    path = chosen.get("PATH", DEFAULT_PATH)
    chosen["PATH"] = f"{folder}:{path}" if folder and path.split(":")[0] != folder else path
    return chosen


class EnvironmentPlan:
    """Formats the environment of one run. ``passed``: names as in ``PASSED``. ``pass_authorization``: whether a script
    gets the client's credentials; a server that checks them itself keeps them (RFC 3875 4.1.18)."""

    __slots__ = ("_inherited", "_pass_authorization", "_templates")

    def __init__(self, passed: tuple[str, ...] = PASSED, pass_authorization: bool = False) -> None:
        inherited = list_inherited(dict(os.environ), passed)
        self._inherited = {format_native(name): format_native(value) for name, value in inherited.items()}
        self._pass_authorization = pass_authorization
        self._templates: dict[tuple[type[Request], Endpoint, Mount | None], Template] = {}

    def encode_environment(self, request: Request, script: Script, length: int) -> dict[bytes, bytes]:
        """Return a new environment as the bytes that a process gets. ``length``: bytes of a body that
        was spooled; 0: as the request says."""
        variables = self.format_environment(request, script, length)
        return {name.encode("latin-1"): value.encode("latin-1") for name, value in variables.items()}

    def format_environment(self, request: Request, script: Script, length: int) -> dict[str, str]:
        """Return a new environment of native strings, which the caller owns."""
        key = (request.__class__, request.endpoint, request.mount)
        known = self._templates.get(key)
        if known is None:
            known = self._templates[key] = self._make_template(request)
        template, refused = known
        variables = request.build_metavariables(template)
        if refused and not refused.isdisjoint(variables):
            for name in refused.intersection(variables):
                del variables[name]
        variables["SCRIPT_FILENAME"] = script.native_path
        if script.split_here:
            variables["SCRIPT_NAME"] = script.script_name
            variables["PATH_INFO"] = script.path_info
        length = length or request.content_length or 0
        if length:
            variables["CONTENT_LENGTH"] = str(length)
        if "HTTP_AUTHORIZATION" in variables and not self._pass_authorization:
            del variables["HTTP_AUTHORIZATION"]
        if "HTTP_PROXY" in variables:
            del variables["HTTP_PROXY"]
        return variables

    def _make_template(self, request: Request) -> Template:
        """Return (what each environment of such requests begins with, names that must not come from the request).

        Fields become HTTP_ variables and a few others; only a front that sends variables can name any.
        """
        template = {**self._inherited, **request.make_template()}
        refused = _LOADER.difference(template) if not hasattr(request, "field_list") else frozenset()
        return template, refused
