"""Kinds of scripts, each asked for under every mode that runs scripts: the rows of ``test_execution_kinds``.

The kinds are those that mod_perl's Registry and PerlRun are tried with, and those of security.md's C rows that a
client can see. A row is one script and one request; what takes several requests is a test of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE = 'print("Content-Type: text/plain\\n")\n'
FLUSHED = 'print("Content-Type: text/plain\\n", flush=True)\n'

MODES = {
    "cgi": 'Model = "cgi"',
    "zygote": 'Model = "zygote"',
    "perlrun": 'Model = "perlrun"',
    "registry-fresh": 'Model = "registry"',
    "registry-shared": 'Model = "registry"\nNamespace = "shared"',
    "registry-bb": 'Model = "registry"\nNamespace = "shared"\nStatScripts = false',
    "registry-descriptor": 'Model = "registry"\nStdio = "descriptor"',
}
"""Mode -> the lines of its mount; registry-bb is mod_perl's RegistryBB."""

FORKED = ("cgi", "zygote")
IN_PROCESS = tuple(mode for mode in MODES if mode not in FORKED)
CUT = -1
"""In place of a body: the response is seen to be incomplete."""
CUT_OR_500 = -2
"""The same, or the page of a 500: what a child said stays unsent for 20 ms, in which it as a rule has ended."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One script, one request for it, and what comes back.

    ``target``: what follows the script's name. ``has``: (name, value) of fields that the response must have. ``said``:
    a pattern that the log must have, except under the modes ``unsaid``. ``under``: mode -> (status, body) where a mode
    is known to answer otherwise, and should. ``name``: the file's, if it is not made from ``id``.
    """

    id: str
    script: str | bytes
    body: str | bytes | int = ""
    status: int = 200
    target: str = ""
    method: str = "GET"
    sent: bytes = b""
    fields: tuple[str, ...] = ()
    has: tuple[tuple[str, str], ...] = ()
    said: str = ""
    unsaid: tuple[str, ...] = ()
    under: dict[str, tuple[int, str | bytes | int]] = field(default_factory=dict)
    name: str = ""
    executable: bool = True


PAGE_500 = "500 Internal Server Error\n"
RUNS_ON = dict.fromkeys((*IN_PROCESS, "zygote"), (200, "runs\n"))
"""What needs no exec bit, in the modes that do not exec."""
SHOWN = "import sys\ndef show(kind, value, trace):\n    print('Content-Type: text/plain\\n\\nsorry:', value)\n"
REMOVED = "import os, sys\nsys.stdout.flush()\n"
ENV = "import os\nprint(*(f'{n}={os.environ.get(n)}' for n in %r.split()), sep='\\n')\n"

