"""How much of an eBPF program its packets ran, by the counted functions of a packet and by the size of its code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.measurands.counted.load_cost import ProgramSize
from pdrgate.observers.function_names import PROGRAM
from pdrgate.results.model import Findings, FunctionResult

PROGRAM_ANSWER = "program"
"""Key of a build's environment under which its program's answer to a packet stands."""
_INTERPRETER = "bpf_prog_run"
"""Part of the name of the kernel's interpreter, which runs programs where there is no JIT compiler."""
_BYTES = 4.0
"""Bytes of a machine instruction of a compiled program, about."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a packet executes of a build's programs."""

    instructions: float
    """Instructions for a packet."""
    size: float
    """Bytes of the program's machine code; 0 where the kernel does not report it."""

    @property
    def most(self) -> float | None:
        """The largest share of the code that a packet can have run, about; None where the size is not known.

        A loop executes an instruction several times, so the true share may be less.
        """
        return min(1.0, self.instructions * _BYTES / self.size) if self.size else None


def program_run(findings: Findings) -> ProgramRun | None:
    """What a packet executes of the programs; None where functions were not counted, or programs have no names."""
    cost = findings.cost
    own = () if cost is None else [one for one in cost.functions if one.name.startswith(PROGRAM)]
    if not own:
        return None
    size = next((one.value for one in findings.measurands if one.name == ProgramSize.about.name), 0.0)
    return ProgramRun(sum(one.instructions for one in own), size)


def ran_none(functions: Sequence[FunctionResult]) -> bool:
    """Whether packets whose functions were counted ran no eBPF program."""
    return bool(functions) and not any(one.name.startswith(PROGRAM) or _INTERPRETER in one.name for one in functions)
