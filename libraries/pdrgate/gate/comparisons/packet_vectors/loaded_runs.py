"""One load of a build, run on all packets of a capture: what it answered, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pdrgate.bpf.prog_run import ALWAYS_RUN, PacketRun, PacketRuns
from pdrgate.bpf.programs import LoadCost, loaded
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_programs import sut_names
from pdrgate.gate.comparisons.packet_vectors.packet_vector import PacketVector
from pdrgate.gate.verdicts.packet_cost import PathCost
from pdrgate.observers.reading import Counter
from pdrgate.observers.set_up_costs import PROGRAM_PLACE, REACHED
from pdrgate.record.stretch import Functions
from pdrgate.testbeds import Testbed
from pdrgate.this_process.checkout import own_testbed_file
from pdrgate.values.errors import TestbedError

COUNTED_RUNS, TIMED_RUNS = 14, 200
"""Runs of a packet beside `ALWAYS_RUN`: counts repeat exactly, and times do not."""


@dataclass(frozen=True, slots=True)
class LoadedRuns:
    """What became of one load; in the order of the packets."""

    answers: tuple[PacketRun, ...]
    costs: tuple[PathCost, ...]
    """Empty where nothing is counted; a packet that was refused has none."""
    nanoseconds: tuple[float | None, ...]
    """Medians by the kernel's clock; None where runs are counted, which takes longer."""
    load_cost: LoadCost
    unkept: tuple[str, ...]
    """Maps that do not become what they were before each run."""
    reached: int = 0
    """Bytes of the program's machine code that ran on any packet; 0 where that is not counted."""


_Found = tuple[tuple[PacketRun, ...], tuple[PathCost, ...], int]
"""Answers and costs by packet, and the bytes of code that all of them reach."""


class RunsOfTestbed:
    """Runs builds on a testbed that is up.

    Args:
        testbed: its first hop runs them.
    """

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        executed = testbed.executed
        self._counts = executed is not None and bool(executed.programs())
        self.uncounted = self._why()
        """Why instructions are not counted; empty when they are."""

    @property
    def runs(self) -> int:
        """How often a packet is run in a load."""
        return ALWAYS_RUN + (COUNTED_RUNS if self._counts else TIMED_RUNS)

    def load(self, build: BpfBuild, vectors: Sequence[PacketVector]) -> LoadedRuns:
        """Load a build, with its maps filled, and run it on all packets. Raises TestbedError."""
        hop = self._testbed.hops[0]
        names: Mapping[str, str] = sut_names(hop)
        with loaded(hop.host, build, build.load_as, names, alike=True) as program:
            runs: PacketRuns | None = None
            try:
                runs = PacketRuns(program, [one.packet for one in vectors], int(names["@in.ifindex"]))
                found = self._counted(runs, len(vectors)) if self._counts else self._timed(runs, len(vectors))
                answers, costs, reached = found
                times = tuple(median(one.nanoseconds) if one.nanoseconds else None for one in answers)
                nanoseconds = tuple(None for _ in times) if self._counts else times
                return LoadedRuns(answers, costs, nanoseconds, program.cost, runs.unkept, reached)
            finally:
                if runs is not None:
                    runs.close()
                program.leave()

    def _timed(self, runs: PacketRuns, count: int) -> _Found:
        return tuple(runs.run(number, TIMED_RUNS) for number in range(count)), (), 0

    def _counted(self, runs: PacketRuns, count: int) -> _Found:
        executed = self._testbed.executed
        assert executed is not None
        (observer,) = executed.programs()  # only now: what has just been loaded has a place of its own in the kernel
        answers, costs = [], []
        for number in range(count):
            observer.begin()
            try:
                answers.append(runs.run(number, COUNTED_RUNS))
            finally:
                seen = observer.end()
            costs.append({} if answers[-1].refused else cost_of_a_run(seen.functions, self.runs))
        if not any(costs) and not all(one.refused for one in answers):
            raise TestbedError(
                f"{self._testbed.hops[0].host.name} ran the program and shows no instruction of it; is its JIT off? "
                "sysctl net.core.bpf_jit_enable=1"
            )
        observer.begin()
        try:
            for number in range(count):
                runs.run(number)
        finally:
            seen = observer.end()
        return tuple(answers), tuple(costs), seen.after.get(Counter(PROGRAM_PLACE, REACHED), 0)

    def _why(self) -> str:
        if self._counts:
            return ""
        executed = self._testbed.executed
        why = executed.uncounted if executed is not None else ""
        return (
            f"instructions are not counted here: {why or 'a processor tells no run from what is around it'}; an "
            f"emulated guest counts them, such as {own_testbed_file('steady-guest')}"
        )


def cost_of_a_run(counted: Functions, runs: int) -> PathCost:
    """Instructions and calls per run, by function."""
    return {name: (instructions / runs, calls / runs) for name, (instructions, calls) in counted.items()}


def whole(cost: PathCost) -> float:
    """Instructions of all functions."""
    return sum(instructions for instructions, _ in cost.values())
