"""A cloud's limits: beyond an instance's allowance its hypervisor drops packets, or holds them back."""

from __future__ import annotations

from pdrgate.observers.driver_statistics import of_the_cloud
from pdrgate.observers.gains import port_name
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.record.cause import Cause, CauseKind

_PART = 1e-3
"""Share of a port's packets below which a drop by the cloud says nothing about a kernel."""


def withheld(gained: Reading) -> tuple[Cause, ...]:
    """A cause for each port of which a trial had more than the cloud allows.

    Args:
        gained: what counters gained in the trial.
    """
    return tuple(
        cause
        for place in sorted({counter.place for counter in gained if counter.place.kind == "driver"})
        if (cause := _of_port(place, gained)) is not None
    )


def _of_port(driver: Place, gained: Reading) -> Cause | None:
    packets_by_counter = {
        counter.name: packets
        for counter, packets in gained.items()
        if counter.place == driver and of_the_cloud(counter.name)
    }
    if not packets_by_counter:
        return None
    name, packets = max(packets_by_counter.items(), key=lambda one: one[1])
    port = Place("interface", driver.name, driver.node)
    passed = max(gained.get(Counter(port, way), 0) for way in ("rx_packets", "tx_packets"))
    part = packets / (packets + passed)
    if part < _PART:
        return None
    words = f"the cloud dropped or held back {packets} packets beyond its allowance at {port_name(port)} ({name})"
    return Cause(CauseKind.ALLOWANCE, part, words)
