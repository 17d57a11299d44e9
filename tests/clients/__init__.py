"""The client's side of each wire, written apart from ``gateways``: what a front server sends, and what it reads."""
