"""Driving connections: receive, feed, dispatch, send, time limits, reuse. Knows sockets and the clock; no pids."""
