"""The kinds of state that a request can leave behind: when it is a fault, how it is told, and what to change.

A table for readers and for ``judge`` and ``locate``; holds no logic.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rule(Enum):
    """When a change of state is a fault.

    ``EACH``: whenever it is there after a request. ``STILL``: when it goes on in the last round, so that it is no cache
    that has been filled and no object that was made when first needed.
    """

    EACH = "each"
    STILL = "still"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. ``happened``: what is wrong, with ``{name}``. ``change``: what to do. ``calls`` and ``stores``: what
    makes such a change in source, as patterns of dotted names (``fnmatch``). ``recycles``: a worker that is replaced
    after some requests is remedy enough."""

    name: str
    rule: Rule
    happened: str
    change: str
    calls: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    recycles: bool = False


_OWN = "keep it in an object of the request, or set it at the start of each"
_EACH, _STILL = Rule.EACH, Rule.STILL

_ROWS = (
    # The application's own objects; where they are set is found by their name.
    Kind("leftover", _EACH, "the global {name} still holds what an earlier request left in it",
         "set {name} at the top of the script, before anything is decided, so that no run begins with another's value"),
    Kind("global", _STILL, "the global {name} is changed by requests and keeps the change", _OWN),
    Kind("attribute", _STILL, "{name}, of an object that outlives the request, is changed by requests",
         "make the object anew for each request"),
    Kind("class attribute", _STILL, "the class attribute {name} is changed by requests, for every object of the class",
         "set it in __init__, so that each object has its own"),
    Kind("closure", _STILL, "a variable that a function closes over is changed by requests: {name}", _OWN),
    Kind("default argument", _STILL, "a default argument is changed by requests, and is there once only: {name}",
         "make the default None, and the object within the function"),
    Kind("function attribute", _STILL, "the function attribute {name} is changed by requests", _OWN),
    # What is the process's.
    Kind("environment", _EACH, "the environment variable {name} is set or removed, for all later requests",
         "pass env= to the child process that needs it, or keep the value in a variable",
         ("os.putenv", "os.unsetenv", "os.environ.*", "os.environb.*"), ("os.environ[]", "os.environb[]")),
    Kind("working directory", _EACH, "the working directory is another afterwards",
         "use absolute paths, or cwd= of subprocess; or change back in a finally (contextlib.chdir, Python 3.11)",
         ("os.chdir", "os.fchdir", "contextlib.chdir")),
    Kind("umask", _EACH, "the umask is another afterwards: later files have other permissions",
         "pass the mode to os.open, or put the old umask back in a finally", ("os.umask",)),
    Kind("arguments", _EACH, "sys.argv is another afterwards", "pass a list of your own to the parser of arguments",
         ("sys.argv.*",), ("sys.argv", "sys.argv[]")),
    Kind("module path", _EACH, "sys.path is another afterwards, and longer with each request if it was added to",
         "add to it once, when the module is loaded, or set PythonPath",
         ("sys.path.*", "site.addsitedir"), ("sys.path", "sys.path[]")),
    Kind("loaded modules", _STILL, "the module {name} is replaced, removed or added in each request",
         "import once, at the top; importlib.reload and sys.modules are for debuggers",
         ("sys.modules.*", "importlib.reload", "importlib.util.module_from_spec"), ("sys.modules[]",), recycles=True),
    Kind("signal handler", _EACH, "the handler of {name} is another afterwards",
         "put the old handler back in a finally; better, use a time-out that needs no signal",
         ("signal.signal", "signal.siginterrupt", "signal.set_wakeup_fd", "asyncio.*.add_signal_handler")),
    Kind("signal mask", _EACH, "other signals are blocked afterwards", "put the old mask back in a finally",
         ("signal.pthread_sigmask",)),
    Kind("timer", _EACH, "{name} still runs when the request is over, and strikes another one",
         "stop it in a finally: signal.alarm(0) or signal.setitimer(which, 0)", ("signal.alarm", "signal.setitimer")),
    Kind("exit function", _STILL, "each request registers a function for the end of the process: nothing runs it soon",
         "do the work in a finally, or in the response's close()", ("atexit.register", "weakref.finalize"),
         recycles=True),
    Kind("thread", _STILL, "a thread that a request started is still running afterwards",
         "join it before the request ends, or start one for the process when the module is loaded",
         ("threading.Thread", "threading.Timer", "_thread.start_new_thread", "concurrent.futures.*Executor",
          "multiprocessing.pool.ThreadPool")),
    Kind("child process", _STILL, "a child process that a request started is not waited for",
         "wait for it (subprocess.run), or hand the work to a service of its own",
         ("subprocess.Popen", "os.fork", "os.spawn*", "os.posix_spawn*", "multiprocessing.Process", "os.popen")),
    Kind("descriptor", _STILL, "a descriptor that a request opened is still open afterwards: {name}",
         "open it in a with statement",
         ("open", "os.open", "os.pipe", "os.dup*", "os.memfd_create", "os.fdopen", "io.open", "socket.socket",
          "socket.socketpair", "socket.create_connection", "tempfile.*", "sqlite3.connect", "subprocess.Popen",
          "select.epoll", "*.open"), recycles=True),
    Kind("closed descriptor", _EACH, "a descriptor is closed that no request has opened",
         "close what you have opened, by its own object: the server's sockets are descriptors, too",
         ("os.closerange", "os.close", "os.dup2")),
    Kind("temporary file", _STILL, "a temporary file that a request made is still there, and a new process removes it",
         "use it in a with statement, so that it goes with the request and not with the process", ("tempfile.*",),
         recycles=True),
    Kind("locale", _EACH, "the locale is another afterwards: numbers and dates of later requests follow it",
         "format with a library that takes the locale as an argument (Babel)", ("locale.setlocale",)),
    Kind("time zone", _EACH, "the C library's time zone is another afterwards",
         "use zoneinfo.ZoneInfo with datetime, which changes nothing", ("time.tzset",)),
    Kind("warnings", _EACH, "{name} is another afterwards", "use warnings.catch_warnings() as a with statement",
         ("warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings", "warnings.filters.*"),
         ("warnings.showwarning", "warnings.filters")),
    Kind("logging", _STILL, "each request configures logging ({name}): records are written once more each time",
         "configure logging once, when the module is loaded",
         ("*.addHandler", "*.removeHandler", "*.addFilter", "logging.basicConfig", "logging.disable",
          "logging.config.*", "logging.setLoggerClass", "*.setLevel"), ("logging.raiseExceptions",)),
    Kind("interpreter setting", _EACH, "{name} is another afterwards", "set it once, when the module is loaded",
         ("sys.setrecursionlimit", "sys.setswitchinterval", "sys.set_int_max_str_digits", "tracemalloc.*"),
         ("sys.dont_write_bytecode", "sys.tracebacklimit")),
    Kind("decimal context", _EACH, "the decimal context is another afterwards: later sums are rounded by it",
         "use decimal.localcontext() as a with statement", ("decimal.setcontext",), ("decimal.getcontext().*",)),
    Kind("library setting", _EACH, "{name} is another afterwards", "pass it as an argument where it is needed",
         ("socket.setdefaulttimeout", "csv.field_size_limit", "csv.register_dialect", "csv.unregister_dialect",
          "gettext.textdomain", "gettext.install")),
    Kind("random numbers", _EACH, "random is seeded by requests: what later ones draw can be foretold",
         "use an object of your own, random.Random(seed), and secrets for what nobody may guess",
         ("random.seed", "random.setstate")),
    Kind("garbage collector", _EACH, "{name} is another afterwards", "put it back in a finally, or leave it alone",
         ("gc.disable", "gc.enable", "gc.set_threshold", "gc.set_debug", "gc.freeze", "gc.callbacks.*")),
    Kind("standard stream", _EACH, "{name} is another object, or closed, afterwards",
         "use contextlib.redirect_stdout as a with statement, or print(file=...)",
         ("sys.stdout.close", "sys.stderr.close", "sys.stdin.close"),
         ("sys.stdin", "sys.stdout", "sys.stderr", "sys.__std*__")),
    Kind("hook", _EACH, "{name} is another function afterwards", "set it once, when the module is loaded",
         ("sys.settrace", "sys.setprofile", "cgitb.enable", "faulthandler.*"),
         ("sys.excepthook", "sys.unraisablehook", "sys.displayhook", "sys.breakpointhook", "threading.excepthook")),
    Kind("import system", _EACH, "{name} is another afterwards: every later import goes through it",
         "install the finder once, when the module is loaded",
         ("sys.meta_path.*", "sys.path_hooks.*"),
         ("sys.meta_path", "sys.path_hooks", "sys.meta_path[]", "sys.path_hooks[]")),
    Kind("builtins", _EACH, "the builtin {name} is added, replaced or removed, for every module of the process",
         "give the name to the modules that use it", ("gettext.install", "*.install", "builtins.*", "setattr"),
         ("builtins.*", "__builtins__.*", "__builtins__[]", "builtins.__dict__[]")),
    Kind("replaced function", _EACH, "{name} of the standard library is replaced, for every module of the process",
         "use unittest.mock.patch as a with statement, or a subclass", ("setattr",), ()),
    Kind("context variable", _STILL, "the context variable {name} is set and not reset",
         "keep the token of set(), and reset() it in a finally", ("*.set",)),
    Kind("process limit", _EACH, "{name} of the process is another afterwards",
         "set it in the child process only (preexec, prlimit), or in the server's configuration",
         ("resource.setrlimit", "resource.prlimit", "os.nice", "os.setpriority", "os.set*id*", "os.setgroups")),
    Kind("memory", _STILL, "memory grows with every request: {name}",
         "find what holds the objects (tracemalloc tells where they were made)", recycles=True),
    # What an answer shows.
    Kind("answer", _EACH, "the answer to {name} is another than that of a new process",
         "look for what the request read and did not set itself"),
    Kind("end of the process", _EACH, "{name} ends the serving process",
         "leave by sys.exit or return; os._exit, fatal signals and crashes take the worker with them",
         ("os._exit", "os.abort", "os.kill", "os.killpg", "signal.raise_signal", "ctypes.string_at", "os.exec*")),
    Kind("no end", _EACH, "{name} did not end within the time limit, and does in a new process",
         "look at what it waits for", ()),
)  # fmt: skip

KINDS = {kind.name: kind for kind in _ROWS}
"""Name -> kind, in the order in which they are told."""

OWN_KINDS = frozenset(
    ("leftover", "global", "attribute", "class attribute", "closure", "default argument", "function attribute")
)
"""Kinds whose places in the source are found by the name that is changed."""
