"""ProcessManager static, ondemand and fork, and the orders that move a pool: TTIN, TTOU, WINCH."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import termios
from pathlib import Path

import pytest

from tests.process_server import DEATH, Start, children_of


def test_static_keeps_exactly_max_servers(start: Start) -> None:
    server = start(manager="static", max_servers=3)
    workers = server.started(3)
    client, pid = server.hold()
    os.kill(min(workers - {pid}), signal.SIGKILL)
    server.wait("ready")
    assert len(children_of(server.process.pid)) == 3
    client.close()
    server.stop()
    assert len(server.errors()) == 1


def test_ondemand_has_no_worker_while_nothing_comes(start: Start) -> None:
    server = start(manager="ondemand", max_servers=4, idle_timeout=0.2)
    server.started(1)  # the one that shows that the application can be loaded
    server.wait(r"leaving \d+ retire")
    server.wait(DEATH + "exited with status 0")
    assert children_of(server.process.pid) == {}
    first = server.ask()
    assert first > 0
    server.wait(r"leaving \d+ retire")
    server.wait(DEATH + "exited with status 0")
    assert server.ask() not in (0, first)
    server.stop()
    assert server.errors() == []


def test_ondemand_starts_as_many_as_wait_and_not_more_than_max_servers(start: Start) -> None:
    server = start(manager="ondemand", max_servers=3, idle_timeout=60.0)
    server.started(1)
    clients = [server.hold() for _ in range(3)]
    assert len({pid for _, pid in clients}) == 3
    last = server.connect()
    last.sendall(b"pid")
    server.wait(r"WARNING MaxServers \(3\) reached")
    clients[0][0].sendall(b".")
    assert int(last.recv(20)) == clients[0][1]
    for client in (last, *(client for client, _ in clients)):
        client.close()
    server.stop()
    assert len(server.errors()) == 1


def test_fork_has_a_process_for_each_connection_up_to_max_servers(start: Start) -> None:
    server = start(manager="fork", max_servers=2, idle_timeout=60.0)
    server.started(1)
    assert len({server.ask() for _ in range(5)}) == 5
    first, _ = server.hold()
    second, _ = server.hold()
    third = server.connect()
    third.sendall(b"pid")
    server.wait(r"WARNING MaxServers \(2\) reached")
    first.sendall(b".")
    assert int(third.recv(20)) > 0
    for client in (first, second, third):
        client.close()
    server.stop()
    assert len(server.errors()) == 1


def test_p04_ondemand_tells_at_the_start_that_an_application_cannot_be_loaded(start: Start) -> None:
    server = start(files={"boot": "raise"}, manager="ondemand", max_servers=4)
    assert server.finish() == 1
    assert any("ERROR stopping: no worker of pool app could start" in line for line in server.lines)


@pytest.mark.parametrize("manager", ["ondemand", "static"])
def test_hup_renews_a_pool_of_any_manager(start: Start, manager: str) -> None:
    server = start(manager=manager, max_servers=2, idle_timeout=60.0)
    old = server.started(1 if manager == "ondemand" else 2)
    server.signal(signal.SIGHUP)
    assert server.pids(r"leaving (\d+) retire", len(old)) == old
    assert server.ask() not in old
    server.stop()
    assert server.errors() == []


def test_ttin_and_ttou_move_a_pool_and_hup_forgets_nothing(start: Start) -> None:
    server = start(manager="static", max_servers=2)
    server.started(2)
    server.signal(signal.SIGTTIN)
    server.wait("pool app: at most 3 workers from now on")
    server.wait("ready")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves, 3 workers")
    server.wait("leaving .* retire", 3)
    for count in (2, 1):
        server.signal(signal.SIGTTOU)
        server.wait(f"pool app: at most {count} workers from now on")
        server.wait("leaving .* retire")
    server.signal(signal.SIGTTOU)
    server.wait("pool app: at most 1 workers")
    assert server.ask() > 0
    server.stop()
    assert server.errors() == []


def test_ttin_adds_a_spare_to_a_dynamic_pool(start: Start) -> None:
    server = start(start_servers=1, min_spare_servers=1, max_spare_servers=1, max_servers=1)
    server.started(1)
    server.signal(signal.SIGTTIN)
    server.wait("ready")
    assert len(children_of(server.process.pid)) == 2
    server.stop()
    assert server.errors() == []


def test_p09_winch_takes_the_workers_and_hup_brings_them_back(start: Start) -> None:
    server = start(manager="static", max_servers=2)
    old = server.started(2)
    server.signal(signal.SIGWINCH)
    assert server.pids(DEATH + "exited with status 0", 2) == old
    client = server.connect()  # the address is still there, and waits
    client.sendall(b"pid")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves, 2 workers")
    assert int(client.recv(20)) > 0
    client.close()
    server.stop()
    assert server.errors() == []


def test_p09_winch_of_a_terminal_whose_window_changes_is_ignored(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    monkeypatch.setenv("PROCESS_DRIVER_TERMINAL", os.ttyname(slave))
    server = start(manager="static", max_servers=1)
    (worker,) = server.started(1)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", 50, 50, 0, 0))
    server.wait("WINCH means nothing to a program with a terminal")
    assert server.ask() == worker
    server.stop()
    assert server.errors() == []
    os.close(master)
    os.close(slave)


def test_p09_p10_hup_with_code_that_fails_brings_the_old_workers_back(start: Start) -> None:
    server = start(manager="static", max_servers=1)
    server.started(1)
    server.signal(signal.SIGWINCH)
    server.wait(DEATH + "exited with status 0")
    server.tell(load="refuse")
    server.signal(signal.SIGHUP)
    server.wait("ERROR reload failed")
    server.wait("ready")
    assert server.ask() > 0
    server.stop()


def test_p09_winch_then_ttin_has_one_worker(start: Start) -> None:
    server = start(manager="static", max_servers=3)
    server.started(3)
    server.signal(signal.SIGWINCH)
    server.wait(DEATH + "exited with status 0", 3)
    server.signal(signal.SIGTTIN)
    server.wait("ready")
    assert server.ask() > 0
    assert len(children_of(server.process.pid)) == 1
    server.stop()
    assert server.errors() == []


def test_p06_a_worker_that_is_due_leaves_when_its_successor_is_ready(start: Start) -> None:
    server = start(manager="static", max_servers=1, max_requests_per_child=2000, max_requests_jitter=0.5)
    (old,) = server.started(1)
    while server.ask() == old:
        pass
    (match,) = server.wait(r"worker (\d+) is replaced by (\d+): it has served its requests")
    assert int(match[1]) == old
    server.wait(f"leaving {old} retire")  # it was told, and did not have to go at its limit ("spent")
    server.stop()
    assert server.errors() == []


def test_p06_memory_a_worker_that_has_grown_is_replaced(start: Start) -> None:
    server = start(manager="static", max_servers=1, max_memory=60 << 20)
    (old,) = server.started(1)
    assert server.ask(b"eat") == old
    server.wait(r"worker \d+ is replaced by \d+: it holds \d+ MiB, MaxMemoryPerChild is 60")
    server.wait(rf"worker {old} .* exited with status 0")
    assert server.ask() not in (0, old)
    server.stop()
    assert server.errors() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_p15_p16_a_worker_is_somebody_else_for_good(start: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    server = start(files={"user": "nobody:nogroup"}, manager="static", max_servers=1)
    (worker,) = server.started(1)
    status = Path("/proc", str(worker), "status").read_text()
    assert re.search(r"^Uid:\t65534\t65534\t65534\t65534$", status, re.M)
    assert re.search(r"^Gid:\t65534\t65534\t65534\t65534$", status, re.M)
    assert re.search(r"^Groups:\t65534 $", status, re.M)
    assert re.search(r"^CapEff:\t0+$", status, re.M)
    assert os.stat(f"/proc/{worker}/environ").st_uid == 0  # undumpable: nobody's other processes cannot look into it
    assert server.ask() == worker
    server.stop()
    assert server.errors() == []
