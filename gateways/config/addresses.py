"""Addresses in a configuration: where a pool listens and what it speaks there, and which peers it trusts.

Pure: resolves no name and opens no socket.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST_PORT = re.compile(r"(?:(?:\[(?P<six>[^\]]*)\]|(?P<host>[^:\[\]/]*)):)?(?P<port>[0-9]{1,5})")
_LOOPBACK = "127.0.0.1"
WIRES = ("http", "fastcgi", "scgi", "ajp", "uwsgi")
"""The protocols that can be spoken on a listening socket."""
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_MAX_UNIX_PATH = 107


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a pool listens, and the wire that is spoken there; ``""`` while that is the pool's ``Wire``."""

    address: str
    wire: str = ""

    def __str__(self) -> str:
        return f"{self.wire}://{self.address}" if self.wire else self.address


def parse_listen(text: str) -> ListenAddress:
    """Return what ``WIRE://ADDRESS`` or ``ADDRESS`` means.

    Raise ``ValueError`` with the rest of the sentence "Listen must be ...".
    """
    wire, found, address = text.partition("://")
    if not found:
        return ListenAddress(parse_address(text))
    if wire not in WIRES:
        raise ValueError(f'WIRE://ADDRESS with one of the wires {", ".join(WIRES)}, not "{text}"')
    return ListenAddress(parse_address(address), wire)


def parse_address(text: str) -> str:
    """Return a listening address in its plain form: ``HOST:PORT``, ``[IPV6]:PORT`` or ``unix:PATH``.

    A port alone is one of the loopback address: to listen to the world, one has to say so.
    Raise ``ValueError`` with the rest of the sentence "Listen must be ...".
    """
    if text.startswith("unix:"):
        path = text[5:]
        if not path or len(path.encode("utf-8", "surrogateescape")) > _MAX_UNIX_PATH:
            raise ValueError(f'unix:PATH with a path of 1 to {_MAX_UNIX_PATH} bytes, not "{text}"')
        return text
    match = _HOST_PORT.fullmatch(text)
    if match is None:
        raise ValueError(f'HOST:PORT, [IPV6]:PORT or unix:PATH, not "{text}"')
    port = int(match["port"])
    if port > 65535:
        raise ValueError(f'an address with a port from 0 to 65535, not "{text}"')
    return f"{_parse_host(match['host'], match['six'], text)}:{port}"


def split_host(address: str) -> str:
    """Return the host of an address in its plain form, without brackets; ``""`` for a UNIX socket."""
    return "" if address.startswith("unix:") else address.rpartition(":")[0].strip("[]")


def _parse_host(host: str | None, six: str | None, text: str) -> str:
    if six is not None:
        try:
            return f"[{ipaddress.IPv6Address(six)}]"
        except ValueError as error:
            raise ValueError(f'an address with a valid IPv6 address in brackets, not "{text}"') from error
    if not host:
        return _LOOPBACK
    if re.fullmatch(r"[0-9.]+", host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError as error:
            raise ValueError(f'an address with a valid IPv4 address, not "{text}"') from error
    if _HOST_NAME.fullmatch(host) is None:
        raise ValueError(f'an address with a valid host name, not "{text}"')
    return host


@dataclass(frozen=True, slots=True)
class PeerRule:
    """Which peers a rule means: calling it with a peer's address (``""`` for a UNIX socket) tells.

    ``written``: the rule as the configuration spells it. Whole addresses are compared, all 16 bytes of IPv6; an IPv4
    address that is mapped into IPv6 (RFC 4291 2.5.5.2) is that IPv4 address, in the rule and in the peer.
    """

    written: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    unix: bool = False

    @staticmethod
    def parse(items: Sequence[str]) -> PeerRule:
        """Return the rule for addresses, networks and ``"unix"``; raise ``ValueError`` for anything else."""
        networks = []
        for item in items:
            if item == "unix":
                continue
            try:
                networks.append(_unmap_network(ipaddress.ip_network(item)))
            except ValueError as error:
                hint = " (host bits are set)" if "host bits" in str(error) else ""
                raise ValueError(f'addresses, networks or "unix", not "{item}"{hint}') from error
        return PeerRule(tuple(items), tuple(networks), "unix" in items)

    def __call__(self, address: str) -> bool:
        """True when the rule names the peer at ``address``; an address that cannot be read it never names."""
        if not address:
            return self.unix
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address):
            peer = peer.ipv4_mapped or peer
        return any(peer in network for network in self.networks)


def _unmap_network(network: Network) -> Network:
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is None or network.prefixlen < 96:
        return network
    return ipaddress.IPv4Network((mapped, network.prefixlen - 96))
