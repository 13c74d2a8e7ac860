"""What each SUT of a scenario that stays up is asked, and what its answers come to: packets, replacements, bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pdrgate.gate.comparisons.living_boots.living_suts import AT_ONCE, LivingSuts
from pdrgate.gate.comparisons.living_boots.path_codes import FIRST
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, ComparisonTask
from pdrgate.gate.scenarios.replicate_samples import Replicate, measure_in_turn
from pdrgate.gate.sut.carried_frames import FramesSeen, judged_with
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.measurands import Ask, Cost, Measurand, ReplicateStep, TransferSetting, of_transfers
from pdrgate.measurands.counted.calls import Calls
from pdrgate.measurands.counted.cost import complete
from pdrgate.measurands.counted.idle_work import IdleWork
from pdrgate.measurands.counted.load_cost import LOAD_COSTS
from pdrgate.measurands.counted.program_run import CodeReached
from pdrgate.measurands.counted.thunks import OF_THUNKS
from pdrgate.measurands.measurand import values_of
from pdrgate.measurands.memory.memory_doubt import memory_may_have_changed
from pdrgate.measurands.memory.memory_trials import MemoryTrials, memory_of
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.measurands.rates.numbered_packets import PacketsInOrder, PacketsNever, PacketsTwice
from pdrgate.measurands.rates.replacement import ReplacementLoss, Replacements, ReplacementTime
from pdrgate.measurands.transfers.tcp import ByteCost
from pdrgate.record.fate import INSIDE
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import MemorySeen
from pdrgate.record.trial import Trial
from pdrgate.results.model import Side
from pdrgate.results.verdict import Judgement
from pdrgate.values.units import Rate

_MAY_DIFFER = 0.005
"""Part of a packet's cost from which on a change is looked at: counts of equal builds repeat to 0.3 %."""
_MEMORY_TRIALS, _MEMORY_PACKETS = 1, 4 * 192
"""Memory trials of a living boot, and packets of each: four bursts, of which the first fills the model."""
_ASKED = Replacements(load=500.0, duration=0.5, count=2)
"""A load that a guest takes besides."""
_AT_ONCE, _OF_REQUESTS, _OVER_DELAY = (4, 0.5), (2, 1.0), (2, 2.0)
"""Transfers, and seconds of each: over a path with delay a window takes some round trips to grow. Else the more there
are, the likelier one of them has the CPU; requests are as many, however long they take."""


