"""The supervisor with real processes: start, spares, replacement, signals, reload, failure, and nobody left behind.

Each test runs ``process_driver.py`` and waits for lines of its log, each wait with a deadline.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.process_server import DEATH, PATIENCE, Start, children_of, fixed
from tests.servers import wait_until

# ---- start, spares, replacement ----


def test_start_servers_are_started_and_answer(start: Start) -> None:
    server = start()
    workers = server.started(5)
    assert set(children_of(server.process.pid)) == workers
    assert server.ask() in workers
    server.stop()
    assert server.errors() == []


def test_the_pool_grows_while_workers_are_busy_and_shrinks_when_they_are_not(start: Start) -> None:
    server = start(start_servers=1, min_spare_servers=1, max_spare_servers=1, max_servers=4)
    server.started(1)
    first, _ = server.hold()
    server.wait(r"ready (\d+)")
    second, _ = server.hold()
    server.wait(r"ready (\d+)")
    first.close()
    second.close()
    server.wait(r"leaving \d+ retire", 2)
    server.wait(DEATH + "exited with status 0", 2)
    assert len(children_of(server.process.pid)) == 1
    server.stop()
    assert server.errors() == []


def test_max_servers_is_not_passed_and_said_once(start: Start) -> None:
    server = start(start_servers=2, min_spare_servers=1, max_spare_servers=2, max_servers=2)
    server.started(2)
    clients = [server.hold()[0] for _ in range(2)]
    server.wait(r"WARNING MaxServers \(2\) reached")
    assert len(children_of(server.process.pid)) == 2
    for client in clients:
        client.close()
    server.stop()
    assert len(server.errors()) == 1


def test_p06_a_worker_leaves_after_its_requests_and_is_replaced(start: Start) -> None:
    server = start(**fixed(1, max_requests_per_child=3))
    server.started(1)
    pids = [server.ask() for _ in range(9)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 3]
    server.wait(DEATH + "exited with status 0 while closing after 3 requests", 3)
    server.stop()
    assert server.errors() == []


def test_p06_a_worker_for_each_request_is_no_failure(start: Start) -> None:
    server = start(**fixed(2, max_requests_per_child=1))
    server.started(2)
    assert len({server.ask() for _ in range(30)}) == 30
    server.stop()
    assert server.errors() == []


def test_the_random_numbers_of_workers_differ(start: Start) -> None:
    server = start()
    server.started(5)
    numbers = [match[1] for line in server.lines if (match := re.search("random (.*)", line))]
    assert len(set(numbers)) == 5
    server.stop()


# ---- deaths ----


def test_p03_a_killed_worker_is_replaced_and_named_and_no_zombie_stays(start: Start) -> None:
    server = start(**fixed(2))
    workers = server.started(2)
    victim = min(workers)
    os.kill(victim, signal.SIGKILL)
    (death,) = server.wait(DEATH + r"was killed by SIGKILL while idle after 0 requests and [\d.]+ s, peak \d+ MiB$")
    assert int(death[1]) == victim
    (replacement,) = server.pids(r"ready (\d+)")
    states = children_of(server.process.pid)
    assert set(states) == workers - {victim} | {replacement}
    assert "Z" not in states.values()
    server.stop()
    assert len(server.errors()) == 1


@pytest.mark.parametrize(
    ("word", "how"), [(b"die", "was killed by SIGKILL"), (b"exit", "exited with status 3")], ids=["signal", "os._exit"]
)
def test_p03_only_the_client_of_a_dying_worker_loses(start: Start, word: bytes, how: str) -> None:
    server = start(**fixed(2))
    server.started(2)
    other, pid = server.hold()
    assert server.ask(word) == 0
    server.wait(DEATH + how + " while busy after 0 requests")
    server.wait(r"ready (\d+)")
    other.sendall(b".")
    assert other.recv(1) == b"+"
    other.close()
    assert pid in children_of(server.process.pid)
    server.stop()
    assert len(server.errors()) == 1


def test_p07_workers_leave_when_the_supervisor_is_killed(start: Start) -> None:
    server = start()
    server.started(5)
    server.signal(signal.SIGKILL)
    server.wait_for_family()


def test_p07_a_busy_worker_leaves_after_its_request_when_the_supervisor_is_killed(start: Start) -> None:
    server = start(**fixed(1))
    server.started(1)
    client, _ = server.hold()
    server.signal(signal.SIGKILL)
    server.process.wait(PATIENCE)
    client.sendall(b".")
    assert client.recv(1) == b"+"
    client.close()
    server.wait_for_family()


@pytest.mark.parametrize(
    ("boot", "reason"),
    [
        ("raise", "exited with status 1 while starting .*: ImportError: no module named nothing"),
        ("exit", "exited with status 1 while starting .*: SystemExit: 4"),
        ("kill", "was killed by SIGKILL while starting"),
    ],
)
def test_p04_b120_an_application_that_never_starts_ends_the_supervisor_with_the_reason(
    start: Start, boot: str, reason: str
) -> None:
    server = start(files={"boot": boot}, **fixed(2))
    assert server.finish() == 1
    (last,) = [line for line in server.lines if "ERROR stopping: " in line]
    assert re.search(r"no worker of pool app could start, \d in a row died before they were ready; the last: ", last)
    assert re.search(reason, last)
    deaths = [line for line in server.lines if re.search("ERROR " + DEATH, line)]
    assert 5 <= len(deaths) < 20


def test_b120_a_boot_that_takes_long_is_waited_for_and_ended_at_once_by_term(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    server = start(files={"boot": "hang"}, **fixed(2))
    server.wait(r"hanging (\d+)", 2)
    server.signal(signal.SIGTERM)
    assert server.finish() == 0
    assert len([line for line in server.lines if "was killed by SIGTERM while starting" in line]) == 2
    assert server.errors() == []


@pytest.mark.skipif(os.getuid() != 0, reason="the process limit of another user needs root to take its place")
def test_p05_a_fork_that_is_refused_is_tried_again_and_nobody_leaves(start: Start) -> None:
    server = start(files={"processes": "3"}, **fixed(4))
    workers = server.started(2)
    server.wait("ERROR cannot start a worker: Resource temporarily unavailable; trying again in ", 2)
    assert server.ask() in workers
    server.stop()
    assert {re.sub(" in .*", "", line) for line in server.errors()} == {
        "ERROR cannot start a worker: Resource temporarily unavailable; trying again"
    }


def test_p08_b122_foreign_children_are_reaped_in_silence(start: Start) -> None:
    server = start(files={"foreign": "3"}, **fixed(1))
    (foreign,) = server.pids(r"foreign (\d+)")
    server.started(1)
    server.ask()
    wait_until(lambda: foreign not in children_of(server.process.pid), "the foreign child's end")
    server.stop()
    assert not [line for line in server.lines if f"worker {foreign}" in line]
    assert server.errors() == []


# ---- stopping ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT], ids=["TERM", "INT", "QUIT"])
def test_p02_b111_b131_a_stop_lets_the_current_request_finish(start: Start, number: int) -> None:
    server = start(**fixed(2))
    server.started(2)
    client, pid = server.hold()
    server.signal(number)
    server.wait(DEATH + "exited with status 0")
    client.sendall(b".")
    assert client.recv(1) == b"+"
    client.close()
    assert server.finish() == 0
    assert f"leaving {pid} {'retire' if number == signal.SIGQUIT else 'stop'}" in "\n".join(server.lines)
    assert server.errors() == []


def test_a_stop_refuses_new_connections_while_the_last_request_is_finished(start: Start) -> None:
    server = start(**fixed(1))
    server.started(1)
    client, _ = server.hold()
    server.signal(signal.SIGTERM)
    server.wait("supervisor .*: stop$")
    client.close()
    assert server.finish() == 0
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_what_does_not_leave_in_its_time_is_killed(start: Start) -> None:
    server = start(**fixed(1, graceful_timeout=0.2))
    server.started(1)
    client, pid = server.hold()
    server.signal(signal.SIGTERM)
    assert server.finish() == 0
    client.close()
    assert server.errors() == [f"WARNING worker {pid} is killed: it did not leave in its time"]


@pytest.mark.parametrize(
    ("numbers", "killed"),
    [
        ((signal.SIGTERM, signal.SIGTERM), True),
        ((signal.SIGINT, signal.SIGINT), True),
        ((signal.SIGTERM, signal.SIGINT), True),
        ((signal.SIGQUIT, signal.SIGTERM, signal.SIGTERM), True),
    ],
    ids=["TERM TERM", "INT INT", "TERM INT", "QUIT TERM TERM"],
)
def test_a_second_stop_is_at_once(start: Start, numbers: tuple[int, ...], killed: bool) -> None:
    server = start(**fixed(2))
    server.started(2)
    client, _ = server.hold()
    for number, word in zip(numbers, ["retire", "stop", "kill"][-len(numbers) :], strict=True):
        server.signal(number)
        server.wait(f"supervisor .*: {word}$")
    assert server.finish() == 0
    client.close()
    assert "was killed by SIGKILL while busy" in "\n".join(server.lines)


def test_p09_signals_to_the_whole_terminal_are_answered_by_the_supervisor(start: Start) -> None:
    server = start(**fixed(2))
    server.started(2)
    client, _ = server.hold()
    os.killpg(server.process.pid, signal.SIGINT)  # Ctrl-C
    server.wait("supervisor .*: stop$")
    client.sendall(b".")
    assert client.recv(1) == b"+"
    client.close()
    assert server.finish() == 0
    assert server.errors() == []


def test_p09_blocked_and_ignored_signals_of_the_parent_do_not_matter(start: Start) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
    ignored = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        server = start(**fixed(1, max_requests_per_child=1))
    finally:
        for number, handler in ignored:
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    server.started(1)
    server.ask()
    (worker,) = server.pids(r"ready (\d+)")
    status = Path("/proc", str(worker), "status").read_text()
    assert re.search(r"^SigBlk:\s+0+$", status, re.M)
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves")
    server.stop()
    assert server.errors() == []


# ---- reload ----


def test_hup_replaces_every_worker_and_keeps_the_listener(start: Start) -> None:
    server = start(**fixed(2))
    old = server.started(2)
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves, 2 workers")
    assert server.pids(r"leaving (\d+) retire", 2) == old
    assert server.ask() not in old
    server.stop()
    assert server.errors() == []


def test_b113_no_request_is_lost_while_generations_change(start: Start) -> None:
    server = start(**fixed(2))
    old = server.started(2)
    server.signal(signal.SIGHUP)
    seen = [server.ask() for _ in range(50)]
    server.wait("leaving .* retire", 2)
    seen += [server.ask() for _ in range(10)]
    assert 0 not in seen
    assert not old & set(seen[-10:])
    server.stop()
    assert server.errors() == []


@pytest.mark.parametrize(
    ("how", "message"),
    [("refuse", "gateways.conf:3: no such directive: Foo"), ("raise", "ZeroDivisionError: a fault in load")],
)
def test_p10_a_reload_that_cannot_load_keeps_the_old_workers(start: Start, how: str, message: str) -> None:
    server = start(**fixed(2))
    old = server.started(2)
    server.tell(load=how)
    server.signal(signal.SIGHUP)
    server.wait(re.escape(message))
    server.wait("ERROR reload failed, the old workers stay")
    assert set(children_of(server.process.pid)) == old
    server.tell(load="")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves")
    server.stop()


def test_p10_a_first_load_that_fails_ends_with_the_reason(start: Start) -> None:
    server = start(files={"load": "refuse"})
    assert server.finish() == 1
    assert server.errors() == ["ERROR gateways.conf:3: no such directive: Foo"]


def test_p10_p04_a_generation_that_cannot_start_leaves_the_old_one_serving(start: Start) -> None:
    server = start(**fixed(2))
    old = server.started(2)
    server.tell(boot="raise")
    server.signal(signal.SIGHUP)
    server.wait(
        "ERROR reload given up, the old workers stay: no worker of pool app could start, 5 in a row died before they"
        " were ready; the last: .*ImportError: no module named nothing"
    )
    assert set(children_of(server.process.pid)) == old
    assert server.ask() in old
    server.tell(boot="")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 3 of pool app serves")
    server.stop()


def test_p09_term_during_a_reload(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    server = start(**fixed(2))
    server.started(2)
    server.tell(boot="hang")
    server.signal(signal.SIGHUP)
    server.wait("hanging")
    server.stop()
    assert server.errors() == []


def test_p09_a_storm_of_hups_is_no_storm_of_forks(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    server = start(**fixed(2))
    old = server.started(2)
    server.tell(boot="hang")
    server.signal(signal.SIGHUP)
    server.wait("hanging")
    for _ in range(200):
        server.signal(signal.SIGHUP)
    server.tell(boot="")
    server.wait("reload: generation 3 of pool app serves")
    assert server.pids(r"leaving (\d+) retire", 2) == old
    server.stop()
    assert len([line for line in server.lines if "reload: trying" in line]) <= 3
    assert server.errors() == []


def test_b116_b125_an_old_worker_that_hangs_is_killed_in_its_time(start: Start) -> None:
    server = start(**fixed(1, graceful_timeout=0.2))
    server.started(1)
    client, pid = server.hold()
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves")
    server.wait(f"WARNING worker {pid} is killed")
    server.wait(f"worker {pid} .* was killed by SIGKILL while busy")
    client.close()
    server.stop()


def test_b126_a_reload_with_other_listeners(start: Start, tmp_path: Path) -> None:
    kept, removed, added = (str(tmp_path / name) for name in ("k", "r", "a"))
    server = start((f"unix:{kept}", f"unix:{removed}"), **fixed(1))
    server.wait("listening", 2)
    server.wait("ready")
    inode = os.stat(kept).st_ino
    assert server.ask(address=removed) > 0
    server.tell(addresses=json.dumps([f"unix:{kept}", f"unix:{added}"]))
    server.signal(signal.SIGHUP)
    server.wait("leaving .* retire")
    server.wait(DEATH + "exited with status 0")
    assert server.ask(address=kept) == server.ask(address=added) > 0
    assert os.stat(kept).st_ino == inode  # B123: the socket was there throughout
    assert not os.path.exists(removed)
    server.stop()
    assert not os.path.exists(kept)
    assert not os.path.exists(added)
    assert server.errors() == []


def test_b126_a_listener_that_two_new_generations_share_stays_open(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    kept, added = str(tmp_path / "k"), str(tmp_path / "a")
    server = start((f"unix:{kept}",), **fixed(1))
    server.wait("ready")
    server.tell(addresses=json.dumps([f"unix:{kept}", f"unix:{added}"]), boot="hang")
    server.signal(signal.SIGHUP)
    server.wait("hanging")
    server.tell(boot="")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 3 of pool app serves")
    assert server.ask(address=added) > 0
    server.stop()
    assert server.errors() == []


def test_b126_a_generation_that_is_given_up_leaves_no_listener(start: Start, tmp_path: Path) -> None:
    kept, added = str(tmp_path / "k"), str(tmp_path / "a")
    server = start((f"unix:{kept}",), **fixed(1))
    server.wait("ready")
    server.tell(addresses=json.dumps([f"unix:{added}"]), boot="raise")
    server.signal(signal.SIGHUP)
    server.wait("ERROR reload given up")
    assert not os.path.exists(added)
    assert server.ask(address=kept) > 0
    server.stop()


def test_signals_without_a_meaning_end_nobody(start: Start) -> None:
    server = start(**fixed(1))
    (worker,) = server.started(1)
    server.signal(signal.SIGUSR1)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        os.kill(worker, number)
    for number in (signal.SIGINT, signal.SIGHUP):  # a worker leaves these to the supervisor
        os.kill(worker, number)
    assert server.ask() == worker
    server.stop()
    assert server.errors() == []


def test_p10_while_two_generations_serve_none_of_the_new_one_is_spare(start: Start, tmp_path: Path) -> None:
    server = start(**fixed(4))
    server.started(4)
    gate, held = tmp_path / "gate", tmp_path / "held"
    os.mkfifo(gate)
    os.link(gate, held)
    server.tell(boot="hang but one", open="")
    server.signal(signal.SIGHUP)
    server.wait("reload: generation 2 of pool app serves, 4 workers")
    server.wait(r"hanging \d+", 3)
    for number, most in ((signal.SIGTTIN, 5), (signal.SIGTTOU, 4)):  # either makes the pool count at once
        server.signal(number)
        server.wait(f"at most {most} workers")
    os.replace(tmp_path / "open", gate)  # for those that come to it later
    os.close(os.open(held, os.O_RDWR))  # for those that wait there
    server.wait(r"ready \d+", 3)
    assert server.ask() > 0
    server.stop()
    assert not [line for line in server.lines if "was killed by SIGTERM while starting" in line]
    assert server.errors() == []


def test_p13_nothing_grows_with_reloads_and_each_replaces_everybody(start: Start) -> None:
    server = start(**fixed(4))
    server.started(4)
    fds, sizes = set(), []
    for generation in range(2, 42):
        server.signal(signal.SIGHUP)
        server.wait(f"reload: generation {generation} of pool app serves")
        # Also right after one another: while two generations serve, none of the new one is spare (P13, P10).
        server.wait(rf"worker \d+ \(pool app, generation {generation - 1}, slot \d+\) exited with status 0", 4)
        fds.add(len(os.listdir(f"/proc/{server.process.pid}/fd")))
        sizes.append(int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]))
    assert len(fds) == 1
    assert len(os.listdir(f"/proc/{server.process.pid}/task")) == 1
    assert sizes[-1] - sizes[10] <= 128, sizes  # half a MiB
    assert not [line for line in server.lines if "was killed by SIGTERM while starting" in line]
    server.stop()
    assert server.errors() == []
