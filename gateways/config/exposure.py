"""Who could reach a listening address, and whether that is safe for what is spoken there. Pure: resolves no name.

Whoever can speak to a binary gateway is believed like the front server: about the client's address, the user, TLS. So
such a gateway listens to the world only if it was told to, in so many words.
"""

from __future__ import annotations

import ipaddress

from gateways.config.addresses import ListenAddress, PeerRule, split_host


def find_exposure(place: ListenAddress, allow_wildcard: bool, has_secret: bool) -> str:
    """Return the sentence that says why ``place`` may not be listened on; ``""`` when it may.

    The host of ``place`` is an address or a name; a name is only known once it is bound: ask again then.
    """
    address = parse_host(place.address)
    if address is None or place.wire == "http":
        return ""
    if address.is_unspecified and not allow_wildcard:
        return (
            f"{place} would be open to every interface, and whoever reaches it is believed like the front server: "
            "name one address; or say AllowWildcard = true, or (to a program that a FastCGI process manager starts) "
            "who may connect, in FCGI_WEB_SERVER_ADDRS"
        )
    if place.wire == "ajp" and not address.is_loopback and not has_secret:
        return f"{place} can be reached from other machines: ajp needs a Secret there"
    return ""


def parse_host(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address literal in ``HOST:PORT``; ``None`` for a name and for a UNIX socket."""
    try:
        host = ipaddress.ip_address(split_host(address))
    except ValueError:
        return None
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return mapped or host


def find_unreachable(place: ListenAddress, peers: PeerRule) -> str:
    """Return the sentence that says why no allowed peer can ever come to ``place``; ``""`` when one can."""
    if not peers.written:
        return ""
    if place.address.startswith("unix:"):
        return "" if peers.unix else f'AllowedPeers lets nobody use {place}: add "unix", or listen on a port'
    return "" if peers.networks else f"AllowedPeers lets nobody use {place}: add addresses, or listen on a UNIX socket"
