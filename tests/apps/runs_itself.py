"""An application whose last line runs it, whichever way it was started. Its pages tell what it sees."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def application(environ, start_response):
    told = {
        "pid": os.getpid(),
        "path": environ["PATH_INFO"],
        "mode": environ["GATEWAYS_MODE"],
        "arguments": sys.argv[1:],
        "body": environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode("latin-1"),
        "activation": sorted(name for name in os.environ if name.startswith("LISTEN_")),
        "descriptors": [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)],
    }
    page = json.dumps(told).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(page)))])
    return [page]


def handler(request):
    request.set_field("Content-Type", "application/json")
    request.write(b'{"mode": "handler"}')


import gateways  # noqa: E402

what = {"handler": handler} if os.environ.get("RUN_HANDLER") else {"application": application}
gateways.run(**what, bind="127.0.0.1:0", start_servers=int(os.environ.get("RUN_WORKERS", "0")))
