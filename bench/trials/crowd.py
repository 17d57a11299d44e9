"""Clients of `pinned` and `full`: one request at a time each, all driven by one epoll, every answer looked at."""

from __future__ import annotations

import heapq
import select
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic, monotonic_ns

END = b"\r\n\r\n"
READ = 65536


@dataclass(slots=True)
class Heard:
    """``sent``: request -> when, in monotonic nanoseconds; ``answers``: (status, milliseconds, request) of each."""

    sent: dict[int, int] = field(default_factory=dict)
    answers: list[tuple[int, float, int]] = field(default_factory=list)


class Client:
    """One connection at a time, kept as long as the peer keeps it."""

    def __init__(self, port: int, keep: bool) -> None:
        self.port = port
        self.keep = keep
        self.sock: socket.socket | None = None
        self.name = 0
        self.data = b""

    def ask(self, name: int, path: str) -> socket.socket:
        """Send a request; return the socket to wait on."""
        if self.sock is None:
            self.sock = socket.create_connection(("127.0.0.1", self.port))
        last = "" if self.keep else "Connection: close\r\n"
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{last}\r\n".encode())
        self.name = name
        self.data = b""
        return self.sock

    def hear(self) -> int:
        """Take what has come; return the status of the answer, 0 while it is not whole, -1 where there is none."""
        assert self.sock is not None
        try:
            piece = self.sock.recv(READ)
        except OSError:
            piece = b""
        self.data += piece
        head, found, body = self.data.partition(END)
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        if piece and not (found and length.isdigit() and len(body) >= int(length)):
            return 0
        if not piece or b"\r\nconnection: close" in head.lower():
            self.close()
        return int(head[9:12]) if found else -1

    def close(self) -> None:
        """Close the connection."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None


def run_crowd(
    clients: list[Client], requests: Iterator[tuple[int, str]], pause: Callable[[], float], patience: float
) -> Heard:
    """Let every client ask, and ask again after ``pause()`` seconds, until there are no ``requests`` (name, path).

    Ends ``patience`` seconds after nothing more came.
    """
    heard = Heard()
    epoll = select.epoll()
    waiting: dict[int, Client] = {}
    due = [(monotonic() + pause(), at) for at in range(len(clients))]
    heapq.heapify(due)
    numbers = {id(client): at for at, client in enumerate(clients)}
    last = monotonic()
    while (due or waiting) and monotonic() < last + patience:
        while due and due[0][0] <= monotonic():
            client = clients[heapq.heappop(due)[1]]
            request = next(requests, None)
            if request is None:
                due.clear()
                break
            heard.sent[request[0]] = monotonic_ns()
            sock = client.ask(*request)
            waiting[sock.fileno()] = client
            epoll.register(sock, select.EPOLLIN)
        timeout = max(0.0, due[0][0] - monotonic()) if due else patience
        for fd, _ in epoll.poll(min(timeout, patience)):
            client = waiting[fd]
            epoll.unregister(fd)
            if status := client.hear():
                last = monotonic()
                del waiting[fd]
                heard.answers.append((status, (monotonic_ns() - heard.sent[client.name]) / 1e6, client.name))
                heapq.heappush(due, (last + pause(), numbers[id(client)]))
            else:
                epoll.register(fd, select.EPOLLIN)
    heard.answers += [(0, (monotonic_ns() - heard.sent[each.name]) / 1e6, each.name) for each in waiting.values()]
    for client in clients:
        client.close()
    epoll.close()
    return heard
