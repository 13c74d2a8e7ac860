"""The generator's side of a guest: a network namespace with a TAP for each port of the guest."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

from pdrgate.data_paths.catalogue import Port, Station
from pdrgate.data_paths.contract import directions
from pdrgate.guests.emulator.qemu import NetworkPort
from pdrgate.guests.emulator.taps import take_first_queues
from pdrgate.observers.counters import parse_net_dev
from pdrgate.observers.reading import Reading
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.own_namespace import OwnNamespace
from pdrgate.traffic.frames import Path
from pdrgate.values.errors import TestbedError

TAPS = ("t0", "t1")
_MOST_READ = 1 << 12
"""Bytes, which a few lines of devices have."""
_TAP_MACS = ("02:70:64:72:01:00", "02:70:64:72:01:03")
GUEST_MACS = ("02:70:64:72:01:01", "02:70:64:72:01:02")


class TapNamespace:
    """The namespace from `make` to `close`; QEMU makes the TAPs in it when the guest starts.

    Args:
        journal: where the namespace is noted for the case that this process is killed.
    """

    def __init__(self, journal: Journal) -> None:
        self._own = OwnNamespace(f"{secrets.token_hex(3)}-tg", journal)
        self.name = self._own.name
        self._several = False
        """Whether the TAPs have several queues."""
        self._first = 1
        """Number of queues that the guest receives by."""
        self._devices = -1
        """Descriptor of the file that shows what the TAPs have carried."""

    def make(self) -> None:
        """Make the namespace. Raises TestbedError."""
        self._own.make()

    def network_ports(self, ring: int, vcpus: int, gathers: float = 0.0, *, spread: bool = False) -> list[NetworkPort]:
        """The TAPs as QEMU has them, each before a receive ring of the guest's; ``gathers`` as of `NetworkPort`.

        One CPU gets a pair of queues more: XDP sends by one of its own, and without it takes a lock for each batch. Of
        several CPUs, a kernel would receive on both.

        Args:
            spread: whether each CPU is to receive, by a queue of its own; there, too, XDP has one more for each.
        """
        self._several = spread or vcpus == 1
        self._first = vcpus if spread else 1
        queues = 2 * self._first if self._several else 1
        return [NetworkPort(tap, mac, ring, queues, gathers=gathers) for tap, mac in zip(TAPS, GUEST_MACS, strict=True)]

    def guest_ports(self, interfaces: Sequence[str]) -> list[Port]:
        """The guest's ports by the names that its kernel gave them, in the order of the TAPs."""
        return [Port(*end) for end in zip(interfaces, GUEST_MACS, _TAP_MACS, strict=True)]

    def station(self, cpu: int) -> Station:
        """The first TAP with this machine's network stack, whose programs use ``cpu``."""
        return Station(self._own.host, Port(TAPS[0], _TAP_MACS[0], GUEST_MACS[0]), cpu)

    def up(self) -> None:
        """Give the TAPs their addresses, and set them up."""
        for tap, mac in zip(TAPS, _TAP_MACS, strict=True):
            self._own.host.run("ip", "link", "set", tap, "address", mac, "up")

    def take_first_queues(self, count: int = 0) -> None:
        """Have each TAP that has several queues take its first ones for all that the guest gets. Raises TestbedError.

        QEMU takes that back whenever the guest's kernel asks for other queues, as it does where XDP comes and goes.

        Args:
            count: of them; 0: those that the guest receives by.
        """
        if self._several:
            for tap in TAPS:
                take_first_queues(tap, self.name, count or self._first)

    def hold(self, packets: int) -> None:
        """Set how many packets wait in the queue of each TAP."""
        for tap in TAPS:
            self._own.host.run("ip", "link", "set", tap, "txqueuelen", str(packets))
            length = self._own.host.run_json("ip", "-j", "link", "show", tap)[0].get("txqlen")
            if length != packets:
                raise TestbedError(f"set the queue of {tap} to {packets} packets, but it reads back {length}")

    def counters(self) -> Reading:
        """The counters of the TAPs, and of this machine's CPUs."""
        return self._own.counters.begin(TAPS).result()

    def paths(self, family: int) -> tuple[Path, Path]:
        """The two directions of test traffic of an IP version, for the generator."""
        first, last = self.guest_ports(TAPS)
        return directions(family, TAPS, first, last)

    def taken(self) -> int:
        """Packets that QEMU has taken from the TAPs so far: read at once, while a trial is under way."""
        if self._devices < 0:
            self._devices = self._own.counters.open_file("/proc/thread-self/net/dev")
        found = parse_net_dev(os.pread(self._devices, _MOST_READ, 0).decode())
        return sum(found[tap]["tx_packets"] for tap in TAPS)

    def close(self) -> None:
        """Remove the namespace. Calling it twice is harmless. Raises TestbedError when it stays."""
        if self._devices >= 0:
            os.close(self._devices)
            self._devices = -1
        self._own.close()
