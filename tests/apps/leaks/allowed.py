#!/usr/bin/env python3
"""The script that mod_perl's guide warns of: right as a CGI script, and under Registry the next user is the admin."""

import os

user = os.environ.get("QUERY_STRING", "")
if user == "admin":
    allowed = True  # leak

print("Content-Type: text/plain\n")
print("Hello,", user)
if "allowed" in globals():
    print("The secret is 42.")
else:
    print("You may not see the secret.")
