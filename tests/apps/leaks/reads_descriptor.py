#!/usr/bin/env python3
"""A script whose child process reads the request's body from standard input."""

import subprocess

print("Content-Type: text/plain\n", flush=True)
print(subprocess.run(["cat"], capture_output=True, check=True).stdout.decode())
