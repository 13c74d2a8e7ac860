"""What a run found: the values that result.json holds and that every report is rendered from.

Loads and rates are packets/s, ratios and changes are fractions, times are seconds (of the epoch where a moment is
meant). None is what is not known. The JSON schema is generated from these classes, see `pdrgate.history.schema`; a
change of theirs that older readers would stumble over takes a new `SCHEMA`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pdrgate.record.parts import FlatPart
from pdrgate.record.phase import Phase
from pdrgate.results.acknowledgement import AcknowledgedPath, Acknowledgement
from pdrgate.results.build_differences import BuildDifference
from pdrgate.results.drops import DropsResult
from pdrgate.results.losses import LossResult
from pdrgate.results.selection import Selection
from pdrgate.results.soak import SoakResult
from pdrgate.results.vectors import VectorsResult
from pdrgate.results.verdict import Verdict

SCHEMA = 2

Better = Literal["higher", "lower"]
Side = Literal["baseline", "candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurandResult:
    """A measurand of one build: what was measured, with its 95 % interval and the samples that it rests on."""

    name: str
    """Name of the measurand in all reports, such as ``PDR`` or ``saturation throughput``."""
    unit: str
    better: Better
    value: float
    lower: float | None = None
    upper: float | None = None
    samples: tuple[float, ...] = ()
    """A sample per repeat, or per boot where builds are compared, in measured order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PdrResult:
    """The partial drop rate: the load where the loss ratio crosses the goal, with its 95 % interval."""

    load: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What pairs say of a change, whenever they are looked at; see `stats.sequential`."""

    slower: float
    """Log of how much likelier they are of a build worse by twice the tolerance, or more, than of one that is not worse
    at all."""
    faster: float
    """Log of how much likelier they are of a build better by twice the tolerance, or more, than of one that is not
    better at all."""
    pairs: int
    deviation: float
    """The deviation of the logs of the pairs' ratios."""
    resolves: float
    """The least tolerance that as many such pairs decide, in some 95 of 100 comparisons of equal builds."""
    apart: int = 0
    """Pairs that lie so far from the others that they count for less than they are."""
    slower_if_drifting: float | None = None
    """Log of the odds that ``slower`` has, where neighbouring pairs may be alike; None in older results."""
    faster_if_drifting: float | None = None
    """Log of the odds that ``faster`` has, where neighbouring pairs may be alike; None in older results."""
    narrow: bool = False
    """Whether the interval reaches no further from the change than a fifth of the tolerance: nothing that matters is
    left to learn, and where the odds do not decide the side does on which the change lies."""
    needs: int | None = None
    """Pairs that it would take, where the noise keeps a change from its tolerance with all that may be had."""


