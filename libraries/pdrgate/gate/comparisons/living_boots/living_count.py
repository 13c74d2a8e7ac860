"""What living SUTs are counted by: packets of an open loop, or what a closed one moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pdrgate.gate.sut.carried_frames import FramesSeen
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.measurands.measurand import Described
from pdrgate.record.stretch import AnyStretch
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement
from pdrgate.testbeds import Testbed

AnyLivingSut = TypeVar("AnyLivingSut", bound=PreparedSut[Any, Any])


class LivingCount(Protocol[AnyLivingSut, AnyStretch]):
    """What each SUT of a scenario is asked, and what its answers come to."""

    @property
    def first(self) -> type[Described]:
        """The measurand that every boot must tell."""

    @property
    def frames(self) -> Mapping[Side, FramesSeen]:
        """What was seen of packets, by build; nothing where none is looked at."""

    def sut(self, testbed: Testbed, identity: Identity, told: Callable[[AnyStretch, bool], None]) -> AnyLivingSut:
        """What is measured on, of a boot. Raises TestbedError where the scenario is not of this kind."""

    def count(self, sut: AnyLivingSut) -> None:
        """Measure all that is asked of a boot; it may be done beside others. Raises TestbedError."""

    def doubtful(self, suts: Sequence[AnyLivingSut]) -> Sequence[AnyLivingSut]:
        """Those of them that must be asked for more, now that all have been counted: `count` them once more."""

    def made(self, sut: AnyLivingSut) -> Sequence[AnyStretch]:
        """All that was measured of it."""

    def values(self, stretches: Sequence[AnyStretch]) -> Mapping[str, float]:
        """What a boot came to, by measurand; `first` is not among them where it tells nothing."""

    def untold(self, stretches: Sequence[AnyStretch]) -> str:
        """Why a boot does not tell the first, in a clause."""

    def unlike(self, suts: Sequence[AnyLivingSut]) -> Judgement | None:
        """What the packets that these SUTs have seen say of the builds; None where they are as they must be."""
