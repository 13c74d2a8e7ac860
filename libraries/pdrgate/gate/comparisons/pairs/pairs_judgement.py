"""What the pairs of a comparison come to: samples and what speaks against them, to a verdict and a change.

It is pure: it boots nothing, asks no testbed and writes no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.comparisons.pairs.pairs_shape import PairsShape
from pdrgate.gate.comparisons.pairs.tries import Earlier
from pdrgate.gate.verdicts.baseline import differing_entries
from pdrgate.gate.verdicts.build_pair import BuildPair
from pdrgate.gate.verdicts.change_verdict import comparison, judged, proven, told
from pdrgate.gate.verdicts.disturbance import Disturbance
from pdrgate.measurands import BuildSeen, TolerancesAsked, changes_by_rule
from pdrgate.measurands.counted.cost import decided_by_functions
from pdrgate.measurands.counted.estimated_cycles import PRICED_CPU, estimate_in_words
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.measurands.functions.moved_work import moved_between
from pdrgate.measurands.measurand import Values
from pdrgate.replication import PairsRule, Samples, Standing
from pdrgate.results.losses import compared
from pdrgate.results.model import ComparisonResult, Side, SideResult, SpikeInResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability import StabilityVerdict as Stability


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsSamples:
    """A sample of each measurand per boot, with the asked tolerances and the rule that judges them."""

    rule: PairsRule
    fresh: Sequence[Samples]
    """The samples of this try's pairs."""
    pairs: int
    """The number of pairs of this try."""
    earlier: Earlier = field(default_factory=Earlier)
    """The tries that count besides."""

    @property
    def all(self) -> list[Samples]:
        """The samples of all pairs that count; those of earlier tries come first."""
        return [one.after(self.earlier.of(one.measurand)) for one in self.fresh]

    def standing(self, *, ended: bool = False) -> Standing:
        """What the rule says of them."""
        return self.rule.standing(self.all, earlier=self.earlier.pairs, ended=ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsContext:
    """What a verdict rests on beside the samples."""

    sides: Mapping[Side, SideResult]
    """What is known of each build, with what its packets cost and where they were lost."""
    failure: Judgement | None = None
    """Why no verdict rests on the pairs, whatever they show."""
    shape: PairsShape | None = None
    """What may speak against comparing by means; None before all pairs are measured."""
    disturbance: Disturbance = field(default_factory=Disturbance)
    interference: str = ""
    """What else the machine did, in words."""
    remedy: str = ""
    """What a user can do where the machine disturbs."""
    values: Mapping[Side, Values] = field(default_factory=dict)
    """Values of the boots of each build."""
    asked: TolerancesAsked = field(default_factory=dict)
    """The tolerances that the run asks for."""
    planted: bool = False
    """Whether something was planted to see whether it is found: it proves nothing of what has a rule of its own."""
    spike_in: SpikeInResult | None = None
    """Whether the comparison could have failed, where that was tried."""
    differing_configs_allowed: bool = False
    alone: bool = False
    """Whether one pair was enough, see `pdrgate.gate.comparisons.pairs.foreseen`."""
    programs: Sequence[str] = ()
    """What ran of two eBPF programs, and what became of packets, in clauses."""

    @property
    def seen(self) -> tuple[BuildSeen, BuildSeen]:
        """What is known of both builds, for rules that ask for more than samples of pairs."""
        baseline, candidate = (
            BuildSeen(values=self.values.get(side, {}), findings=self.sides[side].findings) for side in SIDES
        )
        return baseline, candidate

    def veto(self, standing: Standing) -> Judgement | None:
        """Why the trials support no comparison; None when they do."""
        if self.shape is None:
            return None
        labels: dict[str, str] = {side: one.build for side, one in self.sides.items()}
        return self.shape.veto(standing, labels, self.interference)

    def weighed(self, judgement: Judgement | None) -> Judgement | None:
        """The judgement, or that the machine kept the pairs from a better one."""
        return self.disturbance.weighed(judgement, self.remedy)

    def places(self, verdict: Verdict) -> str:
        """A clause that names where both builds lose packets; empty unless that explains the verdict."""
        if verdict not in (Verdict.REGRESSION, Verdict.UNSTABLE):
            return ""
        return compared(*(self.sides[side].findings.losses for side in SIDES))

    def remarks(self, verdict: Verdict) -> list[str]:
        """What a reader should know of a change that is accepted."""
        remarks = [self.disturbance.remark(), "one pair of boots, which shows what was foretold" if self.alone else ""]
        for side in SIDES:
            found = self.shape.assessments.get(side) if self.shape is not None else None
            if found is not None and found.verdict is not Stability.STABLE:
                remarks.append(f"the {side}'s curve: {found.reason}")
        if self.interference and verdict is not Verdict.PASS:
            remarks.append(f"meanwhile {self.interference}")
        remarks.append(self.shape.remark if self.shape is not None else "")
        return [*self.programs, *remarks, self.places(verdict)]


def judged_pairs(samples: PairsSamples, context: PairsContext) -> tuple[Judgement, ComparisonResult | None]:
    """The verdict, and the change, which is reported also where the verdict does not rest on it."""
    earlier, standing = samples.earlier, samples.standing(ended=True)
    if not standing.changes:
        few = f"{samples.pairs} pair{'s' * (samples.pairs != 1)} of boots; a comparison needs two"
        failure = context.failure or context.weighed(Judgement(Verdict.INCONCLUSIVE, few))
        assert failure is not None
        return failure, None
    baseline, candidate = (context.sides[side] for side in SIDES)
    moved = moved_between(baseline.findings, candidate.findings)
    functions = function_changes(baseline.findings.cost, candidate.findings.cost, moved)
    by_rule = () if context.planted else changes_by_rule(*context.seen, context.asked)
    rates = decided_by_functions(samples.rule.told(standing, samples.all, earlier.pairs), functions)
    changes = (*rates, *by_rule)
    builds = BuildPair.of(baseline.findings.environment, candidate.findings.environment)
    found = judged(changes, functions)
    veto = context.failure or context.veto(standing)
    weighed = context.weighed(veto or (found if found.verdict is Verdict.INCONCLUSIVE else None))
    if weighed is not None and weighed.verdict is Verdict.DISTURBED:
        veto = weighed
    change = comparison(
        changes, baseline.build, differing_entries(baseline.findings.fingerprint, candidate.findings.fingerprint),
        pairs=samples.pairs, earlier=earlier.pairs, tries=len(earlier.tries) + 1,
        why_not=veto.reason if veto else "", functions=functions, builds=builds,
    )  # fmt: skip
    if veto is not None:
        numbers = "; ".join(map(told, changes))
        remark = "" if veto.verdict is Verdict.DISTURBED else context.disturbance.remark()
        refused = veto.remarked(
            remark, context.places(veto.verdict), f"not accepted therefore: {numbers}", earlier.in_words()
        )
        return refused, change
    found = builds.weighed(found, allowed=context.differing_configs_allowed)
    accepted = proven(found, context.spike_in)
    # One memory trial of a boot: estimates of equal builds were seen to differ by 6 %.
    passes = found.verdict is Verdict.PASS
    memory, machine = (baseline.findings.memory, candidate.findings.memory), candidate.findings.environment
    model = candidate.findings.fingerprint.get("testbed_model", PRICED_CPU)
    estimate = "" if passes else estimate_in_words(*memory, machine.get("architecture"), model)
    return accepted.remarked(estimate, *context.remarks(found.verdict), earlier.in_words()), change
