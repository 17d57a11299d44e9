"""Asking a running supervisor to reload, from another process, and learning how it has gone (P10)."""

from __future__ import annotations

import os
import select
import signal
from time import monotonic

from gateways.core.errors import GatewayError
from gateways.process.pidfile import find_running, read_report

GLANCE = 0.05
"""Seconds between two looks at the report."""


def ask_reload(path: str, patience: float) -> None:
    """Make the supervisor with the pid file at ``path`` reload; return when the new workers serve.

    Raise ``GatewayError`` when none runs, when it keeps its old workers (its log says why), and when it has said
    nothing after ``patience`` seconds.
    """
    try:
        pid = find_running(path)
    except OSError as error:
        raise GatewayError(f"{path} cannot be read: {error.strerror}") from error
    if not pid:
        raise GatewayError(f"no supervisor runs with the pid file {path}")
    before = read_report(path)
    try:
        os.kill(pid, signal.SIGHUP)
    except OSError as error:
        raise GatewayError(f"process {pid} cannot be told to reload: {error.strerror}") from error
    deadline = monotonic() + patience
    while (report := read_report(path)) == before or not report:
        if monotonic() > deadline:
            raise GatewayError(f"process {pid} has not reloaded after {patience:g} s; its error log may say why")
        select.select([], [], [], GLANCE)
    if report.split()[-1:] != ["done"]:
        raise GatewayError(f"process {pid} keeps its old workers; its error log says why")
