"""How much of an eBPF program its packets ran, by the counted functions of a packet and by the size of its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands.counted.load_cost import ProgramSize
from pdrgate.measurands.description import Description, Rule
from pdrgate.measurands.measurand import Measurand
from pdrgate.measurands.observed import gained_by_places
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.observers.function_names import PROGRAM
from pdrgate.observers.set_up_costs import REACHED
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import Findings, FunctionResult

PROGRAM_ANSWER = "program"
"""Key of a build's environment under which its program's answer to a packet stands."""
_INTERPRETER = "bpf_prog_run"
"""Part of the name of the kernel's interpreter, which runs programs where there is no JIT compiler."""
_BYTES = 4.0
"""Bytes of a machine instruction of a compiled program, about."""


class CodeReached(Measurand):
    """The share of a program's machine code that ran in the trial in which most of it did."""

    about = Description(
        "code reached", Unit("", metric="code_reached_ratio", prefixed=False), "higher",
        "share of the eBPF program's machine code that packets reached",
        rule=Rule.REPORT_ONLY,
    )  # fmt: skip

    def value(self, trials: Sequence[Trial]) -> float | None:
        loaded = [one for one in trials if one.occasion.phase != Phase.IDLE]
        reached = [found for one in loaded if (found := gained_by_places(one, "program", REACHED))]
        size = ProgramSize().value(loaded)
        return min(1.0, max(reached) / size) if reached and size else None


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a packet executes of a build's programs."""

    instructions: float
    """Instructions for a packet."""
    size: float
    """Bytes of the program's machine code; 0 where the kernel does not report it."""
    reached: float | None = None
    """Share of that code that ran; None where nobody saw which of it did, as in results of earlier versions."""

    @property
    def most(self) -> float | None:
        """The share of the code that ran, or what it can be at most, about; None where the size is not known.

        A loop executes an instruction several times, so the true share may be less than what instructions show.
        """
        if self.reached is not None:
            return self.reached
        return min(1.0, self.instructions * _BYTES / self.size) if self.size else None


def program_run(findings: Findings) -> ProgramRun | None:
    """What a packet executes of the programs; None where functions were not counted, or programs have no names."""
    cost = findings.cost
    own = () if cost is None else [one for one in cost.functions if one.name.startswith(PROGRAM)]
    if not own:
        return None
    values = {one.name: one.value for one in findings.measurands}
    return ProgramRun(
        sum(one.instructions for one in own), values.get(ProgramSize.name, 0.0), values.get(CodeReached.name)
    )


def ran_none(functions: Sequence[FunctionResult]) -> bool:
    """Whether packets whose functions were counted ran no eBPF program."""
    return bool(functions) and not any(one.name.startswith(PROGRAM) or _INTERPRETER in one.name for one in functions)
