"""Cycles of a packet: what it keeps the SUT's CPUs busy for in the kernel, counted by the processor, at saturation.

Instructions do not show caches, branches and locks that others hold. Cycles do. They depend on the machine and on what
else it does, so they are report-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pdrgate.measurands.counted.cost import AtSaturation, saturated
from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.trial import Trial


class Cycles(AtSaturation):
    """Cycles of the kernel per forwarded packet: the median of the trials at saturation.

    What the kernel does by itself is in it: next to nothing beside packets that have the CPU.
    """

    about = Description(
        "cycles", Unit("cycles/packet", metric="cycles_per_packet", prefixed=False), "lower",
        "cycles that the SUT's CPUs spend in the kernel for a packet, at saturation", rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        told = [
            (gained_by_places(one, "cpu", "kernel_cycles"), one.forwarded) for one in saturated(trials, self.loss_ratio)
        ]
        each = [cycles / packets for cycles, packets in told if cycles]
        return median(each) if each else None
