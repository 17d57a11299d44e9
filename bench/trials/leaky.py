"""A script that cleans up nothing: a file, a socket, a temporary folder, a function for the end, a thread if asked to.

What it opens it keeps where the end of the run does not reach; folders are made in LEAKY_FOLDER. Prints how many
descriptors and threads its process has, and its resident KiB.
"""

import atexit
import builtins
import os
import socket
import tempfile
import threading

kept = builtins.__dict__.setdefault("kept_by_leaky", [])
kept.append((open(__file__), socket.socket(), atexit.register(len, "")))  # noqa: SIM115 - that is its point
kept.append(tempfile.mkdtemp(dir=os.environ["LEAKY_FOLDER"]))
if os.environ["QUERY_STRING"] == "thread":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[1])
print("Content-Type: text/plain\n")
print(os.getpid(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * 4)
