"""The settings a server is built from: frozen, checked, with every path absolute.

One field for each directive of the scope, under its code name; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateways.config.addresses import ListenAddress, PeerRule
from gateways.config.targets import Target
from gateways.core.limits import TimeLimits, WireLimits


@dataclass(frozen=True, slots=True)
class MountSettings:
    """One application below one path of a pool. ``script_time_limit``: seconds, 0 for none."""

    path: str
    target: Target
    model: str
    title: str
    namespace: str
    stat_scripts: bool
    stdio: str
    directory_index: tuple[str, ...]
    pass_authorization: bool
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    script_time_limit: float
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """One set of workers and the addresses they serve; times in seconds, sizes in bytes, as the reference says."""

    name: str
    mounts: tuple[MountSettings, ...]
    listen: tuple[ListenAddress, ...]
    wire: str
    listen_mode: str
    listen_owner: str
    listen_group: str
    allow_wildcard: bool
    allowed_peers: PeerRule
    secret: str = field(repr=False)
    packet_size: int
    trust_remote_user: bool
    allowed_attributes: str
    user: str
    group: str
    process_manager: str
    process_idle_timeout: float
    start_servers: int
    min_spare_servers: int
    max_spare_servers: int
    max_servers: int
    max_requests_per_child: int
    max_requests_jitter: int
    max_memory_per_child: int
    request_timeout: float
    slow_request_timeout: float
    graceful_timeout: float
    listen_backlog: int
    max_queue: int
    queue_timeout: float
    share_connections: bool
    keep_alive_timeout: float
    header_timeout: float
    body_timeout: float
    body_rate: int
    send_timeout: float
    limit_request_line: int
    limit_request_fields: int
    limit_request_field_size: int
    limit_request_head: int
    limit_request_body: int
    trusted_proxies: PeerRule
    server_name: str
    python_path: tuple[str, ...]
    preload: tuple[str, ...]
    access_log: str
    access_log_format: str

    def wire_limits(self) -> WireLimits:
        """Return the bounds of a connection's parser."""
        return WireLimits(
            request_line=self.limit_request_line,
            field=self.limit_request_field_size,
            fields=self.limit_request_fields,
            head=self.limit_request_head,
            body=self.limit_request_body,
        )

    def time_limits(self) -> TimeLimits:
        """Return the time limits of a connection."""
        return TimeLimits(
            head=self.header_timeout,
            body=self.body_timeout,
            body_rate=self.body_rate,
            send=self.send_timeout,
            keep_alive=self.keep_alive_timeout,
        )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything one supervisor keeps. ``file``: the configuration it came from, ``""`` for the command line."""

    file: str
    error_log: str
    slow_log: str
    log_level: str
    pid_file: str
    status_listen: str
    pools: tuple[PoolSettings, ...]
