"""`gateways audit`: a planted leak of each kind is found with its line, and ordinary applications raise no alarm."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from gateways.audit.conduct import Audit
from gateways.audit.judge import Cause, Standing
from gateways.audit.report import find_best, format_text, has_passed, list_findings
from gateways.auditing import read_plan, read_requests, run_audit
from tests.behind import lack

ROOT = Path(__file__).resolve().parent.parent
LEAKS = ROOT / "tests" / "apps" / "leaks"
USERS = ("GET /?admin", "GET /?bob")
SAFE, SETTING, UNSAFE = Standing.SAFE, Standing.SETTING, Standing.UNSAFE
DEADLINE = 60


def audit(target: str, *requests: str, model: str = "", folder: Path = LEAKS, time_limit: float = 10.0) -> Audit:
    """Audit a target as the command line does."""
    asked = read_requests(requests or USERS, "")
    return run_audit(
        read_plan(target, str(folder), asked, model=model, time_limit=time_limit), lambda rung, done, total: None
    )


def find_causes(outcome: Audit, rung: str) -> list[Cause]:
    """The faults of one rung."""
    verdicts = [verdict for verdict in outcome.verdicts if verdict.rung == rung]
    return [cause for verdict in verdicts for cause in verdict.causes if cause.fault]


def list_marked(path: Path) -> set[tuple[str, int]]:
    """The lines of a file that are marked as the leak."""
    lines = path.read_text().splitlines()
    return {(path.name, number) for number, line in enumerate(lines, 1) if "#" in line and line.endswith("leak")}


def list_standings(outcome: Audit) -> dict[str, Standing]:
    """Rung -> verdict, without the yardsticks."""
    return {v.rung: v.standing for v in outcome.verdicts if v.standing is not Standing.YARDSTICK}


PLANTED = [
    ("global_value", "global", UNSAFE),
    ("global_list", "global", SETTING),
    ("object_attribute", "attribute", UNSAFE),
    ("class_attribute", "class attribute", UNSAFE),
    ("closure", "closure", UNSAFE),
    ("default_argument", "default argument", SETTING),
    ("function_attribute", "function attribute", UNSAFE),
    ("environment", "environment", UNSAFE),
    ("working_directory", "working directory", UNSAFE),
    ("removed_directory", "working directory", UNSAFE),
    ("umask", "umask", UNSAFE),
    ("arguments", "arguments", UNSAFE),
    ("module_path", "module path", UNSAFE),
    ("loaded_modules", "loaded modules", UNSAFE),
    ("signal_handler", "signal handler", UNSAFE),
    ("signal_mask", "signal mask", UNSAFE),
    ("timer", "timer", UNSAFE),
    ("exit_function", "exit function", SETTING),
    ("thread", "thread", UNSAFE),
    ("child_process", "child process", UNSAFE),
    ("descriptor", "descriptor", SETTING),
    ("closed_descriptor", "closed descriptor", UNSAFE),
    ("temporary_file", "temporary file", SETTING),
    ("locale_setting", "locale", UNSAFE),
    ("time_zone", "time zone", UNSAFE),
    ("warning_filters", "warnings", UNSAFE),
    ("log_handler", "logging", UNSAFE),
    ("recursion_limit", "interpreter setting", UNSAFE),
    ("decimal_context", "decimal context", UNSAFE),
    ("socket_timeout", "library setting", UNSAFE),
    ("random_seed", "random numbers", UNSAFE),
    ("collector", "garbage collector", UNSAFE),
    ("standard_stream", "standard stream", UNSAFE),
    ("hook", "hook", UNSAFE),
    ("display_hook", "hook", UNSAFE),
    ("meta_path", "import system", UNSAFE),
    ("path_hooks", "import system", UNSAFE),
    ("builtin", "builtins", UNSAFE),
    ("replaced_function", "replaced function", UNSAFE),
    ("context_variable", "context variable", UNSAFE),
    ("process_limit", "process limit", UNSAFE),
    ("memory", "memory", SETTING),
    ("ends_process", "end of the process", UNSAFE),
    ("no_end", "no end", UNSAFE),
]
"""File -> the kind that must be named, and the verdict on wsgi."""


SCRIPTS = [
    ("imported_global", USERS, {"zygote": SAFE, "perlrun": SAFE, "registry": UNSAFE, "registry-shared": UNSAFE},
     "global", "library.py"),
    ("precision", ("GET /?short", "GET /?long"),
     {"zygote": SAFE, "perlrun": UNSAFE, "registry": UNSAFE, "registry-shared": UNSAFE}, "decimal context",
     "precision.py"),
    ("tidy", USERS, {"zygote": SAFE, "perlrun": SAFE, "registry": SAFE, "registry-shared": SAFE}, "", ""),
    ("reads_descriptor", ("POST / hello",),
     {"zygote": SAFE, "perlrun": SETTING, "registry": SETTING, "registry-shared": SETTING}, "", ""),
]  # fmt: skip
"""File -> requests, the verdict on each rung, the kind that must be named, and the file of its line."""


@pytest.fixture(scope="module")
def audits(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Audit]]]:
    """The audits of the applications that are to be tested, two at a time: each waits for its own processes."""
    chosen = [item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")]
    rows: list[tuple[str, tuple[str, ...], float]] = [
        *((name, USERS, 1.0 if kind == "no end" else 10.0) for name, kind, _ in PLANTED),
        *((name, requests, 10.0) for name, requests, *_ in SCRIPTS),
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {
            name: pool.submit(audit, f"{name}.py", *requests, time_limit=limit)
            for name, requests, limit in rows
            if name in chosen
        }


@pytest.mark.parametrize(("name", "kind", "standing"), PLANTED, ids=[row[0] for row in PLANTED])
def test_a_planted_leak_is_found_with_its_line(
    name: str, kind: str, standing: Standing, audits: dict[str, Future[Audit]]
) -> None:
    outcome = audits[name].result()
    assert list_standings(outcome) == {"wsgi": standing}
    found = {cause.kind: cause for cause in find_causes(outcome, "wsgi")}
    assert kind in found, list(found)
    marked = list_marked(LEAKS / f"{name}.py")
    places = {(os.path.basename(place.file), place.line) for place in outcome.places[found[kind].key]}
    assert marked <= places
    assert marked or kind == "memory"  # nobody can tell which line made what is kept elsewhere


def test_a_leak_that_only_grows_is_safe_with_workers_that_are_replaced() -> None:
    (verdict,) = [v for v in audit("descriptor.py").verdicts if v.standing is SETTING]
    assert [name for name, _ in verdict.settings] == ["MaxRequestsPerChild"]


# Scripts: what a model puts back is no leak in it.


def test_the_script_of_the_guide_leaks_the_privilege_only_where_its_globals_are_kept() -> None:
    outcome = audit("allowed.py")
    assert list_standings(outcome) == {
        "zygote": SAFE, "perlrun": SAFE, "registry": SAFE, "registry-shared": UNSAFE,
    }  # fmt: skip
    (finding,) = list_findings(outcome)
    assert finding.is_disclosure
    assert finding.rungs == ("registry-shared",)
    assert {(os.path.basename(place.file), place.line) for place in finding.places} == list_marked(LEAKS / "allowed.py")
    labels = [asked.label for asked in outcome.requests]
    first = finding.differences[0]
    assert (labels[first.request], labels[first.previous], labels[first.whose]) == (USERS[1], USERS[0], USERS[0])
    assert (first.expected, first.got) == ("You may not see the secret.", "The secret is 42.")
    best = find_best(outcome)
    assert best is not None
    assert (best.rung, best.settings) == ("registry", (("Namespace", "fresh"),))
    text = format_text(outcome, str(LEAKS))
    assert "PRIVILEGE LEAK" in text
    assert "gateways serve allowed.py --model registry --namespace fresh" in text


def test_the_order_in_which_requests_are_given_hides_no_leak() -> None:
    outcome = audit("allowed.py", *reversed(USERS), model="registry-shared")
    assert list_standings(outcome) == {"registry": SAFE, "registry-shared": UNSAFE}


@pytest.mark.parametrize(("name", "requests", "standings", "kind", "file"), SCRIPTS, ids=[row[0] for row in SCRIPTS])
def test_a_script_on_every_rung(
    name: str,
    requests: Sequence[str],
    standings: dict[str, Standing],
    kind: str,
    file: str,
    audits: dict[str, Future[Audit]],
) -> None:
    outcome = audits[name].result()
    assert list_standings(outcome) == standings
    findings = list_findings(outcome)
    assert [finding.causes[0].kind for finding in findings] == ([kind] if kind else [])
    for finding in findings:
        assert {(os.path.basename(place.file), place.line) for place in finding.places} == list_marked(LEAKS / file)


# No false alarms.

ORDINARY = [
    ("", "hello.py", ("GET /", "GET /gateway", "GET /env", "GET /none", "POST /post a=b"), ""),
    ("flask", "flask_site.py", ("GET /", "GET /where", "GET /members", "POST /login name=me password=flask"), ""),
    ("django", "portal.wsgi:application", ("GET /", "GET /where", "GET /admin/", "GET /admin/login/"), "django_site"),
]


@pytest.mark.parametrize(("needs", "target", "requests", "folder"), ORDINARY, ids=[row[1] for row in ORDINARY])
def test_an_ordinary_application_raises_no_alarm(
    needs: str, target: str, requests: Sequence[str], folder: str, tmp_path: Path
) -> None:
    if needs and importlib.util.find_spec(needs) is None:
        lack(f"{needs} is not installed: pip install 'gateways[apps]'")
    asked = read_requests(requests, "")
    apps = ROOT / "apps"
    plan = read_plan(target, str(apps), asked, python_path=[folder] if folder else [])
    outcome = run_audit(plan, lambda rung, done, total: None)
    assert set(list_standings(outcome).values()) == {SAFE}, format_text(outcome, str(apps))
    assert has_passed(outcome)


PAGES = """
import functools, os, time
connection = None
@functools.lru_cache
def shout(text): return text.upper()
def application(environ, start_response):
    global connection
    connection = connection or object()
    path = environ["PATH_INFO"]
    start_response("200 OK", [("Content-Type", "text/html"), ("X-When", str(time.time_ns()))])
    links = '<a href="two?x=1#a">2</a> <a href="/three">3</a> <a href="//elsewhere/">4</a> <a href="/logout">5</a>'
    return [f"{shout(path)} {os.getpid()} {time.time()} {links}".encode()]
