"""Steering of packet work to CPUs of a rack's SUT: its ports interrupt them, or the kernel hands packets over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pdrgate.hosts.host import Host
from pdrgate.knobs import InterruptAffinity, KnobSet, device_interrupts, each, in_turn, rps, rps_off
from pdrgate.values.errors import TestbedError


class RackSteering:
    """The steering of a SUT's packet work.

    Args:
        router: the host that the ports are of.
        knobs: what notes and puts back.
        wanted: what the testbed file asks for; auto: interrupts, where both ports have them.

    Raises:
        TestbedError: interrupts are wanted, and a port has none of its own.
    """

    def __init__(
        self, router: Host, interfaces: Sequence[str], knobs: KnobSet, wanted: Literal["auto", "irq", "rps"]
    ) -> None:
        self._router = router
        self._interfaces = tuple(interfaces)
        self._knobs = knobs
        without = [one for one in interfaces if not device_interrupts(router, one)]
        if wanted == "irq" and without:
            raise TestbedError(
                f"sut.steering: {without[0]} on {router.name} has no interrupts of its own; write rps or auto"
            )
        self.kind: Literal["irq", "rps"] = "rps" if wanted == "rps" or without else "irq"
        self.cpus: tuple[int, ...] = ()
        """The SUT's CPUs that forward as things are."""

    def steer(self, cpus: tuple[int, ...], share: bool = False) -> None:
        """Bring packet work to CPUs: every queue to one of them, or, with ``share``, to all as the kernel likes."""
        self.cpus = cpus
        for number, interface in enumerate(self._interfaces):
            if self.kind == "rps":
                self._knobs.apply(self._router, rps(interface, each(cpus)))
                continue
            # The second port begins with another CPU than the first: ports may have one queue each.
            begin = number % len(cpus)
            self._knobs.apply(self._router, rps_off(interface), missing="skip")
            self._knobs.apply(
                self._router,
                InterruptAffinity(interface, each(cpus) if share else in_turn(cpus[begin:] + cpus[:begin])),
            )
