"""Which application answers a path: prefixes, longest first, and the SCRIPT_NAME / PATH_INFO split.

Pure: knows no file, no socket and no application.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gateways.core.interfaces import ExecutionModel
    from gateways.core.request import Request


class Mount:
    """A path prefix and the execution model that serves what is below it.

    ``prefix``: ``""`` for everything, or ``"/app"`` (no slash at its end; one given is dropped).
    ``variables``: meta-variables that every request of this mount gets; they win over the request's own.
    """

    __slots__ = ("model", "prefix", "variables")

    def __init__(self, prefix: str, model: ExecutionModel, variables: dict[str, str] | None = None) -> None:
        self.prefix = prefix.rstrip("/")
        self.model = model
        self.variables = variables or {}


class MountTable:
    """The mounts of a pool. ``take`` finds the one a request belongs to and marks the request as its own."""

    __slots__ = ("_ordered", "mounts")

    def __init__(self, mounts: list[Mount]) -> None:
        self.mounts = mounts
        ordered = sorted(mounts, key=lambda mount: -len(mount.prefix))
        self._ordered = [(mount.prefix, mount.prefix + "/", mount) for mount in ordered]

    def take(self, request: Request) -> Mount | None:
        """Return the mount for ``request.path`` and set its ``mount``, ``script_name`` and ``path_info``.

        ``/app`` gives (``/app``, ``""``), ``/app/x`` gives (``/app``, ``/x``), ``/apple`` is not below ``/app``.
        ``None`` when no mount takes it.
        """
        path = request.path
        for prefix, below, mount in self._ordered:
            if not prefix or path.startswith(below) or path == prefix:
                request.mount = mount
                if prefix:
                    request.script_name += prefix
                    request.path_info = path[len(prefix) :]
                return mount
        return None
