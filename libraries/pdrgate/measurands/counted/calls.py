"""Calls of a packet: how often the SUT's kernel enters a function for each packet that it forwards, at saturation.

They are counted where each block of the kernel's code is, in emulated guests. A change of the path adds calls or takes
them away, however little each costs. On most functions of the path they repeat from boot to boot to a hundredth. How
the compiler inlines moves them as well, so they are report-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pdrgate.measurands.counted.cost import AtSaturation, idle_of, on_path, saturated
from pdrgate.measurands.description import Description, Parts, Rule
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.record.trial import Trial


class Calls(AtSaturation):
    """Calls of functions of the kernel per forwarded packet: the median of the trials at saturation."""

    about = Description(
        "calls", Unit("calls/packet", metric="calls_per_packet", prefixed=False), "lower",
        "calls of functions of the SUT's kernel for a packet, at saturation", rule=Rule.REPORT_ONLY,
        parts=Parts(
            change=lambda one: (one.calls_after or 0.0) - (one.calls_before or 0.0), sure=lambda one: one.calls_changed
        ),
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        idle = idle_of(trials)
        counts = [sum(calls for _, calls in on_path(one, idle).values()) for one in saturated(trials, self.loss_ratio)]
        return median(counts) if any(counts) else None
