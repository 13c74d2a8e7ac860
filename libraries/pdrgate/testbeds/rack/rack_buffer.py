"""Receive buffer of a scenario on a rack: the receive rings of the ports, or the backlog of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pdrgate.hosts.host import Host
from pdrgate.knobs import KnobSet, rings, sysctl
from pdrgate.testbeds.sharing import BACKLOG
from pdrgate.values.errors import TestbedError


class RackBuffer:
    """The receive buffer of a SUT.

    Args:
        machine: the SUT's machine, which the backlog is of.
        router: the machine again, or the network namespace of it that the ports are in.
        knobs: what notes and puts back.
        wanted: what the testbed file asks for; auto: the rings, where both ports have one that can be set.
        keeps: whether a backlog that cannot be set is measured as it is.

    Raises:
        TestbedError: rings are wanted, and a port has none.
    """

    def __init__(
        self,
        machine: Host,
        router: Host,
        interfaces: Sequence[str],
        knobs: KnobSet,
        wanted: Literal["auto", "ring", "backlog"],
        *,
        keeps: bool,
    ) -> None:
        self._machine = machine
        self._router = router
        self._interfaces = tuple(interfaces)
        self._knobs = knobs
        lacks = [lack for one in interfaces if (lack := rings(one, {"rx": 1}).lacking(router)) is not None]
        if wanted == "ring" and lacks:
            raise TestbedError(f"sut.buffer: {lacks[0]}; write backlog or auto")
        self.kind: Literal["ring", "backlog"] = "backlog" if wanted == "backlog" or lacks else "ring"
        self.fixed = (sysctl(BACKLOG, 1).lacking(machine) or "") if keeps and self.kind == "backlog" else ""
        """Why the buffer stays as it is; empty if it is set."""

    def hold(self, packets: int) -> None:
        """Set how many packets wait before they are dropped: in each ring, or per CPU. Raises TestbedError."""
        if self.fixed:
            return
        if self.kind == "ring":
            self._hold_in_rings(packets)
            return
        backlog = sysctl(BACKLOG, packets)
        if lack := backlog.lacking(self._machine):
            raise TestbedError(
                f"a backlog of {packets} packets cannot be had: {lack}; write knobs: {{missing: skip}} to measure "
                "with the one that is there, or log in outside the namespace and name it as sut.host.namespace"
            )
        self._knobs.apply(self._machine, backlog)

    def _hold_in_rings(self, packets: int) -> None:
        for interface in self._interfaces:
            try:
                self._knobs.apply(self._router, rings(interface, {"rx": packets}))
            except TestbedError as error:
                raise TestbedError(
                    f"a receive ring of {packets} packets cannot be had: {error}; choose another size, or write "
                    "buffer: backlog in the testbed file"
                ) from error

    def describe(self) -> str:
        """Properties of the buffer that results need in common to be comparable."""
        return f"{self.kind}, not set" if self.fixed else self.kind
