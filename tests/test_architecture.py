"""The arrows of gateways/ARCHITECTURE.md, read from the modules' own imports."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gateways"
MODULES = sorted(PACKAGE.rglob("*.py"))

ALLOWED = {
    "core": {"core"},
    "wire": {"core", "wire"},
    "execution": {"core", "execution"},
    "serve": {"core", "serve"},
    "process": {"core", "process"},
    "config": {"core", "config"},
    "fronts": {"core", "config", "fronts"},
    "listening": {"core", "wire", "execution", "serve", "config"},
    "door": {"core", "serve", "config", "listening", "accesslog"},
    "server": {"core", "wire", "execution", "serve", "process", "config", "door", "listening", "accesslog"},
    "audit": {"core", "execution", "audit"},
    "auditing": {"core", "config", "audit", "server"},
    "start": {"core", "config"},
    "entry": {"core", "config", "process", "listening", "server", "start"},
    "announcement": {"config"},
    "statusview": {"core", "process"},
    "reloading": {"core", "config", "errorlog"},
    "gunicorn": {"core", "serve", "config", "listening", "server", "accesslog"},
    "logfile": set(),
    "errorlog": {"logfile"},
    "accesslog": {"core", "logfile"},
    "complaint": {"core"},
    "cli": {
        "core", "config", "listening", "server", "start", "entry", "errorlog", "announcement", "complaint", "commands",
    },
    "commands": {"core", "config", "fronts", "audit", "auditing", "complaint", "operate"},
    "operate": {
        "core", "config", "server", "start", "errorlog", "announcement", "reloading", "statusview", "complaint",
    },
    "__main__": {"cli"},
    "__init__": {"cli"},
}  # fmt: skip
"""Part -> the parts of ours that it may import."""

OPERATING_SYSTEM = {
    "fcntl", "logging", "mmap", "multiprocessing", "os", "select", "selectors", "signal", "socket", "subprocess",
    "tempfile", "threading", "time",
}  # fmt: skip
WORLD_FREE = {"core", "wire"}
"""Parts that may know nothing of the operating system."""


GUESTS = {
    "gateways/gunicorn.py": {"gunicorn"},
    "gateways/process/metrics.py": {"prometheus_client"},
    "gateways/reloading.py": {"watchfiles"},
}
"""Modules that stand on another package -> which. Nothing of ours imports such a module but when it is asked for."""


def find_part(path: Path) -> str:
    """The part a module belongs to: its folder below gateways/, or its own name."""
    inner = path.relative_to(PACKAGE)
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


def read_imports(path: Path) -> list[tuple[str, int]]:
    """Every imported module with its line, wherever the import stands; those for type checkers only are left out."""
    found: list[tuple[str, int]] = []

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node: ast.If) -> None:
            if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                self.generic_visit(node)

        def visit_Import(self, node: ast.Import) -> None:
            found.extend((alias.name, node.lineno) for alias in node.names)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            found.append((node.module or "", node.lineno))
            if node.module in ("gateways", "gateways.core"):
                found.extend((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)

    Visitor().visit(ast.parse(path.read_text()))
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_along_the_arrows(path: Path) -> None:
    part = find_part(path)
    for module, line in read_imports(path):
        if module.startswith("gateways."):
            target = module.split(".")[1]
            if target in ("__version__",):
                continue
            assert target in ALLOWED[part], f"{path}:{line}: {part} may not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_package_imports_only_itself_and_the_standard_library(path: Path) -> None:
    for module, line in read_imports(path):
        top = module.split(".")[0]
        known = top in sys.stdlib_module_names or top == "gateways"
        assert known or top in GUESTS.get(name_of(path), ()), f"{path}:{line}: {module}"


@pytest.mark.parametrize("path", [p for p in MODULES if find_part(p) in WORLD_FREE], ids=name_of)
def test_core_and_wires_know_no_operating_system(path: Path) -> None:
    for module, line in read_imports(path):
        assert module.split(".")[0] not in OPERATING_SYSTEM, f"{path}:{line}: {module}"


def calls(path: Path) -> list[tuple[str, int]]:
    """Every call or attribute written ``a.b``, with its line."""
    return [
        (f"{node.value.id}.{node.attr}", node.lineno)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]


def test_only_process_and_execution_fork() -> None:
    users = {find_part(path) for path in MODULES if any(call == "os.fork" for call, _ in calls(path))}
    assert users <= {"process", "execution"}


def test_any_child_is_waited_for_in_one_place() -> None:
    places = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (
            ast.unparse(node.func) in ("os.wait", "os.wait3")
            or (ast.unparse(node.func) == "os.waitid" and ast.unparse(node.args[0]) == "os.P_ALL")
            or (ast.unparse(node.func) in ("os.waitpid", "os.wait4") and ast.unparse(node.args[0]) == "-1")
        )
    ]
    assert len(places) == 1, places
    assert places[0].startswith("gateways/process/")


def test_start_response_stands_in_one_module() -> None:
    users = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.arg, ast.Name))
        and "start_response" in (getattr(node, "name", ""), getattr(node, "arg", ""), getattr(node, "id", ""))
    }
    assert users == {"gateways/execution/wsgi.py"}


def test_only_the_command_line_prints_or_exits() -> None:
    for path in MODULES:
        if find_part(path) in ("cli", "commands", "operate", "__main__") or path.name in ("reference.py", "matrix.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("print", "sys.exit", "exit"), f"{path}:{node.lineno}"


def test_importing_the_whole_package_has_no_effect() -> None:
    """No thread, no log handler, no changed environment, no opened descriptor."""
    import subprocess

    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in MODULES
        if path.stem != "__main__" and all(find_spec(other) for other in GUESTS.get(name_of(path), ()))
    ]
    program = """
import logging, os, sys, threading
before = (dict(os.environ), sorted(os.listdir("/proc/self/fd")), logging.root.handlers[:], threading.active_count())
for name in sys.argv[1:]:
    __import__(name)
after = (dict(os.environ), sorted(os.listdir("/proc/self/fd")), logging.root.handlers[:], threading.active_count())
assert before == after, (before, after)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_app_never_imports_the_package() -> None:
    for path in (ROOT / "apps").rglob("*.py"):
        for module, line in read_imports(path):
            assert module.split(".")[0] != "gateways", f"{path}:{line}"
