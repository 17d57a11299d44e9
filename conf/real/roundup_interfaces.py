"""A tracker's interfaces.py, by which roundup.cgi's requests have the headers that Roundup asks for since 2.2."""

from roundup.cgi import client
from roundup.cgi.wsgi_handler import Headers


class Client(client.Client):
    def __init__(self, instance, request, env, *rest, **named):
        if not hasattr(request, "headers"):
            request.headers = Headers(env)
        super().__init__(instance, request, env, *rest, **named)
