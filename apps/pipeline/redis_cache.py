"""A cache in Redis, for any number of machines. Needs the ``redis`` package; how much it keeps is Redis's own setting
(``maxmemory`` with a policy that forgets), and whatever was not renewed for a day is forgotten.

A Redis that cannot be reached costs speed and no page: it is as if nothing were kept.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from apps.pipeline.caches import PAUSE, WAIT, check_key

DAY = 86400
MAX_VALUE = 4 << 20
TIMEOUT = 0.5
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
"""Gives a lock back only to whom it belongs: it may have run out, and be another's by now."""

log = logging.getLogger(__name__)


class RedisCache:
    """Keeps values under ``prefix`` in the Redis that ``url`` names (``redis://host:port/0``, ``unix:///path``)."""

    def __init__(self, url: str, prefix: str = "pipeline:") -> None:
        self.prefix = prefix
        self.client = redis.Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)

    def get(self, key: str) -> bytes | None:
        """See ``Cache``."""
        try:
            value = self.client.get(self.prefix + check_key(key))
        except redis.RedisError as error:
            log.warning("nothing is read from Redis: %s", error)
            return None
        return value if isinstance(value, bytes) else None

    def put(self, key: str, value: bytes) -> None:
        """See ``Cache``."""
        name = self.prefix + check_key(key)
        if len(value) > MAX_VALUE:
            return
        try:
            self.client.set(name, value, ex=DAY)
        except redis.RedisError as error:
            log.warning("nothing is kept in Redis: %s", error)

    @contextmanager
    def computing(self, key: str) -> Iterator[None]:
        """See ``Cache``. A lock runs out by itself, for the case that its holder was killed."""
        name, token = f"{self.prefix}lock:{check_key(key)}", secrets.token_hex(8)
        held = self._lock(name, token)
        try:
            yield
        finally:
            if held:
                try:
                    self.client.eval(RELEASE, 1, name, token)
                except redis.RedisError as error:
                    log.warning("a lock in Redis was left to run out: %s", error)

    def _lock(self, name: str, token: str) -> bool:
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            try:
                if self.client.set(name, token, nx=True, px=int(WAIT * 1000)):
                    return True
            except redis.RedisError as error:
                log.warning("no lock in Redis: %s", error)
                return False
            time.sleep(PAUSE)
        return False
