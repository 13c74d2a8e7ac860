"""How much of a measurement the machine disturbed, by the evidence that its trials carry, and what that makes of it.

A trial that was disturbed is measured again (`pdrgate.search.patience`) and never counts as the SUT's. What is still
disturbed after its repeats is lost: where too much is, there is no answer, and the machine is why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pdrgate.gate.verdicts.interference import receives, taken
from pdrgate.hosts.cpus import format_cpu_list
from pdrgate.hosts.scheduling import may_go_first
from pdrgate.observers.heartbeat import UNSEEN
from pdrgate.observers.reading import Place
from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.phase import SPECIAL
from pdrgate.record.trial import Trial, by_boot
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.search.patience import Patience
from pdrgate.testbeds import Testbed
from pdrgate.values.units import Rate

_TOO_FEW_LEFT = 0.5
"""A share of the wanted trials: where more are lost, what is left supports no verdict on the SUT."""
_SUBSTANTIAL = 0.2
"""A share of the wanted trials: where more are lost, doubt is the machine's. Below it what scatters is the SUT's."""
_KINDS_TOLD = 2
_FEWEST = 4
"""Trials of one load that can show a flip of the SUT's: two of each of two speeds."""
_REMEDIES = {
    CauseKind.ALLOWANCE: "take a larger instance, or machines of your own",
    CauseKind.GENERATOR_LOST: "see on its machine why the generator's server fails or is restarted",
}
"""What helps against causes that freeing CPUs does not help against, by kind."""
_DOUBT = (Verdict.UNSTABLE, Verdict.INCONCLUSIVE)
_NOT_BY_TRIALS = (Verdict.ERROR, Verdict.CRASH)
"""What no trial has shown, so that no disturbed one explains it."""


