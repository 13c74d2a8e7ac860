"""What living SUTs are counted by: packets of an open loop, or what a closed one moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands.measurand import Described
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement


class LivingCount(Protocol):
    """What each SUT of a scenario is asked, and what its answers come to."""

    @property
    def first(self) -> type[Described]:
        """The measurand that every boot must have a value of."""

    @property
    def frames(self) -> Mapping[Side, FramesSeen]:
        """What was seen of packets, by build; nothing where none is looked at."""

    def count(self, sut: PreparedSut) -> None:
        """Measure all that is asked of a boot; it may be done beside others. Raises TestbedError."""

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        """SUTs among these that must be measured once more by `count`, now that all have been counted."""

    def values(self, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Values of a boot by measurand. `first` is not among them where the boot has no value of it."""

    def why_missing(self, trials: Sequence[Trial]) -> str:
        """Why a boot has no value of the measurand `first`, in a clause."""

    def unlike(self, suts: Sequence[PreparedSut]) -> Judgement | None:
        """What the packets that these SUTs have seen say of the builds; None where they are as they must be."""
