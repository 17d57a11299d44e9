"""The ``cgi`` model: fork and exec of a program in any language, one process for each request (RFC 3875).

Knows how a program is started; the bytes are ``pump``'s, the document ``core.document``'s. Nothing of the worker is
inherited but its user, its limits and the variables of ``environment.PASSED``.
"""

from __future__ import annotations

import os
import signal

from gateways.core.errors import ScriptError
from gateways.execution.child import Pipes, describe_status, spawn_with_pipes
from gateways.execution.environment import PASSED, EnvironmentPlan
from gateways.execution.permits import Permits
from gateways.execution.pump import run_child
from gateways.execution.reply import Reply
from gateways.execution.scriptlog import ScriptLog
from gateways.execution.spool import RequestBody

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Exchange
    from gateways.execution.sources import Script, ScriptFolder, SingleScript

TIME_LIMIT = 60.0
INHERITED_SIGNALS = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM,
    signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH,
)  # fmt: skip
"""Signals that a program would find ignored if the worker ignores them."""


class CGIModel:
    """An ``ExecutionModel`` that runs programs. ``time_limit``: seconds, 0 for none. ``max_children``: how many may run
    at once in all workers together, 0 for no limit (C16). ``passed``, ``pass_authorization``: see ``environment``."""

    def __init__(
        self,
        source: SingleScript | ScriptFolder,
        time_limit: float = TIME_LIMIT,
        max_children: int = 0,
        passed: tuple[str, ...] = PASSED,
        pass_authorization: bool = False,
        name: str = "cgi",
    ) -> None:
        self.name = name
        self._source = source
        self._time_limit = time_limit
        self._permits = Permits(max_children)
        self._passed = passed
        self._pass_authorization = pass_authorization
        self._environment: EnvironmentPlan

    def load(self) -> None:
        """Look that there is something to run. Raise ``LoadError`` when there is not."""
        import subprocess  # noqa: F401 - its import belongs to the start of the worker, not to its first request

        self._source.load()
        self._environment = EnvironmentPlan(self._passed, self._pass_authorization)

    def close(self) -> None:
        """Release the permits' file."""
        self._permits.close()

    def run(self, exchange: Exchange) -> None:
        """Run the program that answers ``exchange``. Raise ``ScriptError`` when it does not; 503 when too many run."""
        script = self._source.find(exchange.request)
        with self._permits.hold(), RequestBody(exchange) as body:
            self.run_program(exchange, script, body)

    def run_program(self, exchange: Exchange, script: Script, body: RequestBody) -> None:
        """Run one program. Raise ``ScriptError``: 404 absent, 403 not executable, 504 too slow, 500 for no document."""
        check_executable(script.path)
        environment = self._environment.encode_environment(exchange.request, script, body.length)
        log = ScriptLog(exchange.log, script.path)
        child = spawn_with_pipes(body.length > 0, lambda pipes: spawn_program(script, environment, pipes))

        def judge(status: int | None) -> str:
            said, by_signal = describe_status(status)
            if said and not by_signal:
                log.note(said)
            return said if by_signal else ""

        run_child(exchange, child, Reply(exchange, script.path), log, body, self._time_limit, judge)


def check_executable(path: str) -> None:
    """Raise ``ScriptError`` unless ``path`` is there (404) and may be executed (403)."""
    if not os.path.exists(path):
        raise ScriptError(f"the script {path} is not there", 404)
    if not os.access(path, os.X_OK) or not os.path.isfile(path):
        raise ScriptError(f"the script {path} is not executable", 403)


def spawn_program(script: Script, environment: dict[bytes, bytes], pipes: Pipes) -> int:
    """Start a program on the child ends of ``pipes`` and return its process id, which is its group's and session's too.

    It is given its own path as its only argument: the words of a query are no arguments (C01). Descriptors above 2 are
    closed, the signal mask is empty and no signal is ignored. Raise ``ScriptError``.
    """
    import subprocess

    ignored = [number for number in INHERITED_SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    mask = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            [script.path], stdin=pipes.child_in, stdout=pipes.child_out, stderr=pipes.stderr_in, env=environment,
            cwd=script.folder, close_fds=True, start_new_session=True,
        )  # fmt: skip
    except ValueError as error:
        raise ScriptError(f"{script.path}: a variable has a NUL", 400) from error
    except PermissionError as error:
        raise ScriptError(f"the script {script.path} may not be executed: {error}", 403) from error
    except OSError as error:
        raise ScriptError(f"the script {script.path} cannot be started (has it a #! line?): {error}") from error
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    process.returncode = 0  # the process is collected by its Child, not by Popen
    return process.pid
