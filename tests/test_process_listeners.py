"""Addresses and listening sockets: what is understood, what is refused with advice, and whose a socket file is."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import stat
from pathlib import Path

import pytest

from gateways.core.errors import ConfigurationError
from gateways.process.listeners import (
    Address,
    OpenListeners,
    close_listeners,
    is_wildcard,
    open_listener,
    parse_address,
)

UNDERSTOOD = [
    ("127.0.0.1:8000", Address("127.0.0.1", 8000), "127.0.0.1:8000"),
    ("[::1]:8000", Address("::1", 8000), "[::1]:8000"),
    ("localhost:8000", Address("localhost", 8000), "localhost:8000"),
    ("8000", Address("127.0.0.1", 8000), "127.0.0.1:8000"),
    (":8000", Address("127.0.0.1", 8000), "127.0.0.1:8000"),
    ("0.0.0.0:0", Address("0.0.0.0", 0), "0.0.0.0:0"),
    ("*:80", Address("0.0.0.0", 80), "0.0.0.0:80"),
    ("[::]:65535", Address("::", 65535), "[::]:65535"),
    ("unix:/run/app.sock", Address(path="/run/app.sock"), "unix:/run/app.sock"),
    ("unix:app:1.sock", Address(path="app:1.sock"), "unix:app:1.sock"),
]


@pytest.mark.parametrize(("text", "address", "shown"), UNDERSTOOD, ids=[row[0] for row in UNDERSTOOD])
def test_an_address_is_understood(text: str, address: Address, shown: str) -> None:
    assert parse_address(text) == address
    assert str(address) == shown


REFUSED = [
    ("", "expected HOST:PORT"),
    ("localhost", "expected HOST:PORT"),
    ("localhost:", "expected HOST:PORT"),
    ("127.0.0.1:65536", "port up to 65535"),
    ("127.0.0.1:-1", "port up to 65535"),
    ("127.0.0.1:+1", "port up to 65535"),
    ("127.0.0.1:8_0", "port up to 65535"),
    ("127.0.0.1: 80", "port up to 65535"),
    ("127.0.0.1:\u0661", "port up to 65535"),
    ("::1:8000", "write an IPv6 address in brackets"),
    ("[::1]", "in brackets"),
    ("[localhost]:80", "only an IPv6 address stands in brackets"),
    ("http://localhost:80", "in brackets"),
    ("a b:80", "is no host name"),
    ("user@host:80", "is no host name"),
    ("unix:", "the path of the socket is missing"),
    ("unix:/a\0b", "the path of the socket is missing"),
    ("unix:/" + "x" * 107, "longer than 107 bytes"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[ascii(row[0])[:30] for row in REFUSED])
def test_what_is_no_address_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "wildcard"),
    [
        ("0.0.0.0:80", True), ("[::]:80", True), ("*:80", True), ("[0:0:0:0:0:0:0:0]:80", True),
        ("127.0.0.1:80", False), ("[::1]:80", False), ("localhost:80", False), ("80", False), ("unix:/x", False),
    ],
)  # fmt: skip
def test_whether_the_world_can_reach_it(text: str, wildcard: bool) -> None:
    assert is_wildcard(parse_address(text)) is wildcard


def test_a_tcp_listener_is_ready_to_be_inherited() -> None:
    with open_listener(parse_address("127.0.0.1:0")) as listener:
        assert not listener.getblocking()
        assert not os.get_inheritable(listener.fileno())
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        with socket.create_connection(listener.getsockname()) as client:
            listener.setblocking(True)
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                client.sendall(b"x")
                assert connection.recv(1) == b"x"


def test_the_kernel_may_wait_for_the_first_bytes() -> None:
    with open_listener(parse_address("127.0.0.1:0"), defer_accept=3) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0


def test_a_name_is_resolved() -> None:
    with open_listener(parse_address("localhost:0")) as listener:
        assert listener.getsockname()[0] in ("127.0.0.1", "::1")


def test_an_address_in_use_is_one_clear_sentence() -> None:
    with open_listener(parse_address("127.0.0.1:0")) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"^cannot listen on 127.0.0.1:{port}: the address is in use"):
            open_listener(Address("127.0.0.1", port))


def test_an_address_of_another_machine() -> None:
    with pytest.raises(ConfigurationError, match="no interface of this machine has this address"):
        open_listener(Address("192.0.2.1", 0))


def test_a_name_that_can_be_none() -> None:
    with pytest.raises(ConfigurationError, match="this is no host name"):
        open_listener(Address("a..b", 80))


def test_a_socket_file_has_its_mode_from_the_start_and_the_umask_is_as_before(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        listener = open_listener(Address(path=str(tmp_path / "s")))
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660
    close_listeners([listener])
    assert not (tmp_path / "s").exists()


def test_a_stale_socket_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    open_listener(Address(path=str(path))).close()  # not removed, as after a SIGKILL
    assert path.exists()
    listener = open_listener(Address(path=str(path)))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    close_listeners([listener])


def test_a_socket_file_on_which_somebody_answers_is_left_alone(tmp_path: Path) -> None:
    address = Address(path=str(tmp_path / "s"))
    listener = open_listener(address)
    with pytest.raises(ConfigurationError, match="the address is in use"):
        open_listener(address)
    assert (tmp_path / "s").exists()
    close_listeners([listener])


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(ConfigurationError, match="a file that is not a socket is in the way"):
        open_listener(Address(path=str(tmp_path / "s")))
    assert (tmp_path / "s").read_text() == "precious"


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="its directory does not exist; create it first"):
        open_listener(Address(path=str(tmp_path / "none" / "s")))


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="the directory must be writable for this user"):
        open_listener(Address(path=str(tmp_path / "s")))


def test_p11_b123_a_socket_file_is_removed_only_by_its_owner(tmp_path: Path) -> None:
    address = Address(path=str(tmp_path / "s"))
    old = open_listener(address)
    os.unlink(address.path)
    new = open_listener(address)
    close_listeners([old])
    assert (tmp_path / "s").exists()
    pid = os.fork()
    if pid == 0:
        close_listeners([new])
        os._exit(0)
    os.waitpid(pid, 0)
    assert (tmp_path / "s").exists()
    close_listeners([new])
    assert not (tmp_path / "s").exists()


def test_b126_a_reload_keeps_what_is_open_and_opens_what_is_new() -> None:
    book = OpenListeners()
    first, second, third = (Address("127.0.0.1", 0), Address("127.0.0.2", 0), Address("127.0.0.3", 0))
    before = book.acquire([first, second])
    after = book.acquire([second, third])
    assert after[0] is before[1]
    close_listeners(before[:1])
    again = book.acquire([first, second, third])
    assert again[0] is not before[0]
    assert again[1:] == after
    close_listeners(again)


def test_a_reload_opens_all_or_nothing() -> None:
    book = OpenListeners()
    (kept,) = book.acquire([Address("127.0.0.1", 0)])
    with pytest.raises(ConfigurationError):
        book.acquire([Address("127.0.0.1", 0), Address("127.0.0.2", 0), Address("192.0.2.1", 0)])
    assert book.acquire([Address("127.0.0.1", 0)]) == [kept]
    close_listeners([kept])


def test_each_free_port_is_another_one_and_a_reload_keeps_them_all() -> None:
    book = OpenListeners()
    free = [Address("127.0.0.1", 0)] * 3
    before = book.acquire(free)
    assert len({listener.getsockname()[1] for listener in before}) == 3
    assert book.acquire(free) == before
    assert book.are_open() == set(before)
    close_listeners(before)
    assert book.are_open() == set()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_socket_file_is_given_away_by_name_or_number(tmp_path: Path) -> None:
    path = tmp_path / "s"
    user, group = pwd.getpwall()[-1], grp.getgrall()[-1]
    for owner, owning in ((user.pw_name, group.gr_name), (str(user.pw_uid), str(group.gr_gid))):
        listener = open_listener(Address(path=str(path)), mode=0o600, owner=owner, group=owning)
        made = path.stat()
        assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (user.pw_uid, group.gr_gid, 0o600)
        close_listeners([listener])


@pytest.mark.parametrize(
    ("owner", "group", "message"),
    [("no-such-user", "", "there is no user"), ("", "no-such-group", "there is no group")],
)
def test_an_unknown_owner_leaves_no_file_behind(tmp_path: Path, owner: str, group: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_listener(Address(path=str(tmp_path / "s")), owner=owner, group=group)
    assert not (tmp_path / "s").exists()


def test_a_file_that_cannot_be_given_away_is_removed_again(tmp_path: Path) -> None:
    """In a process of its own, which is nobody in particular."""
    tmp_path.chmod(0o777)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.chdir(tmp_path)
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(59999)
                os.setuid(59999)
            open_listener(Address(path="s"), owner="1", group="1")
        except ConfigurationError as error:
            said = str(error)
            status = 0 if "its owner 1 and group 1 cannot be set" in said and not os.path.exists("s") else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
