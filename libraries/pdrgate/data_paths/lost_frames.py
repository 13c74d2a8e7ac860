"""Frames that a path loses after a fixed number of others, so that equal transfers lose the same."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.hosts.host import Host

_TABLE = "netdev pdrgate_loss"


class EveryNth:
    """Of the frames that come to an interface each n-th is lost, by nftables; a `Step`.

    The first is not: a connection that begins anew for want of an answer takes a second. They are frames as on a wire,
    and not what a sender's queue has: large segments of which a part is lost.
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
