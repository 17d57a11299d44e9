#!/usr/bin/env python3
"""A script that changes much of its process, all of which the models of scripts put back."""

import atexit
import locale
import os
import signal
import sys
import warnings

os.umask(0)
os.chdir("/")
os.environ["SITE_USER"] = os.environ.get("QUERY_STRING", "")
sys.path.insert(0, "/usr/share/site")
sys.argv.append("more")
sys.setrecursionlimit(5000)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 1000)
locale.setlocale(locale.LC_ALL, "C")
warnings.simplefilter("ignore")
sys.excepthook = print
for name in ("first", "second"):
    print(f"X-{name}: yes")
print("Content-Type: text/plain\n")
print(f"pid {os.getpid()}")
atexit.register(print, "the end")