"""


def test_links_are_followed_and_neither_caches_nor_clocks_are_alarms(tmp_path: Path) -> None:
    (tmp_path / "pages.py").write_text(PAGES)
    outcome = run_audit(read_plan("pages.py", str(tmp_path), crawl=3), lambda rung, done, total: None)
    assert [asked.target for asked in outcome.requests] == ["/", "/two?x=1", "/three"]
    assert list_standings(outcome) == {"wsgi": SAFE}


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_here\ndef application(environ, start_response): pass\n")
    outcome = run_audit(read_plan("broken.py", str(tmp_path)), lambda rung, done, total: None)
    text = format_text(outcome, str(tmp_path))
    assert "no_such_module_here" in text
    assert not has_passed(outcome)


# The command line.


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``gateways audit WORDS``."""
    return subprocess.run(
        [sys.executable, "-m", "gateways", "audit", *words], cwd=ROOT, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=DEADLINE, check=False,
    )  # fmt: skip


def test_the_exit_status_is_that_of_the_model_asked_for() -> None:
    words = ("tests/apps/leaks/precision.py", "--request", "GET /?short", "--request", "GET /?long")
    assert run(*words, "--model", "zygote").returncode == 0
    done = run(*words, "--model", "perlrun", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    assert document["passed"] is False
    assert document["findings"][0]["places"][0]["line"] == 8
    assert document["findings"][0]["answers"][0]["after"] == "GET /?short"


WRONG = [
    (["none.py"], f"TARGET: there is no file {ROOT}/none.py"),
    (["Makefile"], f"TARGET: {ROOT}/Makefile is no Python file and cannot be executed: chmod +x it"),
    (["apps/hello.py", "--request", "HELLO"],
     "--request: the request 'HELLO' is not METHOD /PATH, as in 'GET /list?page=2' or 'POST /login name=x'"),
    (["apps/hello.py", "--request", "POST / @none"],
     "--request: the body '@none' cannot be read: No such file or directory"),
    (["apps/hello.py", "--har", "none.har"], "--har: none.har cannot be read: No such file or directory"),
    (["apps/hello.py", "--har", "README.md"], "--har: README.md: it is no HAR recording, a JSON object with "),
    (["apps/flask_site.py", "--model", "registry"], '--model must be one of wsgi for this target; not "registry"'),
    (["apps/hello.py", "--time-limit", "0"], "--time-limit must be more than 0 and at most 3600 seconds"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_usage_is_one_sentence_and_status_2(words: list[str], sentence: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gateways: {sentence}")
    assert done.stderr.count("\n") == 1