class LivingCount(ABC):
    """What each SUT of a scenario is asked, and what its answers come to."""

    first: type[Measurand]
    """The measurand that every boot must have a value of."""

    def __init__(self, task: ComparisonTask) -> None:
        self.task = task
        self.frames: dict[Side, FramesSeen] = {}
        """What was seen of packets, by build; nothing where none is looked at."""

    @abstractmethod
    def count(self, sut: PreparedSut) -> None:
        """Measure all that is asked of a boot; it may be done beside others. Raises TestbedError."""

    @property
    @abstractmethod
    def measurands(self) -> Sequence[Measurand]:
        """The measurands that a boot has values of."""

    @abstractmethod
    def why_missing(self, trials: Sequence[Trial]) -> str:
        """Why a boot has no value of the measurand `first`, in a clause."""

    def values(self, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Values of a boot by measurand, of those that it has."""
        return values_of(self.measurands, trials)

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        """SUTs among these that must be measured once more by `count`, now that all have been counted."""
        return ()

    def unlike(self, suts: Sequence[PreparedSut]) -> Judgement | None:
        """What the packets that these SUTs have seen say of the builds; None where they are as they must be."""
        return None


class CountedPackets(LivingCount):
    """Packets of an open loop, at an overload and at a light load."""

    first: type[Measurand] = Cost

    def __init__(self, task: ComparisonTask, suts: LivingSuts) -> None:
        super().__init__(task)
        self.frames = {side: FramesSeen() for side in suts.builds}
        self._suts = suts
        self._in_doubt: set[str] = set()
        """Boots that are asked what they do with memory though they are not of the first pair."""
        self._memory: dict[Side, MemorySeen] = {}
        """What the first pair does with memory."""
        self._followed: set[str] = set()
        """Boots whose calls are followed in a trial, because a packet's cost may have changed."""

    def count(self, sut: PreparedSut) -> None:
        """Measure all trials of a boot. What its kernel does by itself is taken from its first scenario."""
        known = self._suts.resting.get(sut.boot_id)
        if known is not None and not any(one.occasion.phase == Phase.IDLE for one in sut.trials):
            sut.take(known)
        while (ask := next(self._asks(sut), None)) is not None:
            trial = sut.measure(ask)
            if trial.occasion.phase == Phase.IDLE:
                self._suts.resting[sut.boot_id] = trial

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        """SUTs of the first pair, to follow calls, where a packet's cost may have changed; and all others, where what
        the first pair does with memory leaves doubt that it is the same."""
        first = [sut for sut in suts if sut.identity.pair == FIRST and sut.follows_calls]
        costs = [cost for sut in first if (cost := self._cost(sut).value(sut.trials))]
        may_differ = len(costs) == len(SIDES) and max(costs) >= (1.0 + _MAY_DIFFER) * min(costs)
        followed = first if may_differ else []
        self._followed.update(sut.boot_id for sut in followed)
        return [*followed, *self._with_memory_in_doubt(suts)]

    def _with_memory_in_doubt(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        for sut in suts:
            if sut.identity.pair == FIRST and sut.identity.side and (seen := memory_of(sut.trials)):
                self._memory[sut.identity.side] = seen[-1]
        before, after = (self._memory.get(side) for side in SIDES)
        if before is None or after is None or not memory_may_have_changed(before, after):
            return ()
        others = [sut for sut in suts if FIRST < sut.identity.pair <= AT_ONCE]
        self._in_doubt.update(sut.boot_id for sut in others)
        return others

    @property
    def measurands(self) -> tuple[Measurand, ...]:
        loads: tuple[Measurand, ...] = tuple(kind() for kind in LOAD_COSTS)
        memory: tuple[Measurand, ...] = tuple(kind() for kind in OF_MEMORY)
        loss_ratio = self.task.scenario.loss_ratio
        thunks: tuple[Measurand, ...] = tuple(kind(loss_ratio) for kind in OF_THUNKS)
        return (
            self._cost(), Calls(loss_ratio), IdleWork(), PacketsInOrder(), PacketsTwice(), PacketsNever(),
            *thunks, *memory, *loads, CodeReached(),
        )  # fmt: skip

    def why_missing(self, trials: Sequence[Trial]) -> str:
        most = Rate(max((trial.intended_load for trial in trials), default=0.0))
        return f"it forwards nothing of {most}, or all of it"

    def unlike(self, suts: Sequence[PreparedSut]) -> Judgement | None:
        seen = ((sut.identity.side or "candidate", sut) for sut in suts)
        return judged_with(self.frames, seen, self.task.session.observer.said)

    def _asks(self, sut: PreparedSut) -> Iterator[Ask]:
        steps: list[ReplicateStep] = [OverloadStep(self.task.scenario.loss_ratio, self._overload), self._cost(sut)]
        wanted = sut.identity.pair == FIRST or sut.boot_id in self._in_doubt
        if wanted and sut.sees_memory and self.task.scenario.counts not in INSIDE:
            steps.append(MemoryTrials(_MEMORY_PACKETS, _MEMORY_TRIALS))
        return (ask for step in steps if (ask := step.next(sut.trials)) is not None)

    @property
    def _overload(self) -> Overload:
        return PACED if self.task.scenario.counts in INSIDE else CARRIED

    def _cost(self, sut: PreparedSut | None = None) -> Cost:
        return Cost(
            LIGHT_LOAD, LIGHT_FOR, self.task.scenario.loss_ratio,
            paths=sut is not None and sut.boot_id in self._followed,
        )  # fmt: skip


LIGHT_LOAD, LIGHT_FOR = 4e3, 0.1
"""Packets/s that come one by one at any guest that runs at all, and seconds."""
_TRIALS = 3
"""Trials at an overload, of which the median counts.

Now and then a kernel tidies up in one trial, or comes upon a list that is full.
"""
_MOST = 6
"""Trials at one load, where some were no overload, or lost packets of a burst."""


@dataclass(frozen=True, slots=True)
class Overload:
    """Loads that emulated guests do not take, on a machine of today and of some years on, and for how long."""

    loads: tuple[float, ...]
    """Packets/s; the first that is too much counts."""
    seconds: float
    """Seconds of a trial."""


CARRIED = Overload((250e3, 500e3, 1e6), 2304 / 250e3)
"""For packets that come back, or end at programs: twelve bursts are sent, where packets come in bursts. Else a socket's
buffer of 2 MiB has room for all of them: Linux 6.12 takes 1280 bytes of 4 MiB for each."""
PACED = Overload((500e3, 1e6), 6144 / 500e3)
"""For packets that do not come back, and are sent when they are due: half as many again as a ring of 4096 has room for.
Of as many as it holds, it is chance whether any is refused, and a boot that loses none is asked at a higher load."""


@dataclass(frozen=True, slots=True)
class OverloadStep:
    """Trials at a load that is too much; a higher one where none of three lost anything."""

    loss_ratio: float
    """What a trial must lose more than."""
    overload: Overload = CARRIED

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        """The trial that is wanted next; None where there are enough, or no load is too much."""
        for load in self.overload.loads:
            made = [one for one in trials if one.occasion.phase == Phase.SATURATION and one.intended_load == load]
            lossy = [one for one in made if one.steady_loss_ratio > self.loss_ratio]
            if len(made) >= _TRIALS and not lossy:
                continue
            enough = sum(map(complete, lossy)) >= _TRIALS or len(made) >= _MOST
            return None if enough else Ask(load, self.overload.seconds, Phase.SATURATION)
        return None


class CountedReplacements(CountedPackets):
    """Trials in which a command replaces what the SUT was set up with."""

    first = ReplacementTime

    def count(self, sut: PreparedSut) -> None:
        while (ask := _ASKED.next(sut.trials)) is not None:
            sut.measure(ask)

    @property
    def measurands(self) -> tuple[Measurand, ...]:
        return ReplacementTime(), ReplacementLoss()

    def doubtful(self, suts: Sequence[PreparedSut]) -> Sequence[PreparedSut]:
        return ()

    def why_missing(self, trials: Sequence[Trial]) -> str:
        return f"none of its {len(trials)} trials shows a replacement"


class CountedBytes(LivingCount):
    """Bytes that a closed loop moves."""

    first = ByteCost

    def count(self, sut: PreparedSut) -> None:
        measure_in_turn([Replicate(sut, self.measurands)])

    @property
    def measurands(self) -> tuple[Measurand, ...]:
        streams = self.task.scenario.streams
        assert streams is not None
        count, duration = _OVER_DELAY if streams.delay else _OF_REQUESTS if streams.request else _AT_ONCE
        setting = TransferSetting(self.task.scenario.window, duration, count, streams.buffers, streams.request)
        return tuple(
            replace(each, least=True) if isinstance(each, ByteCost) else each for each in of_transfers(setting)
        )

    def why_missing(self, trials: Sequence[Trial]) -> str:
        return f"none of its {len(trials)} transfers shows it"
