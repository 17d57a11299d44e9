"""The ``zygote`` model: a fork of the warm worker for each request, without exec.

CGI's isolation without CGI's start: what the script imports is imported already, its code is compiled already. Runs a
script, or one exchange of any other execution model. This module is the worker's side; ``zygote_child`` is the child's.
"""

from __future__ import annotations

import os

from gateways.core.errors import ConfigurationError, ScriptError
from gateways.execution.cgi import TIME_LIMIT, CGIModel
from gateways.execution.child import Child, Pipes, describe_status, spawn_with_pipes
from gateways.execution.environment import PASSED, EnvironmentPlan
from gateways.execution.pump import run_child
from gateways.execution.recipes import CompileError, NotPython, Program, compile_when_changed
from gateways.execution.reply import Reply
from gateways.execution.scriptlog import ScriptLog, format_exception
from gateways.execution.spool import RequestBody

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import Exchange, ExecutionModel
    from gateways.execution.sources import Script, ScriptFolder, SingleScript
    from gateways.execution.zygote_child import Template


class ZygoteModel:
    """An ``ExecutionModel`` that forks for each request. Either ``source`` (scripts) or ``model`` (run in the child).

    ``time_limit``: seconds, 0 for none. ``passed``, ``pass_authorization``: see ``environment``; for scripts only.
    """

    def __init__(
        self,
        source: SingleScript | ScriptFolder | None = None,
        model: ExecutionModel | None = None,
        time_limit: float = TIME_LIMIT,
        passed: tuple[str, ...] = PASSED,
        pass_authorization: bool = False,
        name: str = "zygote",
    ) -> None:
        if (source is None) == (model is None):
            raise ConfigurationError("zygote runs either scripts or another execution model")
        self.name = name
        self._source = source
        self._model = model
        self._time_limit = time_limit
        self._passed = passed
        self._pass_authorization = pass_authorization
        self._programs: dict[str, Program] = {}
        self._foreign: CGIModel | None = None
        self._environment: EnvironmentPlan
        self._template: Template

    def load(self) -> None:
        """Import and compile what children will need, and keep the collector from touching it: each page it writes to
        is copied for each child. Raise ``LoadError``."""
        import gc

        from gateways.execution.zygote_child import Template

        self._template = Template()
        if self._model is not None:
            self._model.load()
        if self._source is not None:
            self._load_scripts(self._source)
        gc.collect()
        gc.freeze()

    def _load_scripts(self, source: SingleScript | ScriptFolder) -> None:
        from gateways.execution.warm import list_foreign_imports, load_imports

        self._environment = EnvironmentPlan(self._passed, self._pass_authorization)
        self._foreign = CGIModel(source, self._time_limit, 0, self._passed, self._pass_authorization, self.name)
        self._foreign.load()
        for path in source.list_scripts():
            try:
                compile_when_changed(self._programs, path)
            except ScriptError:
                continue  # the first request says it
            load_imports(list_foreign_imports(path))

    def close(self) -> None:
        """Release what ``load`` holds."""
        if self._model is not None:
            self._model.close()
        self._template.close()

    def run(self, exchange: Exchange) -> None:
        """Run one exchange in a child. Raise ``ScriptError`` when there is no complete reply."""
        with RequestBody(exchange) as body:
            if self._source is not None:
                self._run_script(exchange, self._source.find(exchange.request), body)
            elif self._model is not None:
                self._run_model(exchange, self._model, body)

    def _run_model(self, exchange: Exchange, model: ExecutionModel, body: RequestBody) -> None:
        from gateways.execution.zygote_child import run_model

        self._fork(
            exchange,
            model.name,
            body,
            lambda pipes: run_model(model, exchange.request, pipes, self._template),
        )

    def _run_script(self, exchange: Exchange, script: Script, body: RequestBody) -> None:
        from gateways.execution.zygote_child import run_script

        try:
            program = compile_when_changed(self._programs, script.path)
        except CompileError as error:
            ScriptLog(exchange.log, script.path).write_exception(error.cause)
            raise
        except NotPython:
            if self._foreign is None:
                raise
            exchange.log.info("%s: no Python program, run by fork and exec", script.path)
            self._foreign.run_program(exchange, script, body)
            return
        variables = self._environment.encode_environment(exchange.request, script, body.length)
        self._fork(
            exchange, script.path, body,
            lambda pipes: run_script(program, script, variables, pipes, self._template),
        )  # fmt: skip

    def _fork(self, exchange: Exchange, name: str, body: RequestBody, life: Callable[[Pipes], int]) -> None:
        """Fork a child that lives ``life`` and answer the exchange with what it prints."""
        self._template.fault[0] = 0
        log = ScriptLog(exchange.log, name)
        child: Child = spawn_with_pipes(body.length > 0, lambda pipes: spawn_fork(pipes, life))

        def judge(status: int | None) -> str:
            said, by_signal = describe_status(status)
            if self._template.fault[0]:
                return "ended by an exception"
            if said and not by_signal:
                log.note(said)
            return said if by_signal else ""

        run_child(exchange, child, Reply(exchange, name), log, body, self._time_limit, judge)


def spawn_fork(pipes: Pipes, life: Callable[[Pipes], int]) -> int:
    """Fork; return the child's process id. The child lives its life and ends; it never returns."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        status = life(pipes)
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing may return into the worker's loop
        os.write(2, format_exception(error))
    finally:
        os._exit(status)