BASIC = [
    Kind("basic", TYPE + "print('hello')", "hello\n", has=(("Content-Type", "text/plain"), ("Content-Length", "6"))),
    Kind("head", TYPE + "print('hello')", "", method="HEAD", has=(("Content-Length", "6"),)),
    Kind("environment", TYPE + ENV % "GATEWAY_INTERFACE REQUEST_METHOD SERVER_PROTOCOL QUERY_STRING PATH_INFO",
         "GATEWAY_INTERFACE=CGI/1.1\nREQUEST_METHOD=GET\nSERVER_PROTOCOL=HTTP/1.1\nQUERY_STRING=a=1&b\nPATH_INFO=/x/y\n",
         target="/x/y?a=1&b"),
    Kind("environment-rewritten",
         TYPE + "import os, subprocess\nos.environ.update(QUERY_STRING='mine', EXTRA='1')\n"
         "del os.environ['PATH_INFO']\n"
         "print(os.environ['QUERY_STRING'], os.getenv('PATH_INFO'), flush=True)\n"
         "subprocess.run('echo $QUERY_STRING $EXTRA ${PATH_INFO-none}', shell=True)",
         "mine None\nmine 1 none\n", target="/x?theirs"),
    Kind("environment-of-the-next", TYPE + "import os\nprint(os.environ['QUERY_STRING'], os.getenv('EXTRA'))",
         "theirs None\n", target="?theirs"),
    Kind("post", TYPE + "import os, sys\nprint(os.environ['CONTENT_LENGTH'], sys.stdin.read())", "5 a=1&b\n",
         method="POST", sent=b"a=1&b"),
    Kind("require", TYPE + "import beside\nprint(beside.NAME)", "beside\n"),
    Kind("require-by-path", TYPE + "exec(open('plain.txt').read())\nprint(loaded)", "plain\n"),
    Kind("not-executable", TYPE + "print('runs')", "403 Forbidden\n", 403, executable=False, under=RUNS_ON),
    Kind("type-with-parameters", "print('Content-Type: text/html; charset=x\\n\\nbody')", "body\n",
         has=(("Content-Type", "text/html; charset=x"),)),
    Kind("type-other", "print('Content-type: application/x-foo\\n\\nbody')", "body\n",
         has=(("Content-type", "application/x-foo"),)),
    Kind("cookies-twice", "print('Set-Cookie: a=1\\nSet-Cookie: b=2\\nContent-Type: text/plain\\n\\nx')", "x\n",
         has=(("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))),
    Kind("folder-index", "", "index\n", name="sub/"),
    Kind("binary", "import sys\nsys.stdout.buffer.write(b'Content-Type: image/x\\n\\n' + bytes(range(256)) * 300)",
         bytes(range(256)) * 300),
    Kind("binary-begins-with-nul", "import sys\nsys.stdout.buffer.write(b'Content-Type: a/b\\n\\n\\0x')", b"\0x"),
    Kind("binary-begins-with-a-newline", "print('Content-Type: a/b\\n\\n\\nx')", "\nx\n"),
    Kind("crlf", "import sys\nsys.stdout.write('Content-Type: a/b\\r\\nX-A: 1\\r\\n\\r\\nx\\r\\n')", b"x\r\n",
         has=(("X-A", "1"),)),
]  # fmt: skip

ENDS = [
    Kind("exit", TYPE + "import sys\nprint('before')\nsys.exit()\nprint('after')", "before\n"),
    Kind("exit-in-a-function", TYPE + "def f():\n    print('in')\n    exit(0)\nf()\nprint('after')", "in\n"),
    Kind("exit-with-a-number", TYPE + "raise SystemExit(7)", said="exit status 7"),
    Kind("exit-with-a-text", TYPE + "raise SystemExit('the reason')", said="the reason"),
    Kind("exit-caught", TYPE + "try:\n    exit()\nexcept SystemExit:\n    print('caught')", "caught\n"),
    Kind("end-blocks", TYPE + "import atexit\natexit.register(print, 'first')\natexit.register(print, 'last')\n"
         "try:\n    print('body')\nfinally:\n    print('finally')", "body\nfinally\nlast\nfirst\n"),
    Kind("end-blocks-after-exit", TYPE + "import atexit\natexit.register(print, 'end')\nexit()", "end\n"),
    Kind("end-blocks-after-an-exception",
         "import atexit, os\natexit.register(lambda: open(os.environ['QUERY_STRING'], 'w').close())\n1/0",
         PAGE_500, 500, target="?{mark}", said="ZeroDivisionError"),
    Kind("end-blocks-see-the-environment", TYPE + "import atexit, os\n"
         "atexit.register(lambda: print(os.environ['QUERY_STRING'], os.path.basename(os.getcwd())))",
         "a scripts\n", target="?a"),
]  # fmt: skip

FAULTS = [
    Kind("500-syntax-error", TYPE + "print('x'", PAGE_500, 500, said="SyntaxError|was never closed"),
    Kind("500-runtime-error", TYPE + "print('half')\nno_such_name", PAGE_500, 500, said="NameError",
         under={"cgi": (200, "half\n")}),
    Kind("500-missing-module", "import no_such_module_here\n" + TYPE, PAGE_500, 500, said="ModuleNotFoundError"),
    Kind("500-missing-head", "print('no head')", PAGE_500, 500, said="ended within its head"),
    Kind("500-prints-nothing", "pass", PAGE_500, 500, said="printed nothing"),
    Kind("500-killed", "import os\nos.kill(os.getpid(), 9)", PAGE_500, 500, said="SIGKILL",
         under=dict.fromkeys(IN_PROCESS, (CUT, CUT))),
    Kind("500-after-a-status", "print('Status: 201 Created\\nContent-Type: a/b\\n\\nhalf')\n1/0", PAGE_500, 500,
         said="ZeroDivisionError", under={"cgi": (201, "half\n"), "zygote": (CUT, CUT_OR_500)}),
    Kind("500-in-an-imported-module", "import broken\n" + TYPE, PAGE_500, 500, said="broken.py"),
    Kind("raises-after-a-flush", FLUSHED + "print('half', flush=True)\n1/0", CUT, said="ZeroDivisionError",
         under={"cgi": (200, "half\n"), "zygote": (CUT, CUT_OR_500)}),
    Kind("status-404", "print('Status: 404 Not Found\\nContent-Type: text/plain\\n\\nmine')", "mine\n", 404),
    Kind("status-of-its-own", "print('Status: 599 Odd\\nContent-Type: text/plain\\n\\nmine')", "mine\n", 599),
    Kind("404-absent", "", "404 Not Found\n", 404, name="absent.py"),
    Kind("404-newline-in-the-name", "", "404 Not Found\n", 404, name="a%0ab.py"),
    Kind("errors-to-the-browser", SHOWN + "sys.excepthook = show\n1/0", "sorry: division by zero\n",
         said="ZeroDivisionError", unsaid=("cgi",)),
    Kind("errors-to-the-browser-by-stderr",
         TYPE + "import sys\nsys.stderr = sys.stdout\nraise ValueError('shown')",
         "Traceback*ValueError: shown\n"),
]  # fmt: skip

ANSWERS = [
    Kind("redirect-local", "print('Location: {base}basic.py\\n')", "hello\n"),
    Kind("redirect-local-with-a-query", "print('Location: {base}environment.py/in?q=1\\n')",
         "GATEWAY_INTERFACE=CGI/1.1\nREQUEST_METHOD=GET\nSERVER_PROTOCOL=HTTP/1.1\nQUERY_STRING=q=1\nPATH_INFO=/in\n"),
    Kind("redirect-local-of-a-post", "import sys\nsys.stdin.read()\nprint('Location: {base}basic.py\\n')", "hello\n",
         method="POST", sent=b"x=1"),
    Kind("redirect-local-with-a-cookie", "print('Set-Cookie: a=1\\nLocation: /x\\n')", "", 302,
         has=(("Location", "/x"), ("Set-Cookie", "a=1"))),
    Kind("redirect-local-for-ever", "print('Location: {base}redirect-local-for-ever.py\\n')", PAGE_500, 500,
         said="more than 10 internal redirects"),
    Kind("redirect-external", "print('Location: http://example.com/x\\n')", "", 302,
         has=(("Location", "http://example.com/x"),)),
    Kind("redirect-external-with-a-body", "print('Status: 301 Moved Permanently\\nLocation: http://h/\\n"
         "Content-Type: text/html\\n\\n<a>')", "<a>\n", 301, has=(("Location", "http://h/"),)),
    Kind("B105-redirect-307", "print('Status: 307 Temporary Redirect\\nLocation: http://h/\\n')", "", 307,
         has=(("Location", "http://h/"),)),
    Kind("B147-C07-nph", "import sys\n"
         "sys.stdout.write('HTTP/1.0 201 Made\\r\\nContent-Type: a/b\\r\\nX-N: 1\\r\\n\\r\\nraw')",
         "raw", 201, has=(("X-N", "1"),), name="nph-script.py"),
    Kind("B147-C07-nph-400", "print('HTTP/1.0 400 Bad Request\\nContent-Type: a/b\\nConnection: close\\n\\nraw')",
         "raw\n", 400),
    Kind("206", "print('Status: 206 Partial Content\\nContent-Type: a/b\\nContent-Range: bytes 0-1/5\\n"
         "Content-Length: 2\\n\\nab', end='')", "ab", 206, fields=("Range: bytes=0-1",),
         has=(("Content-Range", "bytes 0-1/5"), ("Content-Length", "2"))),
    Kind("304", "print('Status: 304 Not Modified\\nETag: \"a\"\\n')", "", 304, fields=('If-None-Match: "a"',),
         has=(("ETag", '"a"'),)),
    Kind("304-with-a-body", "print('Status: 304 Not Modified\\nContent-Type: a/b\\n\\nno')", "", 304),
    Kind("204", "print('Status: 204 No Content\\n')", "", 204),
    Kind("long", TYPE + "print('x' * 99, end='')\n" * 3000, "x" * 297_000),
]  # fmt: skip

SECURITY = [
    Kind("C01-B110-query", TYPE + "import sys\nprint(len(sys.argv))", "1\n", target="?-s"),
    Kind("C01-B110-long-option", TYPE + "import sys\nprint(len(sys.argv))", "1\n", target="?--version"),
    Kind("C01-B110-plus", TYPE + "import sys\nprint(len(sys.argv))", "1\n", target="?+-s"),
    Kind("C01-B110-soft-hyphen", TYPE + "import sys\nprint(len(sys.argv))", "1\n", target="?%AD-s"),
    Kind("C01-B110-ini", TYPE + "import sys\nprint(len(sys.argv))", "1\n", target="?-d+allow_url_include%3d1"),
    Kind("C02-secrets-of-the-server", TYPE + ENV % "AWS_SECRET API_TOKEN DATABASE_URL PYTHONPATH",
         "AWS_SECRET=None\nAPI_TOKEN=None\nDATABASE_URL=None\nPYTHONPATH=None\n"),
    Kind("C02-secrets-and-children", FLUSHED + "import os\nos.system('echo ${API_TOKEN-none} $QUERY_STRING')",
         "none q\n", target="?q"),
    Kind("C03-fields-set-http-variables-only",
         TYPE + ENV % "REMOTE_USER SCRIPT_NAME HTTP_REMOTE_USER HTTP_SCRIPT_NAME HTTP_REDIRECT_STATUS",
         "REMOTE_USER=None\nSCRIPT_NAME={base}C03-fields-set-http-variables-only.py\nHTTP_REMOTE_USER=evil\n"
         "HTTP_SCRIPT_NAME=/evil\nHTTP_REDIRECT_STATUS=200\n",
         fields=("Remote-User: evil", "Script-Name: /evil", "Redirect-Status: 200")),
    Kind("C03-H15-proxy", TYPE + ENV % "HTTP_PROXY http_proxy", "HTTP_PROXY=None\nhttp_proxy=None\n",
         fields=("Proxy: http://evil/", "pRoXy: http://evil/")),
    Kind("C03-what-the-mount-says-wins-over-the-server", TYPE + ENV % "LANG OWN", "LANG=mount\nOWN=yes\n"),
    Kind("C04-shellshock", FLUSHED + "import os\nos.system('printf %s \"$HTTP_X\"')", "() { :;}; echo x",
         fields=("X: () { :;}; echo x",)),
    Kind("C05-dots", "", "404 Not Found\n", 404, name="..%2f..%2fetc/passwd"),
    Kind("C05-dots-after-decoding", "", "404 Not Found\n", 404, name="sub/%2e%2e/%2e%2e/secret.py"),
    Kind("C05-decoded-once", "", "404 Not Found\n", 404, name="%252e%252e/secret.py"),
    Kind("C05-double-slash", "", "404 Not Found\n", 404, name="/basic.py"),
    Kind("C05-trailing-dot", "", "404 Not Found\n", 404, name="basic.py."),
    Kind("C05-hidden", "", "404 Not Found\n", 404, name=".hidden.py"),
    Kind("C05-link-out", "", "403 Forbidden\n", 403, name="link-out.py", said="lies outside its folder"),
    Kind("C05-not-a-file", "", "403 Forbidden\n", 403, name="fifo.py", said="no regular file"),
    Kind("C05-path-info-is-data", TYPE + ENV % "PATH_INFO", "PATH_INFO=/../../etc/passwd\n",
         target="/%2e%2e/../etc/passwd"),
    Kind("C06-status-alone", "print('Status: 200\\nContent-Type: a/b\\n\\nx')", "x\n"),
    Kind("C06-status-no-blank", "print('Status:404 Not Found\\nContent-Type: a/b\\n\\nx')", "x\n", 404),
    Kind("C06-status-abc", "print('Status: abc\\nContent-Type: a/b\\n\\nx')", PAGE_500, 500, said="'abc'"),
    Kind("C06-status-twice", "print('Status: 200 OK\\nStatus: 404 No\\nContent-Type: a/b\\n\\nx')", PAGE_500, 500,
         said="twice"),
    Kind("C06-B104-status-in-two-writes", "import sys\nsys.stdout.write('Status'); sys.stdout.flush()\n"
         "sys.stdout.write(': 404 Not Found\\r\\nContent-Type: a/b\\r\\n\\r\\nx')", "x", 404),
    Kind("C06-B104-byte-by-byte", "import os\nfor c in b'Status: 404 Not Found\\r\\n\\r\\n': os.write(1, bytes([c]))",
         "", 404),
    Kind("C06-no-type", "print('X-A: 1\\n\\nbody')", PAGE_500, 500, said="no Content-Type"),
    Kind("C06-long-head", "print('X-A: ' + 'a' * 70_000 + '\\nContent-Type: a/b\\n\\nx')", PAGE_500, 500,
         said="longer than 65536"),
    Kind("C06-B092-cr", "print('Content-Type: a/b\\nX-A: a\\rSet-Cookie: x=1\\n\\nx')", PAGE_500, 500,
         said="CR or NUL"),
    Kind("C06-nul", "print('Content-Type: a/b\\nX-A: \\0\\n\\nx')", PAGE_500, 500, said="CR or NUL"),
    Kind("C06-folded", "print('Content-Type: a/b\\n folded\\n\\nx')", PAGE_500, 500, said="folded"),
    Kind("C06-transfer-encoding", "print('Content-Type: a/b\\nTransfer-Encoding: chunked\\n\\nx')", PAGE_500, 500,
         said="may not send Transfer-Encoding"),
    Kind("C08-B102-stderr-4097", "import sys\nsys.stderr.write('e' * 4097); sys.stderr.flush()\n" + TYPE + "print('x')",
         "x\n", said="e{4097}"),
    Kind("C08-B102-stderr-1MiB", "import sys\nsys.stderr.write('e' * (1 << 20)); sys.stderr.flush()\n" + TYPE
         + "print('x')", "x\n", said="more bytes of standard error were dropped"),
    Kind("C09-body-unread", TYPE + "print('x' * 200_000)", "x" * 200_000 + "\n", method="POST", sent=b"y" * 300_000),
    Kind("C09-writes-before-it-reads",
         FLUSHED + "import sys\nprint('x' * 200_000, flush=True)\nprint(len(sys.stdin.read()))",
         "x" * 200_000 + "\n300000\n", method="POST", sent=b"y" * 300_000),
    Kind("B096-reads-to-the-end-of-no-body", TYPE + "import sys\nprint(repr(sys.stdin.read()))", "''\n"),
    Kind("C10-closes-its-output", FLUSHED + "import os\nprint('all', flush=True)\nos.close(1)\nsum(range(10))",
         "all\n"),
    Kind("C10-B108-grandchild-holds-the-output", "import subprocess\n"
         "print('Status: 202 Accepted\\nContent-Type: a/b\\n\\nx')\n"
         "open('pids', 'a').write(f'{subprocess.Popen([\"sleep\", \"60\"]).pid} ')", "x\n", 202),
    Kind("C12-children-of-scripts", TYPE + "import subprocess\n"
         "print(subprocess.run(['sh', '-c', 'exit 3']).returncode)",
         "3\n"),
    Kind("C13-B101-B134-descriptors-of-children", FLUSHED + "import subprocess\nsubprocess.run("
         "'for d in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$d ] && echo $d; done; true', shell=True, close_fds=False)", ""),
    Kind("C14-B099-folder", TYPE + "print(open('./plain.txt').read())", 'loaded = "plain"\n'),
    Kind("C15-B107-octets", TYPE + "import os\nprint(os.environb[b'PATH_INFO'])", "b'/\\xe9\\xc3\\xa5'\n",
         target="/%e9%c3%a5"),
    Kind("C17-exit-of-the-process", FLUSHED + "import os\nprint('x', flush=True)\nos._exit(3)", CUT,
         said="C17-exit-of-the-process.py: ended .*exit status 3", under=dict.fromkeys(FORKED, (200, "x\n"))),
    Kind("C17-leaves-everything-changed", TYPE + "import os, signal, sys\nos.chdir('/')\nos.umask(0)\n"
         "os.environ.clear()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('x', flush=True)\n"
         "sys.path.clear()\nsys.argv.clear()\nsys.stdin = sys.stderr = None\nsys.stdout.close()", "x\n"),
    Kind("C17-the-next-finds-nothing-changed", TYPE + "import os, signal, sys\n"
         "print(os.path.basename(os.getcwd()), oct(os.umask(0)), len(sys.argv), 'PATH' in os.environ,"
         "      sys.stdin.read())",
         "scripts 0o22 1 True \n"),
    Kind("C17-thread-left", TYPE + "import threading\n"
         "threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()", "",
         said="left a thread running",
         unsaid=FORKED),
]  # fmt: skip

KINDS = (*BASIC, *ENDS, *FAULTS, *ANSWERS, *SECURITY)