@dataclass(frozen=True, slots=True)
class DisturbanceEvidence:
    """The evidence of one kind that trials were disturbed."""

    worst: Cause
    trials: int
    """The number of trials that had a cause of the kind."""

    def __str__(self) -> str:
        return f"{self.trials} times, at worst {self.worst.words}" if self.trials > 1 else self.worst.words


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What of the wanted trials the machine disturbed. A trial with its repeats is one that is wanted."""

    wanted: int = 0
    repeated: int = 0
    """Wanted trials that were measured more than once because they were disturbed."""
    lost: int = 0
    """Wanted trials that were disturbed to the last repeat."""
    time_share: float = 0.0
    """Part of the time of all trials, repeats included, that the disturbed ones took."""
    evidence: tuple[DisturbanceEvidence, ...] = ()
    """The most frequent kind first."""
    repeats: int = 0
    """Times that a disturbed trial was measured again, at most."""

    @classmethod
    def of(cls, trials: Sequence[Trial], patience: Patience = Patience()) -> Disturbance:  # noqa: B008  # frozen
        """The disturbance of trials in measured order, of one boot or of several that were measured in turn.

        Args:
            patience: with which they were measured.
        """
        chains = [chain for own in by_boot(trials).values() for chain in _chains(own, patience)]
        disturbed = [trial for trial in trials if trial.seen.disturbed]
        time = sum(trial.seconds for trial in trials)
        return cls(
            wanted=len(chains),
            repeated=sum(len(chain) > 1 and any(trial.seen.disturbed for trial in chain[:-1]) for chain in chains),
            lost=sum(bool(chain[-1].seen.disturbed) for chain in chains),
            time_share=sum(trial.seconds for trial in disturbed) / time if time else 0.0,
            evidence=_evidence(disturbed),
            repeats=patience.disturbed,
        )

    @property
    def lost_share(self) -> float:
        """Part of the wanted trials."""
        return self.lost / self.wanted if self.wanted else 0.0

    def weighed(self, judgement: Judgement | None, remedy: str) -> Judgement | None:
        """The judgement, or DISTURBED in its place where the machine is the reason; None stays None where it is not.

        A fault of testbed or tools stays what it is, and so does a regression that enough sound trials show.

        Args:
            judgement: what the trials came to; None where nothing speaks against them.
            remedy: what a user can do, see `remedy`.
        """
        if not self.lost or (judgement is not None and judgement.verdict in _NOT_BY_TRIALS):
            return judgement
        doubt = judgement is not None and judgement.verdict in _DOUBT
        if self.lost_share > _TOO_FEW_LEFT or (doubt and self.lost_share > _SUBSTANTIAL):
            without = f"; without them: {judgement.reason}" if judgement is not None else ""
            remedy = _REMEDIES.get(self.evidence[0].worst.kind, remedy) if self.evidence else remedy
            return Judgement(Verdict.DISTURBED, f"{self._why()}; {remedy}{without}")
        return judgement

    def explained(
        self, failure: Judgement | None, interference: str, remedy: str, beyond: str = ""
    ) -> Judgement | None:
        """A failure as `weighed`, with what else of the machine a reader should know; None where there is none.

        Args:
            beyond: why the SUT is not stable whatever was disturbed, see `beyond_the_machine`.
        """
        if failure is not None and failure.verdict is Verdict.UNSTABLE and beyond:
            found: Judgement | None = failure.remarked(beyond)
        else:
            found = self.weighed(failure, remedy)
        if found is None:
            return None
        remark = "" if found.verdict is Verdict.DISTURBED else self.remark()
        return found.remarked(remark, f"meanwhile {interference}" if interference else "")

    def remark(self) -> str:
        """What a reader of any other verdict should know; empty when nothing was disturbed."""
        if not (self.repeated or self.lost):
            return ""
        if not self.repeated:
            return f"{self.lost} of {self.wanted} trials left out, the machine had disturbed them ({self._kinds()})"
        lost = f", {self.lost} of them in vain" if self.lost else ""
        return (
            f"{self.repeated} of {self.wanted} trials repeated, the machine had disturbed them{lost} ({self._kinds()})"
        )

    def _why(self) -> str:
        repeats = f", after up to {self.repeats} repeats each" if self.repeats else ""
        return (
            f"{self.lost} of {self.wanted} trials were disturbed{repeats}, in {self.time_share:.0%} of the time "
            f"({self._kinds()})"
        )

    def _kinds(self) -> str:
        return "; ".join(map(str, self.evidence[:_KINDS_TOLD]))


def remedy(testbed: Testbed) -> str:
    """What a user can do against the disturbances of a testbed."""
    cpus = testbed.sut_cpus
    free = f"free CPU {format_cpu_list(cpus)} of all else" if cpus else "free the SUT's machine of all else"
    if testbed.steady and not may_go_first():
        return f"{free}, or let the guest go before it: pdrgate has no right to (capability SYS_NICE, see docs/ci.md)"
    return f"{free}, or {'lower sut.cpu_speed' if testbed.steady else 'use a guest of constant speed'}"


def beyond_the_machine(trials: Iterable[Trial], cpus: Collection[int]) -> str:
    """A clause on a load whose trials differ by more than a machine can hide from the heartbeat; empty where there is
    none.

    Only sound trials that a heartbeat watched count. Each has the share of the CPU given back that others had of it by
    the kernel's own account. Where programs receive, that account does not distinguish others from the SUT, and the
    trial is left out. The slowest and the fastest of a load are left out: one may be anything.
    """
    watched = {str(Place("heartbeat", str(cpu))) for cpu in cpus}
    rates: dict[float, list[float]] = {}
    for trial in trials:
        if (
            not trial.sound
            or trial.occasion.phase in SPECIAL
            or receives(trial)
            or not watched
            or watched - trial.seen.counters_after.keys()
        ):
            continue
        if left := 1.0 - taken(trial, cpus):
            rates.setdefault(trial.intended_load, []).append(trial.forwarding_rate / left)
    known = [(load, sorted(found)) for load, found in rates.items() if len(found) >= _FEWEST]
    told = [(load, found[1], found[-2]) for load, found in known]
    load, slow, fast = min(told, key=lambda one: one[1] / one[2] if one[2] else 1.0, default=(0.0, 1.0, 1.0))
    if slow >= (1.0 - UNSEEN) * fast:
        return ""
    return (
        f"of the trials that nothing disturbed at {Rate(load)} one forwarded {Rate(slow)}, another {Rate(fast)}, and "
        f"no more than {UNSEEN:.0%} passes unseen"
    )


def _chains(trials: Iterable[Trial], patience: Patience) -> list[list[Trial]]:
    """Trials of one boot, each with its repeats: what was measured again at once for not being sound."""
    found: list[list[Trial]] = []
    for trial in trials:
        last = found[-1] if found else []
        if last and patience.again(last) and last[-1].asked == trial.asked:
            last.append(trial)
        else:
            found.append([trial])
    return found


def _evidence(disturbed: Sequence[Trial]) -> tuple[DisturbanceEvidence, ...]:
    """The evidence by kind; a trial may have several kinds, and of one kind a cause for each CPU."""
    found = []
    for kind in CauseKind:
        causes = [[cause for cause in trial.seen.disturbed if cause.kind is kind] for trial in disturbed]
        if any(causes):
            worst = max((cause for own in causes for cause in own), key=lambda cause: cause.part)
            found.append(DisturbanceEvidence(worst, sum(map(bool, causes))))
    return tuple(sorted(found, key=lambda one: -one.trials))
