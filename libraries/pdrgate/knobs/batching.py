"""Batching of packets on receipt, which makes few large pieces of work of many small ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pdrgate.knobs.file_knob import device_attribute
from pdrgate.knobs.knob import Knob
from pdrgate.knobs.offloads import offloads


def batching(device: str, gro: Literal["", "on", "off"] = "", wait: int = 0) -> Iterator[Knob]:
    """The knobs of batching at a port.

    Args:
        gro: whether packets of one flow are put together; empty: as it is.
        wait: microseconds for which interrupts stay off after a poll, as `ethtool -C rx-usecs` does it for network
            cards and this for every driver with NAPI; 0: as it is.
    """
    if gro:
        yield offloads(device, {"gro": gro == "on"})
    if wait:
        yield device_attribute(device, "napi_defer_hard_irqs", 1)
        yield device_attribute(device, "gro_flush_timeout", wait * 1000)