def with_others(name: str, others: tuple[str, ...]) -> str:
    """``kernel_init_pages with clear_page_rep``: a function with those that its work moved between."""
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"{name} with {others[0]}{more}" if others else name


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """What a function has of a change, in the measurand's unit."""

    function: str
    change: float
    baseline: float = 0.0
    """The function's value there."""
    candidate: float = 0.0
    kinds: Mapping[str, float] = field(default_factory=dict)
    """How many more cache lines or misses the function has of each kind, such as stacks; empty where that is not known.
    """
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of a struct that the function touches in cache lines of these kinds, as far as they are certain."""
    writer: str = ""
    """Function that writes to the lines that CPUs share in this one, where that is another function."""
    moved_with: tuple[str, ...] = ()
    """Other functions that do the same work in one of the builds: the values are those of all of them."""

    @property
    def label(self) -> str:
        """The function's name, and what it shares its work with."""
        return with_others(self.function, self.moved_with)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    """How one measurand changed, (candidate - baseline) / baseline, its interval, and what the tolerance says."""

    measurand: str
    change: float
    lower: float
    """The lower end of its interval; of what is counted by function, the least by which trials of the two builds
    differ, summed over the functions that surely changed."""
    upper: float
    """The upper end; of what is counted by function, the most by which trials differ."""
    confidence: float
    """The confidence of the interval; more is asked of each of several measurands. 1 where it has all trials."""
    tolerance: float
    baseline: float
    """The measurand's value there, in its unit."""
    candidate: float
    unit: str
    better: Better
    verdict: Verdict
    """PASS, IMPROVEMENT, REGRESSION or INCONCLUSIVE, of this measurand alone; NO_BASELINE where it is not judged."""
    evidence: Evidence | None = None
    """The evidence for changes that were measured in pairs."""
    parts: tuple[PartChange, ...] = ()
    """The functions that it is in, where that is judged function by function."""
    boots_deviate: float | None = None
    """What logs of boots deviate by, which the interval of a change that was not measured in pairs holds too; None:
    nobody knows, and the interval is that of the repeats alone."""

    @property
    def unresolved(self) -> bool:
        """Whether it is not judged: its noise keeps it from its tolerance, or it is report-only, by functions."""
        return self.verdict is Verdict.NO_BASELINE and (self.evidence is not None or bool(self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFunction:
    """What a function does with memory for a packet."""

    name: str
    values: Mapping[str, tuple[float, ...]]
    """Values of each measurand, one for each trial."""
    kinds: Mapping[str, float] = field(default_factory=dict)
    """How many of its cache lines are of each kind, such as stacks: medians of the trials."""
    missed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """How many lines of each name it missed, by measurand of misses, as far as names are known: medians of the trials.
    """
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of a struct that it touches in cache lines of these kinds, as far as they are certain."""
    writer: str = ""
    """Function that writes to the lines that CPUs share in this one, where that is another function."""
    fills_pages: bool = False
    """Whether it mostly clears pages: how many are needed, the boot's free pages decide and how many packets wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResult:
    """What a packet does with memory, by the trials in which each access was seen."""

    trials: int
    values: Mapping[str, tuple[float, ...]]
    """Values of each measurand, one for each trial."""
    functions: tuple[MemoryFunction, ...]
    cpus: int = 1
    """CPUs of the SUT that it was seen on; what CPUs share is comparable only where they are as many."""
    priced: Mapping[str, float] = field(default_factory=dict)
    """How often a packet does what estimated cycles have a price for, by its name: medians of the trials."""
    missing: tuple[str, ...] = ()
    """What of the kernel's cache lines could have no names, or no fields, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult:
    """A function of the kernel, or of a BPF program: medians over the trials at saturation."""

    name: str
    instructions: float
    """Instructions per forwarded packet; functions that were inlined into it included."""
    calls: float
    """Calls per forwarded packet."""
    deviation: float | None = None
    """The deviation of the instructions from trial to trial; None with one trial."""
    fewest_calls: float | None = None
    """The least of the replicates' medians, calls per forwarded packet; None with one replicate."""
    most_calls: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameResult:
    """A function as it was called by one chain of callers, in a trial at saturation in which calls were followed."""

    function: str
    caller: int | None
    """The number of its caller's frame, which stands before it; None of one that nobody called."""
    instructions: float
    """Instructions per forwarded packet, with all that it calls."""
    own: float
    """Instructions of the function itself, and of callees that are too small to have a frame of their own."""
    calls: float
    """Calls per forwarded packet; 0 of a function that was on its way all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostResult:
    """What a packet costs, in instructions per forwarded packet: medians over the trials of all replicates."""

    instructions: float
    """Instructions per packet at saturation."""
    batch: float | None
    """Packets that one poll of the driver took there; None where that is not known."""
    trials: int
    """Trials at saturation."""
    functions: tuple[FunctionResult, ...]
    """Functions at saturation, the largest first, without those of hardly any instructions."""
    lossless_load: float | None = None
    """A load that leaves the kernel time, so that its batches are small; None where it was not measured."""
    lossless_instructions: float | None = None
    lossless_batch: float | None = None
    callers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Functions whose code calls a function, as far as both are of a packet's path and code shows it; empty where it
    was not looked at."""
    path: tuple[FrameResult, ...] = ()
    """Frames of callers and callees that have half a percent of all instructions or more; empty where calls were not
    followed."""
    alone: bool = False
    """Whether it is of a program alone, in instructions per run on a packet, and ``trials`` are times that it was
    loaded."""
    each: str = "packet"
    """What it is the cost of: a packet, or a replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyResult:
    """One-way latency at a share of the PDR, seconds: medians over the trials of all replicates."""

    share: float
    load: float
    """Packets/s: the same for both builds of a comparison, by the PDR of the baseline."""
    trials: int
    probes: int
    """Probes that came back."""
    p50: float
    p90: float
    p99: float
    longest: float
    """The longest latency of all trials."""
    within: tuple[float, ...] = ()
    """How much less median, 90 %, 99 % and the longest may be, where the generator counts latencies in buckets."""
    instructions: float | None = None
    """Instructions that a packet costs there; None where they are not counted."""
    batch: float | None = None
    """Packets that one poll of the driver takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsResult:
    """How packets arrived at the receivers of an end host at a load, over the trials of all replicates.

    A gap lies between two calls that brought packets, by sample. Gaps are counted in classes, each twice as wide as the
    one before. A percentile is the upper bound, in seconds, of the class in which it lies.
    """

    load: float
    """Packets/s."""
    trials: int
    gaps: int
    """Gaps that were timed."""
    p50: float | None
    """The median gap; None where gaps are longer than all classes, or none was timed."""
    p90: float | None
    p99: float | None
    packets_per_call: float | None
    batch: float | None = None
    """Packets that one poll of the driver took; None where that is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionChange:
    """How many instructions and calls per packet a function had in the baseline and has now."""

    function: str
    """The candidate's name of the function; the baseline's, where the candidate has no such function."""
    before: float
    after: float
    change: float
    """The difference, instructions per packet."""
    sure: bool
    """Whether it is more than the trials of either build differ among themselves."""
    calls_before: float | None = None
    """Calls per packet; None where they are not counted."""
    calls_after: float | None = None
    calls_changed: bool = False
    """Whether it is called more or less often by more than boots differ in and batches explain."""
    renamed_from: str = ""
    """What the baseline calls the same function; empty where both names are equal."""
    moved_with: tuple[str, ...] = ()
    """Other functions that do the same work in one of the builds: instructions are those of all of them, calls are not.
    """

    @property
    def label(self) -> str:
        """The function's name, both where it has two, and what it shares its work with."""
        name = f"{self.renamed_from} -> {self.function}" if self.renamed_from else self.function
        return with_others(name, self.moved_with)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """A build against its baseline. ``change``, ``lower`` and ``upper`` are the PDR's; ``changes`` has all."""

    baseline: str
    """The file, or the build, that was compared with."""
    tolerance: float
    change: float
    lower: float
    upper: float
    confidence: float
    changes: tuple[ChangeResult, ...] = ()
    pairs: int = 0
    """Pairs of boots; 0 where repeats of two runs are compared."""
    earlier: int = 0
    """Pairs of earlier tries of the same two builds, which count too."""
    tries: int = 1
    """Tries of these two builds that the pairs are of: the present one and the earlier ones."""
    accepted: bool = True
    """Whether the verdict rests on it; ``why_not`` says what stands against it."""
    why_not: str = ""
    differs: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Fingerprint entries that are not equal, baseline's value first: what this comparison is about."""
    functions: tuple[FunctionChange, ...] = ()
    """What of a packet's cost changed, the largest change first; empty where it was not counted."""
    notice: str = ""
    """What surely changed below a tolerance, in a sentence. A notice is report-only."""
    build_differences: tuple[BuildDifference, ...] = ()
    """What the builds differ by beside their change, what matters most first."""
    unknown_configs: tuple[Side, ...] = ()
    """The builds whose configuration is not known."""

    @property
    def pairs_in_words(self) -> str:
        """How many pairs of boots it rests on."""
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs} pairs"
        return f"{pairs} of boots" + (f" and {self.earlier} of earlier tries" if self.earlier else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpikeInResult:
    """Whether a comparison that passed could have failed: the baseline, slowed down on purpose, against itself."""

    wanted: float
    """How much more work a packet was to take, relative: what makes it slower by twice the tolerance."""
    planted: str = ""
    """What was put into the packets' way, in words; empty where nothing could be."""
    slowdown: float | None = None
    """How much more work a packet took, relative, as trials of one boot showed; None where nothing was planted."""
    verdict: Verdict | None = None
    """The verdict of that comparison; None where there was none."""
    reason: str
    """The reason of that verdict; else why nothing was planted."""
    comparison: ComparisonResult | None = None
    """The change that was found; None where it came to none."""
    trials: int = 0

    @property
    def found(self) -> bool:
        """Whether the comparison found the slowdown, with the verdict REGRESSION."""
        return self.verdict is Verdict.REGRESSION


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalResult:
    """Bounds that the search for one goal ended at (RFC 9971), packets/s; they are never the PDR itself."""

    name: str
    loss_ratio: float
    width: float
    outcome: str
    """The words of `pdrgate.search.mlr.GoalOutcome`."""
    lower: float | None
    """The relevant lower bound (section 4.8); None where the search did not reach it."""
    upper: float | None
    """The relevant upper bound; None where the search did not reach it."""
    conditional_throughput: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A search for all goals of a scenario."""

    goals: tuple[GoalResult, ...]
    trials: int
    elapsed: float
    """Seconds of traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """What the generator offers at most, and what the SUT forwarded there."""

    ceiling: float
    forwarding_rate: float


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check passed, failed, or is undecided (None), with the number that decided and its bound."""

    name: str
    passed: bool | None
    value: float | None
    """The number that decided; None if there is none."""
    bound: float | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """All repeats at one load; see PASTRAMI section IV-A for the names."""

    load: float
    runs: int
    plr: float
    plr_sd: float | None
    lcl: float | None
    ucl: float | None
    delta_ucl: float | None
    throughput: float
    tir: float | None
    """The TIR of the step that ends here; None at the first load."""
    steady_plr: float | None = None
    """Loss ratio that the load would have if its trials went on (`Trial.steady_loss_ratio`). A PDR is judged by it."""
    surplus: float = 0.0
    generator_limited: int = 0
    """Repeats left out because the generator was the limit."""
    losses: tuple[float, ...] = ()
    """PLR of each repeat in measured order."""
    throughputs: tuple[float, ...] = ()
    """Packets/s of each repeat that came back while sending went on."""
    least: float | None = None
    """The least packets/s that were delivered in half of a trial between the PDR and twice it, of an end host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePdr:
    """The load at which the PLR of a curve first crosses the threshold, packets/s.

    ``load`` is interpolated on the mean PLR between the two loads of ``bracket``. ``lower`` is where the upper
    confidence limit of the PLR crosses, ``upper`` where the lower limit does: up to ``lower`` even the pessimistic
    curve keeps the threshold, from ``upper`` on even the optimistic one breaks it. An end that lies outside the
    measured loads is None, except that the first and last measured load bound what they can bound.
    """

    load: float | None
    lower: float | None
    upper: float | None
    bracket: tuple[float | None, float | None]
    plr_threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationResult:
    """Indices count loads from 0; ``tir`` has one number per step between consecutive loads."""

    potential_index: int | None
    actual_index: int | None
    tir: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """Repeats as a series in time."""

    quantity: str
    load: float | None
    runs: int
    deviation: float | None
    trend: float | None
    trend_p: float | None
    halves: float | None
    lag1: float | None
    lag1_bound: float | None
    wander: float
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftResult:
    """Does it stay where it is?"""

    trend_past_pdr: float | None
    trend_past_pdr_p: float | None
    series: tuple[SeriesResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessmentResult:
    """PASTRAMI's analysis of one load-loss curve; an entry of ``experiments`` of ``pdrgate assess --format json``."""

    source: str
    labels: Mapping[str, str]
    """GOOD or BAD in each reading."""
    reading: str
    pdr: CurvePdr
    saturation: SaturationResult
    loads: tuple[LoadResult, ...]
    generator_limited_loads: tuple[float, ...]
    drift: DriftResult
    checks: tuple[CheckResult, ...]
    verdict: str
    """STABLE, UNSTABLE, INCONCLUSIVE or GENERATOR_LIMITED."""
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """A transfer of TCP. Rates are bits/s, times seconds, sizes bytes."""

    phase: Phase
    """Why it was made: rest, curve, repeat."""
    window: int
    """The most that receivers advertised to each stream."""
    throughput: float
    """The rate that the receiving program read."""
    rtt: float | None
    """The median of the senders' smoothed round trip times."""
    retransmitted: int
    segments: int
    """Segments that it takes to send as much once."""
    repeat: int = 0
    sut_busy: float | None = None
    """Share of the time in which the SUT's CPU was not idle; None where that is not known."""
    station_busy: float | None = None
    """Share of the time in which the CPU of the station was not idle; None where that is not known."""
    sut_cpu: float = 0.0
    """CPU time of the program at the SUT."""
    rtts: tuple[float, ...] = ()
    """Round trip times at equal steps."""
    rates: tuple[float, ...] = ()
    """Rates of sending at equal steps."""
    disturbed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransfersResult:
    """What TCP did in a scenario of a closed loop, which has no load-loss curve and no PDR."""

    window: int
    """Bytes; that of the repeats."""
    rest_rtt: float | None = None
    """Seconds that a round trip takes while hardly anything is sent, at least."""
    knee: int | None = None
    """The least window that brings nine tenths of the most; None where none was looked for, or sweeps do not agree."""
    knees: tuple[int, ...] = ()
    """Knees of each sweep of the window curve."""
    transfers: tuple[TransferResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashResult:
    """A fault that a kernel reported on its console."""

    kind: str
    line: str
    rip: str | None
    trace: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedFrameResult:
    """A frame that is not what a router makes of the one that was sent; all without FCS, in hex."""

    side: Side | None = None
    """The side of the build, where builds were compared."""
    build: str = ""
    direction: int
    """0 forward, 1 reverse."""
    sent: str
    must_be: str
    """What a data path of its name makes of it."""
    got: str
    differences: tuple[str, ...]
    """Fields that differ, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootResult:
    """A boot of a build; without values where it did not come to them, as ``failure`` says."""

    side: Side
    pair: int
    boot: str
    kernel: str
    values: Mapping[str, float] = field(default_factory=dict)
    """Values by measurand, in its unit."""
    failure: str = ""
    sut_failed: bool = False
    """Whether it was the SUT that failed: it did not come up, died, did not answer or was refused; else a tool did."""
    refused: bool = False
    """Whether its kernel refused to load an eBPF program."""
    complaints: tuple[str, ...] = ()
    crash: CrashResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(FlatPart):
    """What was measured of one build, and what it ran on."""

    environment: Mapping[str, Any] = field(default_factory=dict)
    """The SUT under this build, see `pdrgate.observers.environment.Environment`."""
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    measurands: tuple[MeasurandResult, ...] = ()
    search: SearchResult | None = None
    calibration: CalibrationResult | None = None
    assessment: AssessmentResult | None = None
    complaints: tuple[str, ...] = ()
    cost: CostResult | None = None
    """What a packet costs; None where it was not counted."""
    memory: MemoryResult | None = None
    """What a packet does with memory; None where nobody saw it."""
    several_cpus: MemoryResult | None = None
    """What several CPUs do to each other for a packet; None where no guest of several CPUs was measured."""
    latency: tuple[LatencyResult, ...] = ()
    """Latencies by share of the PDR; empty where they were not asked for."""
    losses: LossResult | None = None
    """Places where its packets were lost, of all trials that the measurands rest on; None where nothing counted
    them."""
    arrivals: tuple[ArrivalsResult, ...] = ()
    """Arrivals by load, at the receivers of an end host; empty where packets do not end at the SUT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideResult:
    """A build of a comparison: what it is, what it ran on, and what was measured of it."""

    side: Side
    build: str
    digest: str = ""
    """The digest of the build's content, SHA-256 in hexadecimal; empty where it is unknown, and in results of older
    versions."""
    findings: Findings = field(default_factory=Findings)

    def but(self, findings: Findings) -> SideResult:
        """A copy of the build's result with other findings."""
        return replace(self, findings=findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(FlatPart):
    """Origin of a scenario's result: the test that asked, the run, and the SUT as it was set up."""

    test: str = ""
    """The Robot test that asked for it."""
    carried: str = ""
    """How the SUT carries packets, in words."""
    testbed: str = ""
    """The testbed in words, as it was opened for this scenario."""
    boot: str = ""
    set_up: Mapping[str, str] = field(default_factory=dict)
    """Steps of the scenario's own by their numbers, and its files by name with their SHA-256."""
    run: str = ""
    """The folder of its run, as seen from a result that runs were merged into; empty in a run's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBuilds(FlatPart):
    """Baseline and candidate, and each of their boots; empty where no builds were compared."""

    spike_in: SpikeInResult | None = None
    """What was planted into a comparison of builds that passed, where that was asked for."""
    sides: tuple[SideResult, ...] = ()
    """Baseline and candidate, where builds were compared."""
    boots: tuple[BootResult, ...] = ()

    def side(self, name: Side) -> SideResult | None:
        """A build of the comparison; None where none was made."""
        return next((one for one in self.sides if one.side == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Details(FlatPart):
    """What was seen besides, or measured because it was asked for."""

    interference: str = ""
    """The others that had the SUT's CPUs meanwhile; empty when nobody did."""
    uncounted: str = ""
    """Why what a packet costs was not counted, in a sentence."""
    unmeasured: tuple[str, ...] = ()
    """What else was to be measured and was not, each with why, in a sentence; the verdict says nothing of it."""
    soak: SoakResult | None = None
    """A long load below the PDR, where that was asked for."""
    drops: DropsResult | None = None
    """Each packet that was dropped in one trial, where drops were to be traced."""
    frames: tuple[ForwardedFrameResult, ...] = ()
    """Some that are not what a router makes of them; empty where all that were looked at are."""
    transfers: TransfersResult | None = None
    """Transfers of a closed loop; None where trials were measured."""
    vectors: VectorsResult | None = None
    """What two builds of a program did with packets of a capture, without ports; None where traffic was sent."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    """What people have acknowledged of it, where that covers all that its verdict rests on: it fails no run then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """A scenario of a run. Where builds were compared, what is measured here is the candidate's."""

    name: str
    title: str
    verdict: Verdict
    reason: str
    trials: int = 0
    pdr: PdrResult | None = None
    comparison: ComparisonResult | None = None
    origin: Origin = field(default_factory=Origin)
    findings: Findings = field(default_factory=Findings)
    builds: ComparedBuilds = field(default_factory=ComparedBuilds)
    details: Details = field(default_factory=Details)

    @property
    def label(self) -> str:
        """Name for people: that of its test where builds were compared, or were to be, and no PDR was found,
        ``Connection Tracking``."""
        is_compared = self.comparison is not None or bool(self.builds.sides)
        return self.origin.test if self.origin.test and is_compared and self.pdr is None else self.title

    @property
    def case(self) -> str:
        """Name that other programs know it by from run to run, whatever became of it."""
        return self.origin.test or self.title

    @property
    def counts_as(self) -> Verdict:
        """The verdict that it has in that of its run: PASS where the change is acknowledged."""
        return Verdict.PASS if self.details.acknowledged else self.verdict

    def measurand(self, name: str) -> MeasurandResult | None:
        """The measurand of that name; None when it was not measured."""
        return next((one for one in self.findings.measurands if one.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedResult:
    """The testbed that was opened first."""

    __test__ = False  # the name begins like a test class; pytest must not collect it

    name: str
    kind: str
    source: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutPath:
    """A path that was asked for and not measured."""

    path: str
    """The name of its test."""
    reason: str
    is_fault: bool = False
    """Whether the testbed, a tool or the suite failed. Otherwise neither build can be set up for the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run of the gate, stored as result.json."""

    schema: int
    pdrgate: str
    """Version of pdrgate."""
    run: str
    """The name of its folder."""
    started: float
    finished: float | None
    profile: str
    testbed: TestbedResult
    environment: Mapping[str, Any]
    """What all SUTs of the run have in common; each scenario has its own, and each of two builds. In results of older
    versions that of the first SUT, which of two builds is the baseline."""
    verdict: Verdict
    reason: str
    scenarios: tuple[ScenarioResult, ...]
    command: str = ""
    """What to type to run it again."""
    commit: str = ""
    """The commit of the change that it judges, as whoever started it said; empty where nobody did."""
    held: bool = False
    """Whether others had what it needs: it says nothing of any build then."""
    selection: Selection | None = None
    """Which paths were measured because their code differs; None where all that was asked for was."""
    left_out: tuple[LeftOutPath, ...] = ()
    """Paths that were asked for and not measured, and why; those that run the same code are in `selection`."""
    acknowledged: tuple[AcknowledgedPath, ...] = ()
    """What became of each change for the worse that the project's file acknowledges; empty where there is none."""
