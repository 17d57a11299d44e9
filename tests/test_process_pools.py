"""Several pools under one supervisor: each serves, fails, grows and reloads by itself."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.process_server import DEATH, Server, Start, children_of, fixed


def start_two(start: Start, tmp_path: Path, **files: str) -> tuple[Server, str, str]:
    one, two = (str(tmp_path / name) for name in ("one.sock", "two.sock"))
    server = start(
        (f"unix:{one}",),
        files={
            "pools": "one two",
            "addresses.two": json.dumps([f"unix:{two}"]),
            "limits.json.two": json.dumps(fixed(2)),
            **files,
        },
        **fixed(1),
    )
    return server, one, two


def test_each_pool_has_its_own_wires_and_limits(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path)
    workers = server.pids(r"ready (\d+)", 3)
    of_one = {server.ask(address=one) for _ in range(4)}
    of_two = {server.ask(address=two) for _ in range(4)}
    assert len(of_one) == 1
    assert not of_one & of_two
    assert of_one | of_two <= workers
    os.kill(min(of_one), signal.SIGKILL)
    server.wait(rf"worker {min(of_one)} \(pool one, generation 1, slot 0\) was killed by SIGKILL")
    server.wait("ready")
    assert server.ask(address=one) not in workers
    server.stop()
    assert len(server.errors()) == 1
    assert not os.path.exists(one)
    assert not os.path.exists(two)


def test_a_worker_holds_no_listener_of_another_pool(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path)
    server.wait("ready", 3)
    inodes = {
        line.split()[-1]: line.split()[6]
        for line in Path("/proc/net/unix").read_text().splitlines()
        if str(tmp_path) in line
    }
    for path, other in ((one, two), (two, one)):
        pid = server.ask(address=path)
        held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        assert f"socket:[{inodes[path]}]" in held
        assert f"socket:[{inodes[other]}]" not in held
    server.stop()
    assert server.errors() == []


def test_p04_a_pool_that_cannot_start_leaves_the_others_serving(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path, **{"boot.two": "raise"})
    server.wait("ERROR pool two is given up: no worker of pool two could start, .*ImportError: no module named nothing")
    assert server.ask(address=one) > 0
    assert not os.path.exists(two)  # nobody shall wait there in vain
    server.tell(**{"boot.two": ""})
    server.signal(signal.SIGHUP)
    server.wait("reload: a new pool, two")
    server.wait("ready", 2)
    assert server.ask(address=two) > 0
    server.stop()


def test_p04_when_every_pool_fails_the_supervisor_ends(start: Start, tmp_path: Path) -> None:
    server, _, _ = start_two(start, tmp_path, boot="raise")
    assert server.finish() == 1
    (last,) = [line for line in server.lines if "ERROR stopping: " in line]
    assert "no worker of pool one could start" in last
    assert "no worker of pool two could start" in last


def test_p10_a_pool_whose_new_code_fails_keeps_its_workers_and_the_other_reloads(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path)
    old_two = server.pids(r"ready (\d+)", 3) - {old_one := server.ask(address=one)}
    server.tell(**{"boot.two": "raise"})
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool one serves")
    server.wait("ERROR reload given up, the old workers stay: no worker of pool two")
    assert server.ask(address=two) in old_two
    assert {server.ask(address=one) for _ in range(5)} != {old_one}
    server.stop()


def test_b126_a_reload_adds_and_removes_pools(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path)
    server.wait("ready", 3)
    kept = os.stat(one).st_ino
    three = str(tmp_path / "three.sock")
    server.tell(pools="one three", **{"addresses.three": json.dumps([f"unix:{three}"])})
    server.signal(signal.SIGHUP)
    server.wait("pool two: taken out of the configuration")
    assert not os.path.exists(two)
    server.wait(DEATH + "exited with status 0", 3)  # two of pool two, one of the old generation of pool one
    assert server.ask(address=three) != server.ask(address=one) > 0
    assert os.stat(one).st_ino == kept
    assert len(children_of(server.process.pid)) == 2
    server.stop()
    assert server.errors() == []


def test_b126_an_address_moves_from_one_pool_to_another(start: Start, tmp_path: Path) -> None:
    server, one, two = start_two(start, tmp_path)
    server.wait("ready", 3)
    kept = os.stat(two).st_ino
    server.tell(pools="one", addresses=json.dumps([f"unix:{one}", f"unix:{two}"]))
    server.signal(signal.SIGHUP)
    server.wait("pool two: taken out of the configuration")
    server.wait(DEATH + "exited with status 0", 3)
    assert os.stat(two).st_ino == kept
    assert server.ask(address=two) == server.ask(address=one) > 0
    server.stop()
    assert server.errors() == []
