"""Address and use of a TRex server, from a testbed file."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

from pdrgate.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class TRexConfig:
    """One TRex server in stateless mode, and which of its ports are ours.

    Raises:
        UsageError: a value is out of range; the message says which values are not.
    """

    server: str
    """Host name or address; the server was started as ``t-rex-64 -i``."""
    ports: tuple[int, ...] = (0, 1)
    """TRex port ids that are acquired; traffic of a direction is counted on all of them but its own."""
    sync_port: int = 4501
    """TCP port of requests."""
    async_port: int = 4500
    """TCP port of events."""
    client: pathlib.Path | None = None
    """Folder that holds the server's own client, package ``trex`` (v2.87 and newer); None: trex-stl-lib of PyPI."""
    interpreter: pathlib.Path | None = None
    """Python that runs the client, for a client that needs another one than ours."""
    username: str = "pdrgate"
    """Name under which the ports are acquired."""
    force: bool = False
    """Take ports that another user holds, and stop their traffic."""
    core_mask: int | None = None
    """The server's cores that send, as a bit mask per port; None: all cores of the port."""
    warm_up: float = 0.5
    """Seconds of traffic, uncounted, before the first trial of a connection; 0: none."""
    pcap: tuple[pathlib.Path, ...] = ()
    """Files, one per direction, whose packets are sent in turn instead of the trial's frames; MAC addresses are set."""

    def __post_init__(self) -> None:
        if not self.server.strip():
            raise UsageError("a TRex server has no name; give its host name or address")
        if len(self.ports) < 2 or len(set(self.ports)) != len(self.ports) or min(self.ports) < 0:
            raise UsageError(f"TRex ports {self.ports} make no path; give two or more different port ids, like 0 and 1")
        for port in (self.sync_port, self.async_port):
            if not 1 <= port <= 65535:
                raise UsageError(f"TCP port {port} of a TRex server is out of range; use 1 to 65535")
        if not self.username.strip():
            raise UsageError("TRex ports are acquired under a name; give a username")
        if self.core_mask is not None and not 1 <= self.core_mask < 1 << 64:
            raise UsageError(f"core mask {self.core_mask} selects no core; use a mask of 1 to 64 bits")
        if not 0 <= self.warm_up <= 60:
            raise UsageError(f"a warm-up of {self.warm_up} s is out of range; use 0 to 60 s")

    @property
    def address(self) -> str:
        """``host:port`` of requests, as messages name the server."""
        return f"{self.server}:{self.sync_port}"
