#!/usr/bin/env python3
"""A script that is right by itself, with a module that remembers."""

import os

import library

print("Content-Type: text/plain\n")
print(library.greet(os.environ.get("QUERY_STRING", "")))
