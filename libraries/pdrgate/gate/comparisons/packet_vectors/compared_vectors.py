"""What the runs of two builds come to: each packet's answers and cost, the change of all, and a verdict.

A run on a packet executes the same instructions each time, and so does one of the next load, for hashes have one seed.
Where that is not so, as of a program that goes by chance, loads are the replicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from pdrgate.builds.bpf_build import ProgramKind
from pdrgate.gate.comparisons.packet_vectors.loaded_runs import LoadedRuns, whole
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVector, PacketVectors
from pdrgate.gate.comparisons.packet_vectors.program_answer import ProgramAnswer, answers_differ, remarks_on_answers
from pdrgate.gate.comparisons.pairs.comparison_task import SIDES
from pdrgate.gate.verdicts.change_verdict import judged
from pdrgate.gate.verdicts.packet_cost import PathCost, functions_of
from pdrgate.measurands import BuildSeen, Cost, changes_by_rule
from pdrgate.measurands.counted.cost import PARTS_OF_COST
from pdrgate.measurands.counted.load_cost import LOAD_TOLERANCE, load_values
from pdrgate.measurands.functions.function_changes import function_changes
from pdrgate.replication import Samples
from pdrgate.results.model import ChangeResult, CostResult, FunctionChange, Side
from pdrgate.results.vectors import VectorFunction, VectorResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stats.pooled import Deviation
from pdrgate.traffic.frame_fields import frame_in_words

FEWEST_LOADS, MOST_LOADS = 2, 6
"""Loads of each build: the fewest where all counts are equal, else as many as it takes to exclude chance, up to the
most."""
_CONFIDENCE = 0.98
_NOTHING_BETWEEN = Deviation(0.0, 1.0)
"""Nothing but loads themselves makes loads deviate."""
_ALIKE = 0.2
"""A share of the tolerance: loads whose counts lie within it are equal."""
_DIGITS = 9
_LEAST = 0.1
"""Instructions per run that a function must change by to be listed."""
_NAMED = 5
"""Functions that are kept of a vector."""


@dataclass(frozen=True)
class ComparedVectors:
    """Both builds' loads so far, at least one of each.

    Args:
        tolerance: growth of the instructions per run that is accepted.
        load_tolerance: growth of what a load costs that is accepted; None: that is not judged.
    """

    capture: PacketVectors
    kind: ProgramKind
    loads: Mapping[Side, Sequence[LoadedRuns]]
    tolerance: float
    load_tolerance: float | None = None

    @property
    def counted(self) -> bool:
        """Whether instructions were counted."""
        return all(one.costs for loads in self.loads.values() for one in loads)

    @property
    def known(self) -> bool:
        """Whether no further load would change the verdict."""
        count = min(map(len, self.loads.values()))
        if count >= MOST_LOADS:
            return True
        if count < FEWEST_LOADS:
            return False
        return any(self.differences) or not self.counted or self._all_equal

    @property
    def _all_equal(self) -> bool:
        """Whether each packet cost as much in every load of both builds: an interrupt may cost some of a block anew."""
        for pair in self._vector_costs:
            costs = [cost for of_side in pair.values() for cost in of_side]
            if max(costs) - min(costs) > _ALIKE * self.tolerance * max(costs):
                return False
        return True

    @cached_property
    def answers(self) -> tuple[tuple[PacketVector, ProgramAnswer, ProgramAnswer], ...]:
        """What both builds did with each packet, the baseline first."""
        return tuple(
            (vector, self._answer("baseline", at), self._answer("candidate", at))
            for at, vector in enumerate(self.capture.vectors)
        )

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """How the candidate's answers are others, by packet; empty texts where they are not."""
        return tuple(answers_differ(before, after) for _, before, after in self.answers)

    def _answer(self, side: Side, at: int) -> ProgramAnswer:
        return ProgramAnswer(self.kind, tuple(load.answers[at] for load in self.loads[side]))

    # --- What it costs ---

    @cached_property
    def _vector_costs(self) -> tuple[Mapping[Side, tuple[float, ...]], ...]:
        """Instructions per run of each packet that both builds were run on, by load; empty ones of others."""
        return tuple(
            {side: tuple(whole(load.costs[at]) for load in loads) for side, loads in self.loads.items()}
            for at in range(len(self.capture.vectors) if self.counted else 0)
        )

    @cached_property
    def change(self) -> ChangeResult | None:
        """How the cost of a packet changed, over all of the capture; None where it was not counted."""
        base, candidate = self.samples("baseline"), self.samples("candidate")
        if not self.counted or not all((*base, *candidate)) or len(base) < FEWEST_LOADS:
            return None
        about = Cost.about
        samples = Samples(about.name, about.unit, about.better, self.tolerance, base, candidate)
        found = samples.change(_CONFIDENCE, _NOTHING_BETWEEN, (len(candidate), len(base)))
        # Of counts that are all equal the interval has no width, but for how numbers are rounded.
        low, high, value = (round(one, _DIGITS) + 0.0 for one in (found.lower, found.upper, found.change))
        return replace(found, lower=low, upper=high, change=value, boots_deviate=None)

    def samples(self, side: Side) -> tuple[float, ...]:
        """Instructions per packet of the capture, by load; empty where they were not counted."""
        return tuple(map(whole, self._paths(side)))

    def load_costs(self, side: Side) -> dict[str, tuple[float, ...]]:
        """Cost of each load by measurand, for measurands that the kernel reported of every load."""
        loads = [load_values(one.load_cost.by_name()) for one in self.loads[side]]
        return {name: tuple(one[name] for one in loads) for name in loads[0] if all(name in one for one in loads)}

    def reached(self, side: Side) -> tuple[float, ...]:
        """Share of the program's machine code that packets reach, by load; empty where that is not known."""
        loads = self.loads[side]
        return tuple(
            min(1.0, one.reached / one.load_cost.jited) for one in loads if one.reached and one.load_cost.jited
        )

    @cached_property
    def load_changes(self) -> tuple[ChangeResult, ...]:
        """How what a load costs changed, where that is judged."""
        before, after = (BuildSeen(values=self.load_costs(side)) for side in SIDES)
        return changes_by_rule(before, after, {LOAD_TOLERANCE: self.load_tolerance})

    def cost(self, side: Side) -> CostResult | None:
        """The cost of a packet by function; None where it was not counted."""
        paths = self._paths(side) if self.counted else []
        if not any(paths):
            return None
        return CostResult(
            instructions=median(map(whole, paths)), batch=None, trials=len(paths),
            functions=functions_of([[path] for path in paths]), alone=True,
        )  # fmt: skip

    @cached_property
    def functions(self) -> tuple[FunctionChange, ...]:
        """What changed, by function, over all of the capture."""
        return function_changes(self.cost("baseline"), self.cost("candidate"))

    def _paths(self, side: Side) -> list[PathCost]:
        """Instructions and calls per packet of the capture by function, by load."""
        found: list[PathCost] = []
        weights = [one.copies for one in self.capture.vectors]
        for load in self.loads[side] if self.counted else ():
            ran = [(cost, weight) for cost, weight in zip(load.costs, weights, strict=True) if cost]
            packets = sum(weight for _, weight in ran)
            path: dict[str, tuple[float, float]] = {}
            for cost, weight in ran:
                for name, (instructions, calls) in cost.items():
                    known = path.get(name, (0.0, 0.0))
                    path[name] = known[0] + instructions * weight / packets, known[1] + calls * weight / packets
            found.append(path)
        return found

    # --- What it comes to ---

    def vectors(self) -> tuple[VectorResult, ...]:
        """All packets, the worst first: other answers, then what grew most."""
        found = [self._vector(at) for at in range(len(self.capture.vectors))]

        def rank(one: VectorResult) -> tuple[bool, bool, float, int]:
            grown = 0.0 if one.difference else round(one.change or 0.0, 3)
            return not one.difference, not one.worse or bool(one.difference), -grown, one.number

        return tuple(sorted(found, key=rank))

    def _vector(self, at: int) -> VectorResult:
        vector, before, after = self.answers[at]
        costs = self._vector_costs[at] if self._vector_costs else None
        ran = costs is not None and all(all(each) for each in costs.values())
        times = [self._time(side, at) for side in SIDES]
        return VectorResult(
            number=vector.number, packet=frame_in_words(vector.packet), length=len(vector.packet),
            copies=vector.copies, baseline=before.verdict, candidate=after.verdict, difference=self.differences[at],
            outputs=(before.output.hex(), after.output.hex()) if self.differences[at] else None,
            cost=(median(costs["baseline"]), median(costs["candidate"])) if costs is not None and ran else None,
            worse=costs is not None and ran and self._surely_worse(costs["baseline"], costs["candidate"]),
            nanoseconds=(times[0], times[1]) if times[0] is not None and times[1] is not None else None,
            functions=self._changed(at) if ran else (),
        )  # fmt: skip

    def _time(self, side: Side, at: int) -> float | None:
        times = [time for load in self.loads[side] if (time := load.nanoseconds[at]) is not None]
        return median(times) if times else None

    def _surely_worse(self, before: Sequence[float], after: Sequence[float]) -> bool:
        """Whether each load of the candidate lies beyond each of the baseline, by more than loads of one deviate."""
        spread = max(max(each) - min(each) for each in (before, after))
        return min(after) > max(before) * (1.0 + self.tolerance) + spread

    def _changed(self, at: int) -> tuple[VectorFunction, ...]:
        before, after = ([load.costs[at] for load in self.loads[side]] for side in SIDES)
        found = []
        for name in dict.fromkeys(name for cost in (*before, *after) for name in cost):
            old, new = (median(cost.get(name, (0.0, 0.0))[0] for cost in costs) for costs in (before, after))
            if abs(new - old) >= _LEAST:
                found.append(VectorFunction(function=name, before=old, after=new))
        return tuple(sorted(found, key=lambda one: (-abs(one.after - one.before), one.function))[:_NAMED])

    def remarks(self) -> tuple[str, ...]:
        """What could not be run, compared or put back, in sentences."""
        remarks = remarks_on_answers([(vector.number, before, after) for vector, before, after in self.answers])
        if unkept := sorted({name for loads in self.loads.values() for one in loads for name in one.unkept}):
            remarks.append(f"maps that keep what a run leaves in them: {', '.join(unkept)}")
        return tuple(remarks)

    def judgement(self) -> Judgement:
        """The verdict: answers come first, then what they cost, then what loading costs."""
        found, loads = self._of_runs(), self.load_changes
        grown = [one for one in loads if one.verdict is Verdict.REGRESSION]
        if not grown or found.verdict is Verdict.ERROR:
            return found
        of_loads = judged(loads)
        if found.verdict is Verdict.REGRESSION:
            return found.remarked(of_loads.reason)
        return of_loads.remarked(found.reason)

    def _of_runs(self) -> Judgement:
        """The verdict by the runs alone."""
        vectors = self.vectors()
        if all(before.refused and after.refused for _, before, after in self.answers):
            first = self.answers[0]
            return Judgement(
                Verdict.ERROR, f"BPF_PROG_RUN runs no packet of {self.capture.name}: vector {first[0].number} "
                f"{first[1].verdict}; choose other packets, or measure on a data path",
            )  # fmt: skip
        if different := [one for one in vectors if one.difference]:
            worst = different[0]
            more = f"; {len(different)} of {len(vectors)} vectors are answered otherwise" if len(different) > 1 else ""
            return Judgement(Verdict.REGRESSION, f"vector {worst.number}: {worst.difference}{more}")
        alike = "is answered alike" if len(vectors) == 1 else "are answered alike"
        alike = f"{self.capture.title} {alike}"
        change = self.change
        if change is None:
            return Judgement(Verdict.PASS, f"{alike}; what they cost is not judged")
        worse = [one for one in vectors if one.worse]
        sentence = Cost.about.told(change, self.functions)
        if change.verdict is Verdict.REGRESSION:
            return Judgement(Verdict.REGRESSION, sentence).remarked(
                _worst(worse[0]) if worse and len(vectors) > 1 else ""
            )
        if worse:
            more = f"; {len(worse)} of {len(vectors)} vectors cost more" if len(worse) > 1 else ""
            return Judgement(Verdict.REGRESSION, f"{_worst(worse[0], functions=True)}{more}")
        if change.verdict is Verdict.PASS:
            before, after = change.baseline, change.candidate
            sentence = f"a packet costs {after:.1f} instructions, baseline {before:.1f} ({100 * change.change:+z.1f} %)"
        return Judgement(change.verdict, f"{alike}; {sentence}, tolerance {self.tolerance:.1%}")


def _worst(one: VectorResult, *, functions: bool = False) -> str:
    """``vector 3 costs 212 instructions, baseline 131 (+61.8 %), most of it in htab_map_lookup_elem (+70)``."""
    assert one.cost is not None
    before, after = one.cost
    grown = 100.0 * (one.change or 0.0)
    sentence = f"vector {one.number} costs {after:.0f} instructions, baseline {before:.0f} ({grown:+z.1f} %)"
    changes = [
        FunctionChange(
            function=each.function, before=each.before, after=each.after, change=each.after - each.before, sure=True
        )
        for each in one.functions
    ]
    where = PARTS_OF_COST.within(after - before, changes) if functions else ""
    return f"{sentence}, {where}" if where else sentence
