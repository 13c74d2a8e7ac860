"""Cycles of a packet: what it keeps the SUT's CPUs busy for in the kernel, counted by the processor, at saturation.

Instructions do not show caches, branches and locks that others hold. Cycles do. They depend on the machine and on what
else it does, so they are report-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from pdrgate.measurands.counted.cost import saturated
from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.measurand import Setting
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.self_described import AsksNothing
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.trial import Trial


@dataclass(frozen=True, slots=True)
class Cycles(AsksNothing):
    """Cycles of the kernel per forwarded packet: the median of the trials at saturation.

    What the kernel does by itself is in it: next to nothing beside packets that have the CPU.
    """

    loss_ratio: float
    """What a trial must lose more than, to be one of saturation."""

    about = Description(
        "cycles", Unit("cycles/packet", metric="cycles_per_packet", prefixed=False), "lower",
        "cycles that the SUT's CPUs spend in the kernel for a packet, at saturation", rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self:
        return cls(setting.loss_ratio)

    def value(self, trials: Sequence[Trial]) -> float | None:
        told = [
            (gained_by_places(one, "cpu", "kernel_cycles"), one.forwarded) for one in saturated(trials, self.loss_ratio)
        ]
        each = [cycles / packets for cycles, packets in told if cycles]
        return median(each) if each else None
