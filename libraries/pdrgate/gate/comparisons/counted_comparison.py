"""Two builds compared on boots that stay up from scenario to scenario: by what a packet costs, or a byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pdrgate.gate.comparisons.build_comparison import ComparedTrials
from pdrgate.gate.comparisons.living_boots.counted_bytes import CountedBytes
from pdrgate.gate.comparisons.living_boots.counted_packets import CountedPackets
from pdrgate.gate.comparisons.living_boots.counted_replacements import CountedReplacements
from pdrgate.gate.comparisons.living_boots.living_boots import LivingBoots
from pdrgate.gate.comparisons.living_boots.living_suts import LivingSuts
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.comparisons.pairs.pairs_plan import Plan
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape, shape_of
from pdrgate.gate.comparisons.pairs.several_cpus_seen import SeveralCpusSeen
from pdrgate.gate.comparisons.pairs.tries_ledger import Earlier
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.comparisons.transfer_comparison import ComparedTransfers
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.session import Session
from pdrgate.gate.sut.closed_loop_sut import ClosedLoopSut
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.gate.verdicts.packet_cost import replacement_cost
from pdrgate.measurands import Cost, Description
from pdrgate.measurands.counted.calls import Calls
from pdrgate.measurands.counted.idle_work import IdleWork
from pdrgate.measurands.counted.load_cost import LOAD_COSTS
from pdrgate.measurands.counted.thunks import OF_THUNKS
from pdrgate.measurands.memory.memory_result import OF_MEMORY
from pdrgate.measurands.rates.packet_order import PacketsInOrder
from pdrgate.measurands.rates.replacement import ReplacementLoss, ReplacementTime
from pdrgate.measurands.transfers.answered_requests import RequestCost, RequestLatency, RequestRate
from pdrgate.measurands.transfers.tcp import ByteCost, TcpThroughput, Transmissions
from pdrgate.measurands.transfers.tcp_growth import AdvertisedWindow, FullWindowTime, GrowthBytes, UsedWindow
from pdrgate.record.fate import INSIDE
from pdrgate.record.stretch import AnyStretch, by_boot
from pdrgate.record.transfer import Transfer
from pdrgate.record.trial import Trial
from pdrgate.results.model import SideResult
from pdrgate.stats.pooled import Deviation

_PAIRS_DEVIATE = Deviation(0.004, 8.0)
"""What pairs of equal builds deviate by, relative, on most paths, and how well that is known of any other path."""

_PACED = replace(Cost.about, tolerance=replace(Cost.about.tolerance, least=0.1))
"""The cost of packets that do not come back. Nothing tells when a burst of them is done, so they are sent when they are
due, and a guest takes more or fewer of them at a time."""

_BYTES = replace(ByteCost.about, tolerance=replace(ByteCost.about.tolerance, least=0.03))
"""The cost of a byte on guests that share CPUs: others decide how long a transfer takes, and how many ticks it has."""

_REQUESTS = replace(RequestCost.about, tolerance=replace(RequestCost.about.tolerance, least=0.05))
"""The cost of a request on such guests, for the same reason."""


_RECOVERED = replace(TcpThroughput.about, tolerance=replace(TcpThroughput.about.tolerance, least=0.25))
"""The throughput of a sender that loses frames, and waits for its window else: most of it is round trips."""


class CountedTrials(ComparedTrials):
    """Trials at saturation and at a light load, of living boots."""

    compared: ClassVar[tuple[Description, ...]] = (Cost.about,)
    also_told: ClassVar[tuple[Description, ...]] = (
        *(one.about for one in OF_MEMORY), Calls.about, IdleWork.about,
        *(one.about for one in (*OF_THUNKS, *LOAD_COSTS)),
    )  # fmt: skip
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {Cost.about.name: _PAIRS_DEVIATE}

    counts: ClassVar[type[CountedPackets]] = CountedPackets

    def __init__(self, task: ComparisonTask, suts: LivingSuts) -> None:
        super().__init__(task)
        self._suts = suts

    def replication(  # type: ignore[override]
        self, told: Callable[[Trial, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> LivingBoots[OpenLoopSut, Trial]:
        task = self.task
        self._boots = LivingBoots(  # type: ignore[assignment]
            task.session,
            self._suts,
            self.counts(task.session, task.scenario, self._suts),
            told=told,
            known=known,
            test=task.longname,
        )
        return self._boots  # type: ignore[return-value]

    def shape(
        self, samples: Mapping[str, Mapping[Any, tuple[float, ...]]], stretches: Sequence[Trial], earlier: Earlier
    ) -> PairsShape:
        """Counts have no curve, and do not depend on the level at which a boot comes up."""
        return shape_of(
            self.compared, samples, earlier=earlier.samples, contradictions=earlier.contradictions
        )  # fmt: skip


class PacedTrials(CountedTrials):
    """Trials of packets that do not all come back, and are sent when they are due."""

    compared: ClassVar[tuple[Description, ...]] = (_PACED, PacketsInOrder.about)
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {
        _PACED.name: Deviation(0.04, 8.0), PacketsInOrder.about.name: Deviation(0.001, 8.0),
    }  # fmt: skip


class ReplacedTrials(CountedTrials):
    """Trials in which something of the set-up is replaced."""

    compared: ClassVar[tuple[Description, ...]] = (ReplacementTime.about, ReplacementLoss.about)
    also_told: ClassVar[tuple[Description, ...]] = ()
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {
        ReplacementTime.about.name: Deviation(0.02, 8.0), ReplacementLoss.about.name: Deviation(0.001, 8.0),
    }  # fmt: skip
    counts: ClassVar[type[CountedPackets]] = CountedReplacements

    def accounted(self, side: SideResult, stretches: Sequence[Trial]) -> SideResult:
        """What the kernel does for a replacement, by function."""
        found = super().accounted(side, stretches)
        own = by_boot([one for one in stretches if one.belonging.side == side.side])
        return found.but(replace(found.findings, cost=replacement_cost([*own.values()])))


class CountedTransfers(ComparedTransfers):
    """Transfers of living boots, which have the CPU that others leave: only what is counted is compared."""

    compared: ClassVar[tuple[Description, ...]] = (_BYTES,)
    also_told: ClassVar[tuple[Description, ...]] = ()
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {_BYTES.name: Deviation(0.015, 8.0)}

    def __init__(self, task: ComparisonTask, suts: LivingSuts) -> None:
        super().__init__(task)
        self._suts = suts

    def replication(  # type: ignore[override]
        self, told: Callable[[Transfer, bool], None], known: Callable[[Mapping[str, str]], None]
    ) -> LivingBoots[ClosedLoopSut, Transfer]:
        task = self.task
        return LivingBoots(
            task.session, self._suts, CountedBytes(task.session, task.scenario, self._suts),
            told=told, known=known, test=task.longname,
        )  # fmt: skip


class CountedRequests(CountedTransfers):
    """Requests and their answers, on living boots."""

    compared: ClassVar[tuple[Description, ...]] = (_REQUESTS, RequestLatency.about)
    also_told: ClassVar[tuple[Description, ...]] = (RequestRate.about,)
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {
        _REQUESTS.name: Deviation(0.02, 8.0), RequestLatency.about.name: Deviation(0.2, 8.0),
    }  # fmt: skip


class DelayedTransfers(CountedTransfers):
    """Transfers of living boots over a path with delay: a sender waits for its window, and not for a CPU."""

    compared: ClassVar[tuple[Description, ...]] = (UsedWindow.about, AdvertisedWindow.about, GrowthBytes.about)
    also_told: ClassVar[tuple[Description, ...]] = (
        TcpThroughput.about, Transmissions.about, FullWindowTime.about, ByteCost.about,
    )  # fmt: skip
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {
        UsedWindow.about.name: Deviation(0.025, 8.0), AdvertisedWindow.about.name: Deviation(0.003, 8.0),
        GrowthBytes.about.name: Deviation(0.12, 8.0),
    }  # fmt: skip


class LossyTransfers(CountedTransfers):
    """Transfers of living boots over a path that loses frames: how fast they recover, and what is sent again."""

    compared: ClassVar[tuple[Description, ...]] = (_RECOVERED, Transmissions.about)
    also_told: ClassVar[tuple[Description, ...]] = (UsedWindow.about, ByteCost.about)
    pairs_deviate: ClassVar[Mapping[str, Deviation]] = {
        _RECOVERED.name: Deviation(0.05, 8.0), Transmissions.about.name: Deviation(0.001, 8.0),
    }  # fmt: skip


class LivingComparison(PairsComparison[AnyStretch]):
    """One scenario on living boots of two builds."""

    def __init__(
        self, session: Session, scenario: Scenario, suts: LivingSuts, plan: Plan, *, test: str = "", longname: str = ""
    ) -> None:
        self._suts = suts
        super().__init__(session, scenario, suts.builds, plan, test=test, longname=longname)

    @property
    def unable(self) -> str:
        """Why neither build can be set up for the scenario, in a sentence; empty where one can."""
        replication = self.loop.replication
        return replication.unable if isinstance(replication, LivingBoots) else ""


class CountedComparison(LivingComparison[Trial]):
    """Two builds compared by what a packet costs, on boots that stay up."""

    def _kind_of(self, task: ComparisonTask) -> CountedTrials:
        if task.scenario.replaces:
            return ReplacedTrials(task, self._suts)
        kind = PacedTrials if task.scenario.counts in INSIDE else CountedTrials
        return kind(task, self._suts)

    def _begin_beside(self) -> None:
        if self._wants_several_cpus:
            self._suts.several_cpus.begin(self.task)

    def _on_several_cpus(self) -> SeveralCpusSeen:
        return self._suts.several_cpus.told(self.task) if self._wants_several_cpus else SeveralCpusSeen()

    @property
    def _wants_several_cpus(self) -> bool:
        """Where the scenario's plan has it; see `BuildComparison`."""
        return self.plan.several_cpus and self.session.profile.several_cpus and not self._is_planted


class CountedTransferComparison(LivingComparison[Transfer]):
    """Two builds compared by what a byte costs, or over a path with delay by the windows that TCP comes to."""

    def _kind_of(self, task: ComparisonTask) -> CountedTransfers:
        streams = task.scenario.streams
        assert streams is not None
        kinds: tuple[tuple[object, type[CountedTransfers]], ...] = (
            (streams.request, CountedRequests), (streams.loss, LossyTransfers), (streams.delay, DelayedTransfers),
        )  # fmt: skip
        return next((kind for asked, kind in kinds if asked), CountedTransfers)(task, self._suts)
