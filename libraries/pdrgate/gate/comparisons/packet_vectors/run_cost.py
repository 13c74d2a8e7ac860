"""What a run of a program costs: the program, and all that it calls. The call that runs it is no part of it."""

from __future__ import annotations

from pdrgate.gate.verdicts.packet_cost import PathCost
from pdrgate.record.stretch import Functions


def cost_of_a_run(counted: Functions, runs: int) -> PathCost:
    """Instructions and calls per run, by function."""
    return {name: (instructions / runs, calls / runs) for name, (instructions, calls) in counted.items()}


def whole(cost: PathCost) -> float:
    """Instructions of all functions."""
    return sum(instructions for instructions, _ in cost.values())
