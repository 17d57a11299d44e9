"""One unmodified application, served through every gateway the web has had.

Importing this package has no effect and costs next to nothing; ``gateways.server`` ties the parts together.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__version__ = "0.1.0"


def run(
    application: "Callable[..., Any] | None" = None,
    *,
    handler: "Callable[[Any], Any] | None" = None,
    bind: str = "127.0.0.1:8000",
    start_servers: int = 0,
) -> None:
    """Serve a WSGI ``application``, or a native ``handler``, in whichever way this process was started; then exit.

    The last line of an application's file. As a CGI program it answers the one request; with a listening socket as
    descriptor 0, as FastCGI process managers give one, it speaks FastCGI there; with activated sockets (LISTEN_FDS) it
    serves those; otherwise HTTP on ``bind``. ``start_servers``: workers under a supervisor, 0 for this process alone.

    Does nothing when the file is only loaded, by a server of this package, for what it defines.
    """
    import sys

    from gateways.cli import run_object

    run_object(application, handler, bind, start_servers, sys._getframe(1).f_globals.get("__name__"))
