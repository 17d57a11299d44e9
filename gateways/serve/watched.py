"""Exchanges that say, before anything of a response goes, that it does: for whoever may answer in this process's place.

Used only where a request may cost its process's life (RequestTimeout): elsewhere nobody pays for the two stores.
"""

from __future__ import annotations

from gateways.serve.exchange import Exchange
from gateways.serve.logged import LoggedExchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gateways.core.interfaces import FieldList, Log, Watch
    from gateways.core.mounts import MountTable
    from gateways.core.request import Request
    from gateways.serve.connection import Connection


class WatchedExchange(Exchange):
    """An ``Exchange``. ``watch``: whom it tells."""

    __slots__ = ()

    watch: Watch

    def respond(self, status: str, fields: FieldList, body: bytes = b"") -> None:
        """Send a whole response."""
        self.watch.answer()
        super().respond(status, fields, body)

    def _format_head(self) -> bytes:
        self.watch.answer()
        return super()._format_head()


class PlainWatchedExchange(WatchedExchange):
    """A ``WatchedExchange``, and no more."""

    __slots__ = ("watch",)


class LoggedWatchedExchange(WatchedExchange, LoggedExchange):
    """A ``WatchedExchange`` that an access log is written of."""

    __slots__ = ("watch",)


def watch_exchanges(watch: Watch, logged: bool) -> Callable[[Connection, Request, MountTable, Log], Exchange]:
    """Return what opens an exchange and tells ``watch`` of it."""
    kind = LoggedWatchedExchange if logged else PlainWatchedExchange

    def open_exchange(connection: Connection, request: Request, mounts: MountTable, log: Log) -> Exchange:
        exchange = kind(connection, request, mounts, log)
        exchange.watch = watch
        watch.owe(connection.fd, connection.wire.request_id)
        return exchange

    return open_exchange
