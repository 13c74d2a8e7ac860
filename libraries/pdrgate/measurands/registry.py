"""All measurands: what builds are compared by, and what is known of each by its name.

A measurand is a class in a file of its own and stands here, in the order in which results show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pdrgate.measurands.counted.calls import Calls
from pdrgate.measurands.counted.cost import Cost
from pdrgate.measurands.counted.cycles import Cycles
from pdrgate.measurands.counted.idle_work import IdleWork
from pdrgate.measurands.counted.load_cost import MapMemory, ProgramSize, VerifiedInstructions, VerifierStates
from pdrgate.measurands.counted.program_run import CodeReached
from pdrgate.measurands.counted.thunks import OF_THUNKS
from pdrgate.measurands.description import Description, Rule, TolerancesAsked
from pdrgate.measurands.measurand import BuildSeen, Measurand, Setting
from pdrgate.measurands.memory.scaling import Scaling
from pdrgate.measurands.memory.shared_lines import OF_SEVERAL_CPUS
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.measurands.rates.latency import MedianLatency, TailLatency
from pdrgate.measurands.rates.numbered_packets import PacketsInOrder, PacketsNever, PacketsTwice
from pdrgate.measurands.rates.overload import LivelockThreshold, OverloadThroughput
from pdrgate.measurands.rates.pdr import PartialDropRate
from pdrgate.measurands.rates.replacement import ReplacementLoss, ReplacementTime
from pdrgate.measurands.rates.saturation import RECEIVE_RATE, SaturationThroughput
from pdrgate.measurands.rates.starvation import LeastDelivered
from pdrgate.measurands.transfers.answered_requests import RequestCost, RequestLatency, RequestRate
from pdrgate.measurands.transfers.tcp import (
    ByteCost,
    LoadedRoundTrip,
    TcpThroughput,
    TransferSetting,
    Transmissions,
)
from pdrgate.measurands.transfers.tcp_growth import AdvertisedWindow, FullWindowTime, GrowthBytes, UsedWindow
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.results.model import Better, ChangeResult

OF_TRIALS: Final[tuple[type[Measurand], ...]] = (
    PartialDropRate, SaturationThroughput, LeastDelivered, OverloadThroughput, LivelockThreshold, MedianLatency,
    TailLatency, Cost,
    *OF_MEMORY, *OF_SEVERAL_CPUS, Scaling,
    Calls, *OF_THUNKS, IdleWork, Cycles, VerifiedInstructions, VerifierStates, ProgramSize, MapMemory, CodeReached,
    ReplacementTime, ReplacementLoss, PacketsInOrder, PacketsTwice, PacketsNever,
)  # fmt: skip
"""Measurands of trials of an open loop, the one that a run is about first."""
OF_TRANSFERS: Final[tuple[type[Measurand], ...]] = (
    TcpThroughput, LoadedRoundTrip, Transmissions, UsedWindow, AdvertisedWindow, GrowthBytes, FullWindowTime, ByteCost,
    RequestRate, RequestLatency, RequestCost,
)  # fmt: skip
"""Measurands of transfers of a closed loop, the one that a run is about first."""

DESCRIPTIONS: Final[tuple[Description, ...]] = (
    *(one.about for one in OF_TRIALS), *(one.about for one in OF_TRANSFERS), RECEIVE_RATE,
)  # fmt: skip
_BY_NAME: Final = {one.name: one for one in DESCRIPTIONS}
_UNITS: Final = {one.unit: one.quantity for one in DESCRIPTIONS}


def of_setting(setting: Setting) -> tuple[Measurand, ...]:
    """The measurands of trials that a setting has."""
    return tuple(found for kind in OF_TRIALS if (found := kind.of(setting)) is not None)


def of_transfers(setting: TransferSetting) -> tuple[Measurand, ...]:
    """The measurands of transfers that a setting has."""
    return tuple(found for kind in OF_TRANSFERS if (found := kind.of(setting)) is not None)


def compared_of(kinds: Iterable[type[Measurand]]) -> tuple[Description, ...]:
    """Descriptions of the measurands among ``kinds`` that builds are compared by."""
    return tuple(one.about for one in kinds if one.about.rule is Rule.PAIRS)


def told_of(kinds: Iterable[type[Measurand]]) -> tuple[Description, ...]:
    """Descriptions of the measurands among ``kinds`` that no test of pairs compares."""
    return tuple(one.about for one in kinds if one.about.rule is not Rule.PAIRS)


def changes_by_rule(baseline: BuildSeen, candidate: BuildSeen, asked: TolerancesAsked) -> tuple[ChangeResult, ...]:
    """The changes that measurands find by rules of their own, in the order of the registry; see `Rule`."""
    kinds: tuple[type[Measurand], ...] = (*OF_TRIALS, *OF_TRANSFERS)
    found = (kind.changed(baseline, candidate, asked) for kind in kinds)
    return tuple(change for change in found if change is not None)


def described(name: str, unit: str = "", better: Better = "higher") -> Description:
    """What is known of a measurand by its name.

    Of one that this version does not know, such as one of a newer version's result, unit and direction are as the
    result has them.
    """
    known = _BY_NAME.get(name)
    return known or Description(name, unit_of(unit), better, "")


def unit_of(name: str) -> Unit:
    """The unit with all its spellings, by one of its names in results; an unknown one is spelled as it is called."""
    return _UNITS.get(name) or Unit(name)


def lower_is_better(kinds: Sequence[Description] = DESCRIPTIONS) -> frozenset[str]:
    """The names of measurands that are better when they are less."""
    return frozenset(one.name for one in kinds if one.better == "lower")
