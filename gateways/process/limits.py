"""What a pool of workers may grow to, and how long things may take: numbers only, checked once.

Knows no process, signal or socket; whoever reads a configuration makes one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from gateways.core.errors import ConfigurationError

MANAGERS = ("dynamic", "static", "ondemand", "fork")
"""How the number of workers is kept: by spares; fixed; none while nothing comes; one for each connection."""
WAITING_MANAGERS = ("ondemand", "fork")
"""Managers under which nobody may be there to accept: the supervisor watches the listeners."""
MOST_SERVERS = 10_000
"""No pool may be larger: a mistyped number shall be an error, not a full process table."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """The spare arithmetic's numbers, as in Apache's prefork, and the limits of one worker's life.

    ``start_servers``: workers started at first. ``min_spare_servers``, ``max_spare_servers``: bounds of the idle ones.
    ``max_servers``: the most that serve at a time; workers that are leaving are not counted.
    ``max_requests_per_child``: requests after which a worker leaves, 0 for no limit; each worker's own limit is
    lower by up to the fraction ``max_requests_jitter``, so that they do not all leave together.
    ``graceful_timeout``: seconds that a leaving worker has before it is killed.
    ``max_boot_failures``: workers of a generation that has never served which may die in a row before it is given up.
    ``manager``: one of ``MANAGERS``; all but ``dynamic`` need ``max_servers`` only. ``idle_timeout``: seconds that a
    worker of ondemand and fork waits for work. ``request_timeout``: seconds after which a request costs its worker's
    life, ``slow_timeout``: after which it is described in the log, 0 for never. ``max_memory``: resident bytes of a
    worker beyond which it is replaced, 0 for any. ``shows_requests``: workers write down which request they run.
    Raise ``ConfigurationError`` for numbers that contradict each other.
    """

    start_servers: int = 5
    min_spare_servers: int = 5
    max_spare_servers: int = 10
    max_servers: int = 64
    max_requests_per_child: int = 0
    max_requests_jitter: float = 0.1
    graceful_timeout: float = 30.0
    max_boot_failures: int = 5
    manager: str = "dynamic"
    idle_timeout: float = 10.0
    request_timeout: float = 0.0
    slow_timeout: float = 0.0
    max_memory: int = 0
    shows_requests: bool = False

    def __post_init__(self) -> None:
        dynamic = self.manager == "dynamic"
        for wrong, message in (
            (self.manager not in MANAGERS, f"ProcessManager must be one of {', '.join(MANAGERS)}"),
            (not 1 <= self.max_servers <= MOST_SERVERS, f"MaxServers must be between 1 and {MOST_SERVERS}"),
            (self.start_servers < 1, "StartServers must be at least 1"),
            (self.min_spare_servers < 1, "MinSpareServers must be at least 1"),
            (dynamic and self.start_servers > self.max_servers, "StartServers must not exceed MaxServers"),
            (dynamic and self.min_spare_servers > self.max_servers, "MinSpareServers must not exceed MaxServers"),
            (
                dynamic and self.max_spare_servers < self.min_spare_servers,
                "MaxSpareServers must not be less than MinSpareServers",
            ),
            (self.max_requests_per_child < 0, "MaxRequestsPerChild must be 0 (no limit) or more"),
            (not 0 <= self.max_requests_jitter <= 1, "MaxRequestsJitter must be a fraction from 0 to 1"),
            (not 0 <= self.graceful_timeout <= 86400, "GracefulTimeout must be between 0 and 86400 seconds"),
            (not 0 < self.idle_timeout <= 86400, "ProcessIdleTimeout must be more than 0, up to 86400 seconds"),
            (not 0 <= self.request_timeout <= 86400, "RequestTimeout must be between 0 and 86400 seconds"),
            (not 0 <= self.slow_timeout <= 86400, "SlowRequestTimeout must be between 0 and 86400 seconds"),
            (self.max_memory < 0, "MaxMemoryPerChild must be 0 (no limit) or more"),
            (self.max_boot_failures < 1, "MaxBootFailures must be at least 1"),
        ):
            if wrong:
                raise ConfigurationError(f"{message} ({self._given()})")

    def _given(self) -> str:
        return ", ".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self)[:5])

    @classmethod
    def fit(
        cls,
        start_servers: int | None = None,
        min_spare_servers: int | None = None,
        max_spare_servers: int | None = None,
        max_servers: int | None = None,
        **others: float,
    ) -> PoolLimits:
        """Return limits in which the numbers that were not given (None) yield to those that were.

        ``fit(max_servers=2)`` is a pool of two; a given number is never changed, a contradiction of two still raises.
        """
        ceiling = cls.max_servers_default(start_servers, min_spare_servers) if max_servers is None else max_servers
        roof = ceiling if max_spare_servers is None else min(ceiling, max_spare_servers)
        least = min(5, roof) if min_spare_servers is None else min_spare_servers
        start = min(5, ceiling) if start_servers is None else start_servers
        most = max(10, least) if max_spare_servers is None else max_spare_servers
        return cls(start, least, most, ceiling, **others)  # type: ignore[arg-type]

    @staticmethod
    def max_servers_default(start_servers: int | None, min_spare_servers: int | None) -> int:
        """Return the ceiling to use when none was given: 64, or what the other numbers need."""
        return max(64, start_servers or 0, min_spare_servers or 0)

    @classmethod
    def fixed(cls, servers: int, max_requests_per_child: int = 0, graceful_timeout: float = 30.0) -> PoolLimits:
        """Return the limits of a pool that neither grows nor shrinks."""
        return cls(
            servers,
            servers,
            servers,
            servers,
            max_requests_per_child=max_requests_per_child,
            graceful_timeout=graceful_timeout,
        )

    @property
    def first_servers(self) -> int:
        """Workers to start with. Under ondemand and fork it is one: it shows that the application can be loaded."""
        return {"dynamic": self.start_servers, "static": self.max_servers}.get(self.manager, 1)

    @property
    def fewest_idle(self) -> int:
        """Idle workers below which one that has died is replaced at once."""
        return {"dynamic": self.min_spare_servers, "static": self.max_servers}.get(self.manager, 0)

    @property
    def watches_requests(self) -> bool:
        """True when somebody must be able to tell what a worker is doing and for how long."""
        return self.request_timeout > 0 or self.slow_timeout > 0

    def shift(self, more: int) -> PoolLimits:
        """Return the limits of a pool with ``more`` workers (fewer if negative), never fewer than one."""
        return replace(
            self,
            **{
                name: min(max(getattr(self, name) + more, 1), MOST_SERVERS)
                for name in ("start_servers", "min_spare_servers", "max_spare_servers", "max_servers")
            },
        )

    def fix(self, servers: int) -> PoolLimits:
        """Return the limits of a pool of exactly ``servers`` workers."""
        return replace(self, manager="static", max_servers=servers)

    @property
    def slots(self) -> int:
        """Scoreboard lines of a pool: those who serve, as many that leave, one on trial and one successor."""
        return 2 * self.max_servers + 2

    def plan_max_requests(self, chance: float) -> int:
        """Return one worker's request limit, 0 for none; ``chance`` is a random number from 0 up to but not 1."""
        most = self.max_requests_per_child
        return most - int(chance * (self._spread + 1))

    def plan_due(self, max_requests: int) -> int:
        """Return after how many requests a worker with this limit asks for its successor, 0 for never.

        It serves on until the successor is ready; at its limit it leaves in any case.
        """
        margin = min(self._spread, max_requests // 2)
        return max_requests - margin if margin else 0

    @property
    def _spread(self) -> int:
        most = self.max_requests_per_child
        return min(int(most * self.max_requests_jitter), most - 1) if most else 0
