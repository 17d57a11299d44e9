"""Wires: bytes to requests, responses to bytes. No sockets, clock, files, log or environment."""
