"""Frames that a path loses after a fixed number of others, so that equal transfers lose the same."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.hosts.host import Host

_TABLE = "netdev pdrgate_loss"


class EveryNth:
    """Loss of each n-th frame that comes to an interface, by nftables; a `Step`.

    The first frame is not lost: a connection that begins anew for want of an answer takes a second. Frames are counted
    as on a wire. A sender's queue has large segments instead, of which a part would be lost.
    """

    def __init__(self, host: Host, interface: str, every: int) -> None:
        self._host = host
        self._command = (
            f"add table {_TABLE}; "
            f"add chain {_TABLE} coming {{ type filter hook ingress device {interface} priority 0; }}; "
            f"add rule {_TABLE} coming numgen inc mod {every} {every - 1} drop"
        )
        self._is_done = False

    def apply(self) -> None:
        self._host.run("nft", self._command)
        self._is_done = True

    def read_back(self) -> None:
        """The kernel has taken it."""

    def undo(self) -> Sequence[str]:
        if self._is_done:
            self._is_done = False
            self._host.run("nft", f"delete table {_TABLE}")
        return ()
