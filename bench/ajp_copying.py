"""``python -m bench.ajp_copying SWITCHES ...``: our server with an AJP writer that copies, for comparison.

The server's own writer cuts a body into packets by views of it and joins everything once. Two switches, with a comma
between, put the copies back that a plain writer makes:

- ``pieces``: each packet's piece is copied out of the body, and once more into a packet of its own;
- ``page``: the packets are added to a growing response, and that to its head and its end.

The rest of the command line is that of ``gateways``. The product is not touched: the writer is replaced here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from gateways import cli
from gateways.wire import ajp
from gateways.wire.ajp_packets import format_chunk_head, format_chunks

SWITCHES = ("pieces", "page")


def make_writer(pieces: bool, page: bool) -> Callable[[bytes, bytes, bytes, int], bytes]:
    """Return a writer that makes the copies that the switches name; the same bytes as the server's own."""

    def list_packets(data: bytes, largest: int) -> list[bytes]:
        packets = []
        for at in range(0, len(data), largest):
            piece = data[at : at + largest]
            packet = format_chunk_head(len(piece))
            packet += piece
            packet += b"\0"
            packets.append(packet)
        return packets

    def write(head: bytes, data: bytes, end: bytes, packet_size: int) -> bytes:
        if not pieces:
            body = format_chunks(b"", data, b"", packet_size)
            return head + body + end
        packets = list_packets(data, packet_size - 8)
        if not page:
            return b"".join((head, *packets, end))
        body = b""
        for packet in packets:
            body += packet
        return head + body + end

    return write


def main(words: list[str]) -> int:
    """Replace the writer and run the server; return its exit status, 2 for an unknown switch."""
    chosen = words[0].split(",") if words else [""]
    if unknown := [name for name in chosen if name not in SWITCHES]:
        print(f"ajp_copying: {unknown[0]!r} is none of {', '.join(SWITCHES)}", file=sys.stderr)
        return 2
    vars(ajp)["format_chunks"] = make_writer("pieces" in chosen, "page" in chosen)
    return cli.main(words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
