#!/usr/bin/env python3
"""A script that changes the decimal context for some requests: the others are rounded by it."""

import decimal
import os

if os.environ.get("QUERY_STRING") == "short":
    decimal.getcontext().prec = 4  # leak

print("Content-Type: text/plain\n")
print(decimal.Decimal(1) / 7)
