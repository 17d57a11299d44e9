"""One supervisor takes over from another (USR2): the same command again, with the listeners it is to go on with.

The old one stays until the new one has its workers, and stays for good when the new one fails. Listeners are passed as
open descriptors, named in the environment; both accept in between, so that no connection is refused or dropped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, MutableMapping, Sequence
from typing import TYPE_CHECKING

from gateways.process.children import Death, format_status
from gateways.process.listeners import Address, Listener, adopt_listener, close_listeners, own_listeners
from gateways.process.signals import ALL_SIGNALS

if TYPE_CHECKING:
    from gateways.core.interfaces import Log

VARIABLE = "GATEWAYS_SUCCESSION"


class Succession:
    """Who was before this supervisor, and who comes after it. Pids, 0 for nobody.

    ``left``: what the predecessor has passed on and nobody listens on any more.
    """

    def __init__(self, command: Sequence[str] = (), predecessor: int = 0, left: Iterable[Listener] = ()) -> None:
        self._command = tuple(command) or (sys.executable, *sys.orig_argv[1:])
        self._folder = os.getcwd()
        self._left = tuple(left)
        self.predecessor = predecessor
        self.successor = 0

    def spawn(self, listeners: Iterable[object], log: Log) -> bool:
        """Start the successor on ``listeners``; return whether there is one now that was not there before."""
        reason = self._find_obstacle(listeners := list(listeners))
        if reason:
            log.warning("no successor is started: %s", reason)
            return False
        given = [listener for listener in listeners if isinstance(listener, Listener)]
        variables = {**os.environ, VARIABLE: format_inheritance(os.getpid(), given)}
        # The service manager waits for signs of life of whoever is the main process, and we are not for long.
        variables.pop("WATCHDOG_PID", None)
        # A descriptor that is copied onto itself is kept open over the exec.
        keep = [(os.POSIX_SPAWN_DUP2, listener.fileno(), listener.fileno()) for listener in given]
        try:
            os.chdir(self._folder)
            self.successor = os.posix_spawn(
                self._command[0],
                self._command,
                variables,
                file_actions=keep,
                setsigmask=(),
                setsigdef=ALL_SIGNALS - {signal.SIGKILL, signal.SIGSTOP},
            )
        except OSError as error:
            log.error("no successor can be started: %s", error.strerror)
            return False
        log.info("supervisor %d: successor %d is started", os.getpid(), self.successor)
        return True

    def _find_obstacle(self, listeners: list[object]) -> str:
        if self.successor:
            return f"process {self.successor} is on its way"
        if self.predecessor and os.getppid() == self.predecessor:
            return f"the predecessor, process {self.predecessor}, has not gone yet"
        if not all(isinstance(listener, Listener) for listener in listeners):
            return "a socket was given to this process by another program"
        return ""

    def bury(self, death: Death, log: Log) -> bool:
        """Take note of a death; return whether it was the successor's."""
        if death.pid != self.successor:
            return False
        self.successor = 0
        log.error("successor %d %s, this supervisor stays", death.pid, format_status(death.status))
        return True

    def take_over(self) -> None:
        """Tell the predecessor to retire: the workers of this one are ready."""
        # Asked of the kernel: a predecessor that has died is not our parent any more, whoever has its number now.
        if self.predecessor and os.getppid() == self.predecessor:
            os.kill(self.predecessor, signal.SIGQUIT)
        # Not earlier: until here the predecessor might have had to go on. It leaves its files to us.
        own_listeners(self._left)
        close_listeners(self._left)
        self._left = ()


def format_inheritance(pid: int, listeners: Iterable[Listener]) -> str:
    """Return what a successor needs to know: whose it is, and each descriptor with its address."""
    rows = [[each.fileno(), each.claim, *each.address.parts, *(each.identity or (0, 0))] for each in listeners]
    return json.dumps([pid, rows])


def take_inheritance(variables: MutableMapping[str, str]) -> tuple[int, list[Listener]]:
    """Return (predecessor's pid, listeners) that this process was started with, and take them out of ``variables``.

    (0, []) when there is nothing, or when it was meant for another process.
    """
    text = variables.pop(VARIABLE, "")
    try:
        pid, rows = json.loads(text or "[0, []]")
        if pid != os.getppid():
            return 0, []
        return pid, [
            adopt_listener(fd, Address(host, port, path), claim, (device, inode))
            for fd, claim, host, port, path, device, inode in rows
        ]
    except (ValueError, TypeError, OSError):
        return 0, []
