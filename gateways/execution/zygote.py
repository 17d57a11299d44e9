"""The ``zygote`` model: for each request a fork of a process that is warm already, without exec.

CGI's isolation without CGI's start: what the script imports is imported already, its code is compiled already. This
module is the worker's side; ``zygote_process`` is the process that forks, ``zygote_child`` what it forks.
"""

from __future__ import annotations

import sys

from gateways.core.errors import LoadError, ScriptError
from gateways.execution.cgi import TIME_LIMIT, CGIModel
from gateways.execution.child import Pipes, describe_status, spawn_with_pipes
from gateways.execution.environment import PASSED, EnvironmentPlan
from gateways.execution.pump import run_child
from gateways.execution.reply import Reply
from gateways.execution.scriptlog import ScriptLog
from gateways.execution.spool import RequestBody
from gateways.execution.zygote_line import NOT_COMPILED, NOT_PYTHON, LineLost, Refusal, Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Exchange
    from gateways.execution.sources import Script, ScriptFolder, SingleScript


class ZygoteModel:
    """An ``ExecutionModel`` that forks for each request. ``source``: where scripts are found.

    ``time_limit``: seconds, 0 for none. ``passed``, ``pass_authorization``: see ``environment``.
    """

    def __init__(
        self,
        source: SingleScript | ScriptFolder,
        time_limit: float = TIME_LIMIT,
        passed: tuple[str, ...] = PASSED,
        pass_authorization: bool = False,
        name: str = "zygote",
    ) -> None:
        self.name = name
        self._source = source
        self._time_limit = time_limit
        self._foreign = CGIModel(source, time_limit, 0, passed, pass_authorization, name)
        self._plan = (passed, pass_authorization)
        self._environment: EnvironmentPlan
        self._zygote: Zygote

    def load(self) -> None:
        """Start the zygote, which imports and compiles what children will need. Raise ``LoadError``."""
        from gateways.execution.warm import list_foreign_imports

        self._foreign.load()
        self._environment = EnvironmentPlan(*self._plan)
        scripts = self._source.list_scripts()
        imports = [name for path in scripts for name in list_foreign_imports(path)]
        self._zygote = Zygote({"path": sys.path, "imports": list(dict.fromkeys(imports)), "scripts": scripts})
        try:
            self._zygote.start()
        except (LineLost, OSError) as error:
            self._zygote.close()
            raise LoadError(f"the zygote cannot be started by {sys.executable!r}: {error}") from error

    def close(self) -> None:
        """End the zygote."""
        self._zygote.close()
        self._foreign.close()

    def run(self, exchange: Exchange) -> None:
        """Run one script in a child. Raise ``ScriptError`` when there is no complete reply."""
        script = self._source.find(exchange.request)
        with RequestBody(exchange) as body:
            try:
                self._run_script(exchange, script, body)
            except Refusal as refusal:
                self._run_refused(exchange, script, body, refusal)

    def _run_refused(self, exchange: Exchange, script: Script, body: RequestBody, refusal: Refusal) -> None:
        """Run what is no Python by exec; raise what else is wrong with a script."""
        if refusal.kind == NOT_PYTHON:
            exchange.log.info("%s: no Python program, run by fork and exec", script.path)
            self._foreign.run_program(exchange, script, body)
            return
        if refusal.kind == NOT_COMPILED:
            log = ScriptLog(exchange.log, script.path)
            log.write(refusal.traceback)
            log.finish()
        raise ScriptError(refusal.message, refusal.status)

    def _run_script(self, exchange: Exchange, script: Script, body: RequestBody) -> None:
        """Have a child forked, and answer the exchange with what it prints. Raise ``Refusal`` when there is none."""
        variables = self._environment.encode_environment(exchange.request, script, body.length)
        zygote = self._zygote
        log = ScriptLog(exchange.log, script.path)

        def fork(pipes: Pipes) -> int:
            order = (script.path, script.folder, variables)
            return zygote.fork(order, (pipes.child_in, pipes.child_out, pipes.stderr_in))

        def judge(status: int | None) -> str:
            said, by_signal = describe_status(status)
            if zygote.raised:
                return "ended by an exception"
            if said and not by_signal:
                log.note(said)
            return said if by_signal else ""

        child = spawn_with_pipes(body.length > 0, fork, zygote)
        run_child(exchange, child, Reply(exchange, script.path), log, body, self._time_limit, judge)
