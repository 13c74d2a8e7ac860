"""The loop of a comparison: it asks a replication for pairs until the rule has its answer, and keeps what it gets."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace

from pdrgate.gate.comparisons.pairs.builds_boots import BuildsBoots
from pdrgate.gate.comparisons.pairs.compared_trials import ComparedTrials
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES, ComparisonTask
from pdrgate.gate.comparisons.pairs.failed_boots import too_many_failed
from pdrgate.gate.comparisons.pairs.foreseen import PairAlone
from pdrgate.gate.comparisons.pairs.measured_pairs import MeasuredPairs
from pdrgate.gate.comparisons.pairs.pairs_judgement import PairsSamples
from pdrgate.gate.comparisons.pairs.pairs_noise import tell_resolvable
from pdrgate.gate.comparisons.pairs.pairs_plan import PairsClock
from pdrgate.gate.comparisons.pairs.resumed_pairs import resumed_pairs
from pdrgate.gate.comparisons.pairs.tries import Earlier, Tries
from pdrgate.gate.run.pairs_file import StoredStep
from pdrgate.gate.run.progress import Estimate
from pdrgate.gate.verdicts.change_verdict import shown_value, tolerances_asked
from pdrgate.measurands import Cost, Description, TolerancesAsked
from pdrgate.measurands.memory.memory_doubt import memory_may_have_changed
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.record.trial import Trial
from pdrgate.replication import PairsRule, Samples
from pdrgate.replication.replicates import Replicates
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.units import change_in_words


class PairsLoop:
    """Measures the pairs of one comparison: those that the rule wants, and the plan allows."""

    def __init__(
        self, task: ComparisonTask, compared: ComparedTrials, boots: BuildsBoots, alone: PairAlone | None = None
    ) -> None:
        session = task.session
        boots.on_trial, boots.on_first_boot = self._on_trial, self._begin_on
        self.replication = boots
        self.found = MeasuredPairs()
        self.tries = Tries(
            session.experience, f"{session.record.run} {task.longname}".rstrip(), afresh=session.options.afresh,
            resumed=session.record.resumed, observer=session.observer,
        )  # fmt: skip
        self._task = task
        self._compared = compared
        self._alone = alone
        self._vouched: frozenset[Verdict] | None = None
        """Verdicts that the first pair may end it with; None before it was measured."""
        self._clock = PairsClock(task.plan)
        self._reporting = threading.Lock()
        """Held while a trial is reported: several SUTs may be measured at once."""
        self._outlooks: dict[tuple[int, int], tuple[int, int]] = {}
        """Outlook of the comparison by numbers of boots and earlier pairs.

        Every trial asks for it, and only a boot changes it.
        """

    def run(self) -> None:
        """Measure pairs until the rule has its answer, or none can be had."""
        with contextlib.closing(self.replication):
            self._resume()
            while (number := self._next_number()) is not None:
                self._take(self.replication.next(number, wanted=self._is_certain))

    @property
    def failure(self) -> Judgement | None:
        """Why no further pair is measured, though the rule has no answer."""
        baseline_came_up = self.replication.baseline_came_up and not self._task.one_content
        return self.replication.failure or too_many_failed(
            self.found.boots, self._task.labels, baseline_came_up=baseline_came_up
        )

    # --- What is asked for, and what it came to ---

    def _next_number(self) -> int | None:
        """The pair to measure next; None where the rule has its answer, there can be none, or the time is up."""
        if self.failure is not None or self.samples().standing().verdict is not None:
            return None
        number = self.found.pairs + 1
        if not self._in_time(number):
            self._task.session.observer.warned("the time is up: no further boots")
            return None
        self.found.now.clear()
        return number

    def _is_certain(self, pair: int) -> bool:
        """Whether that pair will be measured, whatever those before it show, as far as time is left for it."""
        known = self.earlier if self.found.pairs else self.tries.earlier
        return self._rule.wants(pair, known.pairs) and self._in_time(pair)

    def _take(self, found: Replicates) -> None:
        """Take a pair, or a boot that failed; it is on disk before the next is begun."""
        if not found.results:
            return
        self.found.add(found)
        whole = not found.results[-1].failure
        if whole:
            self._clock.pair_ended()
        self._store(found)
        self._find_tries()
        if whole:
            self._report_pair()

    # --- Where it stands ---

    def samples(self, tolerance: float | None = None) -> PairsSamples:
        """All pairs so far, by a tolerance or by the plan's."""
        return PairsSamples(
            rule=self._rule, fresh=self._fresh(tolerance), pairs=self.found.pairs, earlier=self.earlier
        )  # fmt: skip

    @property
    def earlier(self) -> Earlier:
        """The tries that had all that is compared now, where they do not contradict it."""
        return self.tries.earlier.having([one.name for one in self.compared]).agreeing(self._fresh())

    @property
    def compared(self) -> tuple[Description, ...]:
        """What all boots have: the cost of a packet is not counted everywhere, and not judged wherever it is."""
        asked = self.accepts()
        return self.found.everywhere([one for one in self._compared.by.compared if one.judged(asked)])

    @property
    def left(self) -> Estimate | None:
        """What the comparison still takes: as many pairs as the rule may want, and the budget allows.

        None before the first pair has shown what one takes.
        """
        if not self._clock.has_timed_a_pair:
            return None
        known = len(self.found.boots), self.tries.earlier.pairs
        if known not in self._outlooks:
            self._outlooks = {known: self._rule.outlook(self.samples().all, self.earlier.pairs)}
        return self._clock.left(self._outlooks[known], self.found.pairs, self.replication.facts.steady)

    def _fresh(self, tolerance: float | None = None) -> list[Samples]:
        """The samples of this try's pairs."""
        asked = self.accepts(tolerance)
        return [
            Samples(
                one.name, one.unit, one.better, one.tolerance.accepted(asked),
                self.found.values(one.name, "baseline"), self.found.values(one.name, "candidate"),
                self._compared.by.pairs_deviate.get(one.name),
            )
            for one in self.compared
        ]  # fmt: skip

    @property
    def _rule(self) -> PairsRule:
        plan = self._task.plan
        affordable = self._clock.affordable(self.found.pairs, self.replication.facts.steady)
        rule = PairsRule(
            most=plan.pairs, comparisons=plan.comparisons, affordable=affordable, alone=self._ends_alone
        )  # fmt: skip
        return replace(rule, fewest=rule.most, fewest_scattered=rule.most) if plan.whole else rule

    @property
    def is_alone(self) -> bool:
        """Whether one pair is enough, for what it shows was known before."""
        return self.found.pairs == 1 and bool(self._ends_alone) and self.samples().standing().verdict is not None

    @property
    def _ends_alone(self) -> frozenset[Verdict]:
        """The verdicts that one pair may end it with."""
        if self._alone is None or self.found.pairs > 1:
            return frozenset()
        if not self.found.pairs:
            return self._alone.hoped
        if self._vouched is None:
            sides = {side: self._compared.accounted(self.replication.sides[side], self.found.trials) for side in SIDES}
            before, after = (sides[side].findings for side in SIDES)
            seen = [memory_of([one for one in self.found.trials if one.belonging.side == side]) for side in SIDES]
            doubt = all(seen) and memory_may_have_changed(seen[0][-1], seen[1][-1])
            values = [self.found.values(Cost.name, side) for side in SIDES]
            self._vouched = (
                frozenset() if doubt or not all(values)
                else self._alone.vouched((before.cost, after.cost), (values[0][0], values[1][0]), before.fingerprint)
            )  # fmt: skip
        return self._vouched

    def accepts(self, tolerance: float | None = None) -> TolerancesAsked:
        asked = self._task.plan.tolerance if tolerance is None else tolerance
        return tolerances_asked(self._task.session.options, asked, self.replication.facts.cost_tolerance)

    def _in_time(self, pair: int) -> bool:
        return self._clock.in_time(pair, self.found.pairs, self.replication.facts.steady)

    # --- What it reports and keeps ---

    def _begin_on(self, fingerprint: Mapping[str, str]) -> None:
        asked = self.accepts()
        tolerances = {one.name: one.tolerance.accepted(asked) for one in self._compared.by.compared}
        tell_resolvable(self._task, fingerprint, tolerances)

    def _on_trial(self, one: Trial, replayed: bool) -> None:
        with self._reporting:
            self.found.take(one)
            self._compared.progress(one, self.found.now, self.found.count, self.left, replayed=replayed)

    def _report_pair(self) -> None:
        """Report to the observer where the comparison stands after a pair."""
        so_far = {
            one.measurand: f"; all pairs {change_in_words(one.change, one.lower, one.upper)}"
            for one in self.samples().standing().changes
        }
        values = []
        for one in self.compared:
            baseline, candidate = (self.found.values(one.name, side)[-1] for side in SIDES)
            ours, theirs = shown_value(candidate, one.unit), shown_value(baseline, one.unit)
            change = f", {candidate / baseline - 1:+z.1%}" if baseline else ""
            values.append(f"{one.name} {ours} against {theirs}{change}{so_far.get(one.name, '')}")
        pair = f"pair {self.found.pairs} of at most {self._task.plan.pairs}"
        self._task.session.observer.said(f"{pair}: {' | '.join(values)}")

    def _find_tries(self) -> None:
        self.tries.find(
            self._task.identities, {side: self.replication.sides[side].findings.fingerprint for side in SIDES}
        )

    def _store(self, found: Replicates) -> None:
        task, replication = self._task, self.replication
        task.session.record.pairs.append(
            StoredStep(
                test=task.longname, scenario=task.scenario.name,
                builds={str(side): label for side, label in task.labels.items()},
                identities={str(side): identity for side, identity in task.identities.items()},
                elapsed=self._clock.elapsed, boots=tuple(found.results), loads=replication.loads,
                latency_loads=replication.latency_loads, sides=replication.sides, facts=replication.facts,
            )
        )  # fmt: skip

    def _resume(self) -> None:
        """Take over the pairs of the run that is continued, its failures and the time it took.

        Raises DataError when they are of other builds, or what was measured in their boots is not there.
        """
        task = self._task
        record = task.session.record
        steps = record.pairs.take(task.longname, task.scenario.name)
        self.found.take_over(
            steps,
            resumed_pairs(record.folder, task.longname, task.scenario.name, task.builds, steps, record.earlier.all),
        )
        if steps:
            last = steps[-1]
            self._clock.spent = last.elapsed
            self.replication.go_on_from(last.loads, last.latency_loads, last.sides, last.facts)
        self._find_tries()
        if self.found.boots:
            taken_over = f"{self.found.pairs} pairs of boots are taken over from the run that is continued"
            task.session.observer.said(taken_over)
