"""Runs Python CGI scripts inside the serving process: the machinery under PerlRun and Registry.

Which of them it runs it does not know: that is the recipe's. Nor does it know wires or processes.
"""

from __future__ import annotations

import os
from _thread import _count as count_threads

from gateways.core.errors import ConfigurationError, ScriptError
from gateways.execution.ending import FAILED, FINE, Ending, run_code, run_exits
from gateways.execution.environment import PASSED, EnvironmentPlan
from gateways.execution.leaks import Leaks, share_leaks
from gateways.execution.recipes import CompileError, Program, Recipe
from gateways.execution.reply import Reply
from gateways.execution.restore import ProcessState, join_threads
from gateways.execution.scriptlog import ScriptLog
from gateways.execution.spool import RequestBody
from gateways.execution.stdio import ScriptStdio, share_stdio
from gateways.execution.watch import NOTES, install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import Exchange, ExecutionModel
    from gateways.execution.sources import Script, ScriptFolder, SingleScript

STDIO = ("object", "descriptor")


class Parts:
    """What every recipe is cooked with: who makes environments, who keeps the process's state, who takes the output.

    Others than these are for measurements of what each of them costs.
    """

    __slots__ = ("environment", "reply", "state")

    def __init__(
        self,
        environment: Callable[[tuple[str, ...], bool], EnvironmentPlan] = EnvironmentPlan,
        state: Callable[[], ProcessState] = ProcessState,
        reply: Callable[[Exchange, str], Reply] = Reply,
    ) -> None:
        self.environment = environment
        self.state = state
        self.reply = reply


PARTS = Parts()


class ScriptModel:
    """An ``ExecutionModel`` that runs scripts in the serving process.

    ``source``: where scripts are found. ``recipe``: a row of ``recipes``. ``stdio``: ``"object"`` (fast) or
    ``"descriptor"`` (child processes of a script can read the body). ``passed``: names of the server's own variables
    that reach scripts. ``pass_authorization``: whether the client's credentials do. ``parts``: see ``Parts``.
    """

    def __init__(
        self,
        name: str,
        source: SingleScript | ScriptFolder,
        recipe: Recipe,
        stdio: str = "object",
        passed: tuple[str, ...] = PASSED,
        pass_authorization: bool = False,
        parts: Parts = PARTS,
    ) -> None:
        if stdio not in STDIO:
            raise ConfigurationError(f"stdio {stdio!r} is unknown: it is one of {', '.join(STDIO)}")
        self.name = name
        self._source = source
        self._recipe = recipe
        self._parts = parts
        self._spools = stdio == "descriptor"
        self._passed = passed
        self._pass_authorization = pass_authorization
        self._programs: dict[str, Program] = {}
        self._environment: EnvironmentPlan
        self._state: ProcessState
        self._stdio: ScriptStdio
        self._leaks: Leaks
        self._apart: ExecutionModel | None = None

    def load(self) -> None:
        """Prepare this process: descriptors 0 and 1 become the scripts', and what scripts do to it is watched.

        Whoever serves on descriptor 0 or 1 has moved it elsewhere before. Raise ``LoadError`` when there is no script.
        """
        self._source.load()
        for path in self._source.list_scripts():
            try:
                self._recipe.program(self._programs, path)
            except ScriptError:
                pass  # the first request says it, and the next one may find the script mended
        install()
        self._environment = self._parts.environment(self._passed, self._pass_authorization)
        self._state = self._parts.state()
        self._stdio = share_stdio()
        self._leaks = share_leaks()

    def close(self) -> None:
        """Forget the compiled scripts and what their globals hold."""
        self._programs.clear()
        if self._apart is not None:
            self._apart.close()

    def run(self, exchange: Exchange) -> None:
        """Run the script that answers ``exchange``. Raise ``ScriptError`` when it does not."""
        if count_threads():
            self._run_apart(exchange)
            return
        script = self._source.find(exchange.request)
        log = ScriptLog(exchange.log, script.path)
        try:
            program = self._recipe.program(self._programs, script.path)
        except CompileError as error:
            log.write_exception(error.cause)
            raise
        length = exchange.request.content_length
        if length is None or (self._spools and length):
            with RequestBody(exchange, needs_file=True) as body:
                self._run_program(exchange, script, program, log, body)
        else:
            self._run_program(exchange, script, program, log, None)

    def _run_apart(self, exchange: Exchange) -> None:
        """Run a script in a process of its own: an earlier one has left a thread in this process.

        It is to be replaced for that, and answers what it has accepted. Raise ``ScriptError`` when the thread is
        another's, as that of an application in the same pool.
        """
        if not NOTES.spoilt:
            raise ScriptError("this process has more than one thread: no script can have it to itself")
        if self._apart is None:
            from gateways.execution.zygote import ZygoteModel

            self._apart = ZygoteModel(self._source, passed=self._passed, pass_authorization=self._pass_authorization)
            self._apart.load()
        self._apart.run(exchange)

    def _run_program(
        self, exchange: Exchange, script: Script, program: Program, log: ScriptLog, body: RequestBody | None
    ) -> None:
        recipe, state, stdio = self._recipe, self._state, self._stdio
        length = 0 if body is None else body.length
        variables = self._environment.format_environment(exchange.request, script, length)
        before = recipe.before() if recipe.before is not None else None
        reply = self._parts.reply(exchange, script.path)
        module = recipe.namespace(program)
        ending = FAILED
        NOTES.log = log
        state.enter(variables, module, script.path, script.folder)
        try:
            stdio.enter(exchange, reply, log, None if body is None else body.file, self._spools)
            ending = run_code(program.code, module.__dict__, log)
            if count_threads() and join_threads():
                log.note("left an executor running: this process will be replaced")
                exchange.recycle()
            if NOTES.exits:
                run_exits(log)
            recipe.discard(module)
            stdio.finish(reply)
            if NOTES.opened and not NOTES.forked:
                self._leaks.end(log, exchange)
        finally:
            if NOTES.forked:  # a child that the script forked has come to its end
                os._exit(ending.status)
            try:
                stdio.leave(fresh_descriptor=NOTES.children)
            finally:
                state.leave()
        if before is not None:
            recipe.modules(before, script.folder)
        if log.pending:
            log.finish()
        if count_threads():
            NOTES.spoilt = True
            log.note("left a thread running: this process will be replaced")
            exchange.recycle()
        if ending is FINE:
            reply.finish()
            return
        try:
            answer(reply, log, ending, script.path)
        except ScriptError as error:
            error.hint = log.hint
            raise


def answer(reply: Reply, log: ScriptLog, ending: Ending, path: str) -> None:
    """Send what is left of a run's reply. Raise ``ScriptError`` when there is none, or only half of one."""
    if ending.raised:
        reply.raise_failure()
        raise ScriptError(f"{path}: ended by an exception")
    if ending.status:
        log.note(f"ended with exit status {ending.status}")
    reply.finish()
