"""Process models: pids, signals, shared memory, listening sockets. Knows no requests, bytes or applications."""
