"""What boots that stay up are compared by, scenario by scenario: what is counted, or what waits for no CPU.

They have the CPU that others leave, so that times of their own are judged only where a path's delay makes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pdrgate.gate.comparisons.pairs.compared_trials import ComparedBy
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import Cost, Description
from pdrgate.measurands.counted.calls import Calls
from pdrgate.measurands.counted.idle_work import IdleWork
from pdrgate.measurands.counted.load_cost import LOAD_COSTS
from pdrgate.measurands.counted.program_run import CodeReached
from pdrgate.measurands.counted.thunks import OF_THUNKS
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.measurands.rates.numbered_packets import PacketsInOrder
from pdrgate.measurands.rates.replacement import ReplacementLoss, ReplacementTime
from pdrgate.measurands.transfers.answered_requests import RequestCost, RequestLatency, RequestRate
from pdrgate.measurands.transfers.tcp import ByteCost, TcpThroughput, Transmissions
from pdrgate.measurands.transfers.tcp_growth import AdvertisedWindow, FullWindowTime, GrowthBytes, UsedWindow
from pdrgate.record.fate import INSIDE
from pdrgate.stats.pooled import Deviation

_KNOWN = 8.0
"""How well is known what pairs of equal builds deviate by, on a path that nobody has measured."""


def _at_least(about: Description, tolerance: float) -> Description:
    """A measurand of guests that share CPUs, with the least tolerance that its values resolve."""
    return replace(about, tolerance=replace(about.tolerance, least=tolerance))


def _deviating(*compared: tuple[Description, float], also_told: tuple[Description, ...] = ()) -> ComparedBy:
    """Measurands, each with what pairs of equal builds deviate by, relative."""
    return ComparedBy(
        tuple(about for about, _ in compared), also_told,
        {about.name: Deviation(deviation, _KNOWN) for about, deviation in compared},
    )  # fmt: skip


_COUNTED: Final = _deviating(
    (Cost.about, 0.004),
    also_told=(
        *(one.about for one in OF_MEMORY), Calls.about, IdleWork.about,
        *(one.about for one in (*OF_THUNKS, *LOAD_COSTS)), CodeReached.about,
    ),
)  # fmt: skip
"""Packets that come back, at saturation and at a light load."""
_PACED: Final = replace(
    # Nothing shows when a burst of packets that do not come back is done, so they are sent when they are due, and a
    # guest takes more or fewer of them at a time.
    _deviating((_at_least(Cost.about, 0.1), 0.04), (PacketsInOrder.about, 0.001)),
    also_told=_COUNTED.also_told,
)
"""Packets that do not all come back, and are sent when they are due."""
_REPLACED: Final = replace(_deviating((ReplacementTime.about, 0.02), (ReplacementLoss.about, 0.001)), replacements=True)
"""Something of the set-up is replaced while packets pass."""
_BYTES: Final = _deviating((_at_least(ByteCost.about, 0.03), 0.015))
"""Others decide how long a transfer takes, and how many ticks it has."""
_REQUESTS: Final = _deviating(
    (_at_least(RequestCost.about, 0.05), 0.02), (RequestLatency.about, 0.2), also_told=(RequestRate.about,)
)
"""Requests and their answers."""
_DELAYED: Final = _deviating(
    (UsedWindow.about, 0.025), (AdvertisedWindow.about, 0.003), (GrowthBytes.about, 0.12),
    also_told=(TcpThroughput.about, Transmissions.about, FullWindowTime.about, ByteCost.about),
)  # fmt: skip
"""Over a path with delay a sender waits for its window, and not for a CPU."""
_LOSSY: Final = _deviating(
    # The throughput of a sender that loses frames, and waits for its window else: most of it is round trips.
    (_at_least(TcpThroughput.about, 0.25), 0.05), (Transmissions.about, 0.001),
    also_told=(UsedWindow.about, ByteCost.about),
)  # fmt: skip
"""Over a path that loses frames: how fast senders recover, and what is sent again."""


def compared_by_counts(scenario: Scenario) -> ComparedBy:
    """What a scenario's boots are compared by where they stay up."""
    if (streams := scenario.streams) is not None:
        return (
            _REQUESTS if streams.request else _LOSSY if streams.loss else _DELAYED if streams.delay else _BYTES
        )  # fmt: skip
    if scenario.replaces:
        return _REPLACED
    return _PACED if scenario.counts in INSIDE else _COUNTED
