"""A plain CGI script: it defines no application."""

import os

print("Content-Type: text/plain")
print()
print("script", os.environ["PATH_INFO"], os.environ.get("GATEWAYS_MODE", "(none)"))
