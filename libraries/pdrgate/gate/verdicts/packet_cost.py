"""The cost of a packet of whole builds: over all their replicates, against each other, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pdrgate.measurands import Cost, PartialDropRate
from pdrgate.measurands.counted.cost import idle_of, on_path, packet_cost, packets_per_poll, saturated
from pdrgate.measurands.rates.replacement import per_replacement, replacing_trials
from pdrgate.observers.function_names import condensed_stacks, with_callees, with_callers
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import CALLER
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, CostResult, FrameResult, FunctionChange, FunctionResult
from pdrgate.results.verdict import Verdict
from pdrgate.stats.intervals import sample_deviation

_LEAST = 0.1
"""Instructions per packet, for a function to be listed."""
_LEAST_FRAME = 0.005
"""Least share of all instructions of a frame, a function in one chain of callers, that is listed."""


def cost_result(replicates: Sequence[Sequence[Trial]], loss_ratio: float) -> CostResult | None:
    """What a packet costs, from the trials of all replicates of a build; None where it was not counted."""
    found: list[list[PathCost]] = []
    """Costs by function of each trial, for each replicate that was counted."""
    batches = []
    for trials in replicates:
        idle = idle_of(trials)
        if own := saturated(trials, loss_ratio):
            found.append([on_path(trial, idle) for trial in own])
            batches += [batch for trial in own if (batch := packets_per_poll(trial)) is not None]
    if not found:
        return None
    paths = [path for own in found for path in own]
    at_rest = [
        cost
        for trials in replicates
        if (cost := packet_cost([one for one in trials if one.occasion.phase == Phase.COST], idle_of(trials)))
        is not None
    ]
    small = [one.batch for one in at_rest if one.batch is not None]
    return CostResult(
        instructions=median(sum(each for each, _ in path.values()) for path in paths),
        batch=median(batches) if batches else None,
        trials=len(paths),
        functions=functions_of(found),
        lossless_load=at_rest[0].load if at_rest else None,
        lossless_instructions=median(one.instructions for one in at_rest) if at_rest else None,
        lossless_batch=median(small) if small else None,
        callers={name: own for trials in replicates for trial in trials for name, own in trial.seen.callers.items()},
        path=_path([trial for trials in replicates for trial in trials if trial.seen.stacks and trial.forwarded]),
    )


def replacement_cost(replicates: Sequence[Sequence[Trial]]) -> CostResult | None:
    """What the kernel does for a replacement, and packets meanwhile; None where it was not counted."""
    found = [[per_replacement(trial) for trial in own] for one in replicates if (own := replacing_trials(one))]
    trials = [functions for own in found for functions in own]
    if not trials:
        return None
    return CostResult(
        instructions=median(sum(each for each, _ in functions.values()) for functions in trials), batch=None,
        trials=len(trials), functions=functions_of(found), each="replacement",
    )  # fmt: skip


PathCost = Mapping[str, tuple[float, float]]
"""Instructions and calls per packet in a trial, by function."""


def functions_of(replicates: Sequence[Sequence[PathCost]]) -> tuple[FunctionResult, ...]:
    """The functions of all replicates, by trial, the largest first; without those of hardly any instructions."""
    names = dict.fromkeys(name for own in replicates for path in own for name in path)
    functions = [_function(name, replicates) for name in names]
    listed = (one for one in functions if one.instructions >= _LEAST)
    return tuple(sorted(listed, key=lambda one: (-one.instructions, one.name)))


def _function(name: str, replicates: Sequence[Sequence[PathCost]]) -> FunctionResult:
    each = [[path.get(name, (0.0, 0.0)) for path in own] for own in replicates]
    instructions = [value for own in each for value, _ in own]
    calls = [median(number for _, number in own) for own in each]
    return FunctionResult(
        name=name, instructions=median(instructions), calls=median(number for own in each for _, number in own),
        deviation=sample_deviation(instructions) if len(instructions) > 1 else None,
        fewest_calls=min(calls) if len(calls) > 1 else None, most_calls=max(calls) if len(calls) > 1 else None,
    )  # fmt: skip


def _path(trials: Sequence[Trial]) -> tuple[FrameResult, ...]:
    """Callers and what they call, per forwarded packet: each caller before what it calls, the largest first."""
    stacks: dict[str, tuple[int, int]] = {}
    for trial in trials:
        for stack, (instructions, calls) in trial.seen.stacks.items():
            known = stacks.get(stack, (0, 0))
            stacks[stack] = known[0] + instructions, known[1] + calls
    packets = sum(trial.forwarded for trial in trials)
    own = condensed_stacks(stacks, _LEAST_FRAME)
    whole = with_callees(own)

    def order(stack: str) -> list[tuple[int, str]]:
        return [(-whole[one], one) for one in reversed([*with_callers(stack)])]

    numbers: dict[str, int] = {}
    for stack in sorted(whole, key=order):
        numbers[stack] = len(numbers)
    return tuple(
        FrameResult(
            function=function, caller=numbers.get(caller), instructions=whole[stack] / packets,
            own=own.get(stack, (0, 0))[0] / packets, calls=own.get(stack, (0, 0))[1] / packets,
        )
        for stack in numbers
        for caller, _, function in (stack.rpartition(CALLER),)
    )  # fmt: skip


def notice_of_calls(functions: Sequence[FunctionChange]) -> str:
    """``fib_table_lookup is called twice for each packet, was once``; empty where no calls surely changed.

    Named first is what both builds call, and of these what changed most: a function that only one of them calls may
    have been inlined by the other's compiler.
    """
    changed = sorted(
        (one for one in functions if one.calls_changed),
        key=lambda one: (not one.calls_before or not one.calls_after, -_calls_change(one), one.function),
    )
    if not changed:
        return ""
    first, *others = changed
    before, after = _times(first.calls_before), _times(first.calls_after)
    sentence = (
        f"{first.label} is called {after} for each packet, was {before}"
        if first.calls_after
        else (f"{first.label} is not called any more, was {before} for each packet")
    )
    if not others:
        return sentence
    more = "another function is" if len(others) == 1 else f"{len(others)} other functions are"
    return f"{sentence}; {more} called more or less often as well"


def _calls_change(one: FunctionChange) -> float:
    return abs((one.calls_after or 0.0) - (one.calls_before or 0.0))


def _times(calls: float | None) -> str:
    rounded = round(calls or 0.0, 1)
    return {0.0: "not", 1.0: "once", 2.0: "twice"}.get(rounded, f"{rounded:g} times")


def at_odds(changes: Sequence[ChangeResult]) -> str:
    """What is to be said where the cost of a packet and the PDR do not go the same way; else nothing."""
    known = {change.measurand: change for change in changes}
    cost, pdr = known.get(Cost.name), known.get(PartialDropRate.name)
    if cost is None or pdr is None:
        return ""
    match pdr.verdict, cost.verdict:
        case Verdict.REGRESSION, Verdict.IMPROVEMENT:
            return (
                "a contradiction: a packet costs less, and yet fewer are held; look for what loses or delays packets "
                "before the CPU is used up, such as rings, budgets and locks"
            )
        case Verdict.IMPROVEMENT, Verdict.REGRESSION:
            return (
                "a contradiction: a packet costs more, and yet more are held; look at batches and queues, and at what "
                "differs besides the build"
            )
        case Verdict.REGRESSION, Verdict.PASS:
            return (
                "a packet costs as much as before: what changed is not in the instructions, but in what loses or "
                "delays packets before the CPU is used up, such as rings and budgets"
            )
    return ""


def percent(change: float) -> str:
    """``-6.8 %``."""
    return f"{100 * change:+z.1f} %"
