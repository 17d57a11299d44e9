"""The ``zygote`` model: for each request a fork of a process that is warm already, without exec.

CGI's isolation without CGI's start: what the script imports is imported already, its code is compiled already. This
module is the worker's side; ``zygote_process`` is the process that forks, ``zygote_child`` what it forks.
"""

from __future__ import annotations

import marshal
import os
import sys

from gateways.core.errors import LoadError, ScriptError
from gateways.execution.cgi import TIME_LIMIT, CGIModel
from gateways.execution.child import describe_status, spawn_with_pipes
from gateways.execution.environment import PASSED, EnvironmentPlan
from gateways.execution.pump import run_child
from gateways.execution.recipes import MAX_PROGRAMS, format_stamp, is_foreign, read_source
from gateways.execution.reply import Reply
from gateways.execution.scriptlog import ScriptLog
from gateways.execution.spool import RequestBody
from gateways.execution.zygote_control import Zygote, share_zygote
from gateways.execution.zygote_line import LineLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import Exchange
    from gateways.execution.sources import Script, ScriptFolder, SingleScript


class ZygoteModel:
    """An ``ExecutionModel`` that forks for each request. ``source``: where scripts are found.

    ``time_limit``: seconds, 0 for none. ``passed``, ``pass_authorization``: see ``environment``. ``preloaded``: the
    worker shares imported modules with others, and its zygote is to share them, too.
    """

    def __init__(
        self,
        source: SingleScript | ScriptFolder,
        time_limit: float = TIME_LIMIT,
        passed: tuple[str, ...] = PASSED,
        pass_authorization: bool = False,
        name: str = "zygote",
        preloaded: bool = False,
    ) -> None:
        self.name = name
        self._source = source
        self._time_limit = time_limit
        self._foreign = CGIModel(source, time_limit, 0, passed, pass_authorization, name)
        self._preloaded = preloaded
        self._plan = (passed, pass_authorization)
        self._environment: EnvironmentPlan
        self._zygote: Zygote
        self._known: dict[str, tuple[tuple[int, int, int], bool]] = {}

    def load(self) -> None:
        """Have the zygote, which all mounts of this process share, import and compile what children will need.

        Raise ``LoadError``.
        """
        from gateways.execution.warm import list_foreign_imports

        self._foreign.load()
        self._environment = EnvironmentPlan(*self._plan)
        scripts = self._source.list_scripts()
        imports = [name for path in scripts for name in list_foreign_imports(path)]
        self._zygote = share_zygote(self._preloaded)
        try:
            self._zygote.prepare(list(dict.fromkeys(imports)), scripts)
        except (LineLost, OSError) as error:
            self._zygote.close()
            raise LoadError(f"the zygote did not start ({sys.executable}): {error or 'it ended'}") from error

    def close(self) -> None:
        """Release the zygote."""
        self._zygote.close()
        self._foreign.close()

    def run(self, exchange: Exchange) -> None:
        """Run one script in a child. Raise ``ScriptError`` when there is no complete reply."""
        script = self._source.find(exchange.request)
        with RequestBody(exchange) as body:
            if self._is_python(script.path):
                self._run_script(exchange, script, body)
            else:
                exchange.log.info("%s: no Python program, run by fork and exec", script.path)
                self._foreign.run_program(exchange, script, body)

    def _is_python(self, path: str) -> bool:
        """True for a script that a child can run; the file is read when it is new or has changed."""
        try:
            stamp = format_stamp(os.stat(path))
        except OSError:
            return True  # whoever reads it says what is wrong
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            if len(self._known) >= MAX_PROGRAMS:
                self._known.clear()
            source, stamp = read_source(path)
            known = self._known[path] = (stamp, not is_foreign(path, source))
        return known[1]

    def _run_script(self, exchange: Exchange, script: Script, body: RequestBody) -> None:
        """Have a child forked, and answer the exchange with what it prints. Raise ``ScriptError``."""
        variables = self._environment.encode_environment(exchange.request, script, body.length)
        order = (script.path, marshal.dumps(variables))
        zygote = self._zygote
        log = ScriptLog(exchange.log, script.path)

        def judge(status: int | None) -> str:
            if zygote.refusal:
                message, code, traceback = zygote.refusal
                log.write(traceback)
                raise ScriptError(message, code)
            if zygote.lost:
                return "its zygote was lost before its end was known"
            said, by_signal = describe_status(status)
            if zygote.raised:
                return "ended by an exception"
            if said and not by_signal:
                log.note(said)
            return said if by_signal else ""

        child = spawn_with_pipes(
            body.length > 0,
            lambda pipes: zygote.fork(order, (pipes.child_in, pipes.child_out, pipes.stderr_in)),
            zygote,
        )
        run_child(exchange, child, Reply(exchange, script.path), log, body, self._time_limit, judge)
