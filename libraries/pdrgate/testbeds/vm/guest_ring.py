"""The receive rings of a guest, read back as its kernel has them."""

from __future__ import annotations

import re

from pdrgate.guests.emulator.qemu import TX_RING
from pdrgate.hosts.host import Host
from pdrgate.values.errors import TestbedError


def check_ring(guest: Host, interface: str, packets: int) -> None:
    """Make an interface's ring hold ``packets``. Raises TestbedError when it does not.

    QEMU 10.0 offers 1024 whatever it was given; the kernel then makes a ring smaller.
    """
    if _ring_of(guest, interface) == packets:
        return
    guest.run("ethtool", "-G", interface, "rx", str(packets), "tx", str(TX_RING), check=False)
    if (ring := _ring_of(guest, interface)) != packets:
        raise TestbedError(
            f"{guest.name} was given receive rings of {packets} packets, and {interface} reads back {ring or 'none'}"
        )


def _ring_of(guest: Host, interface: str) -> int | None:
    shown = guest.run("ethtool", "-g", interface).stdout
    match = re.search(r"Current hardware settings:\s+RX:\s+(\d+)", shown)
    return int(match[1]) if match else None
