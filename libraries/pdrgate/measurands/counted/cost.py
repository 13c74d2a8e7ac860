"""The cost of a packet: instructions that the SUT's kernel executes for each packet that it forwards, by function.

The cost is counted and not timed. It is the same at any speed of the machine, and shows which function has changed.
Caches, branches and locks that others hold are not seen. Functions that the compiler has inlined count for their
callers.

It is judged at saturation, where the kernel takes packets in whole batches. There it repeats to 0.3 %. At a load that
leaves the kernel time it takes fewer at a time. Each batch costs the same, so one build was seen to spend 5 400 to 9
000 instructions on a packet. The cost at such a load is report-only. What the kernel does by itself (the tick) is
subtracted, as it was counted beside a program that has the CPU, or at rest where the tick never stops. Where builds are
compared, no function is subtracted more often than in the idle trials of both: a kernel that is busy without packets
could hide behind that what packets cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Self

from pdrgate.measurands.description import Description, Parts, Sentence, Tolerance
from pdrgate.measurands.measurand import REPORT_ONLY_IN, Ask, Measurand, Setting
from pdrgate.measurands.unit_spelling import Unit
from pdrgate.observers.kernel_roles import POLL_OF_DRIVER, TICK
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.trial import Trial
from pdrgate.results.model import ChangeResult, FunctionChange
from pdrgate.results.verdict import Verdict
from pdrgate.values.units import COST_TOLERANCE

_ONE_MORE = 1.0
"""Ticks that a trial may have more than its time holds: where it begins is chance."""
_WHOLE = 0.97
"""A share of the largest batch: equal trials on a quiet machine lie within it."""
_ALIKE = 0.005
"""Relative: trials of one boot whose costs lie within it agree; most do within half of that."""


INSTRUCTIONS = Unit(
    "instructions/packet", metric="instructions_per_packet", short="instr", axis="instr./packet", prefixed=False
)  # fmt: skip
TOLERANCE_OF_COST = Tolerance(COST_TOLERANCE, "cost_tolerance")
PARTS_OF_COST = Parts(change=lambda one: one.change, sure=lambda one: one.sure)


def _more_instructions(change: ChangeResult, functions: Sequence[FunctionChange] | None) -> str | None:
    return None if functions is None else cost_change_in_words(change, functions)


def cost_change_in_words(change: ChangeResult, functions: Sequence[FunctionChange]) -> str:
    """``a packet costs 6.4 % more instructions (+5.9 to +6.9 %), most of it in migrate_enable (+130)``."""
    low, high = sorted((change.lower, change.upper))
    more = "more" if change.change >= 0 else "fewer"
    between = f"{100 * low:+z.1f} to {100 * high:+z.1f} %"
    told = f"a packet costs {100 * abs(change.change):.1f} % {more} instructions ({between})"
    where = PARTS_OF_COST.within(change.candidate - change.baseline, functions)
    return ", ".join(filter(None, (told, _by_functions(change, functions), where)))


def _by_functions(change: ChangeResult, functions: Sequence[FunctionChange]) -> str:
    """``by function +1.0 %``, where that decided for a build whose whole changed by more; else empty."""
    if change.verdict is not Verdict.PASS or change.change <= change.tolerance or not functions:
        return ""
    return f"by function {100 * change_by_function(change, functions):+z.1f} %"


def change_by_function(change: ChangeResult, functions: Sequence[FunctionChange]) -> float:
    """What the cost changed by in all functions together, relative."""
    return sum(one.change for one in functions) / change.baseline


def decided_by_functions(
    changes: Sequence[ChangeResult], functions: Sequence[FunctionChange]
) -> tuple[ChangeResult, ...]:
    """The changes, where functions decide a REGRESSION of the cost whose interval spans the tolerance.

    By function a change repeats better than its whole does. A whole has in it what some trials do and others do not: a
    pool of pages is filled, a CPU's free pages go back to all CPUs. Each such burst is of a few functions, and is in no
    median of theirs where fewer than half of all trials have it. So it is a PASS where the functions' sum lies within
    the tolerance. It must lie in the interval as well: what is in another function in each trial is in no function's
    median, and stays in the whole.
    """
    return tuple(
        replace(one, verdict=Verdict.PASS)
        if one.measurand == Cost.name
        and one.verdict is Verdict.REGRESSION
        and functions
        and one.lower <= change_by_function(one, functions) <= one.tolerance
        else one
        for one in changes
    )


@dataclass(frozen=True, slots=True)
class PacketCost:
    """What a packet cost in some trials at one load: medians over them."""

    load: float
    """Offered, packets/s."""
    instructions: float
    """Instructions per forwarded packet."""
    batch: float | None
    """Packets that one poll of the driver took, None where that is not known."""
    functions: Mapping[str, tuple[float, float]]
    """Instructions and calls per forwarded packet, by function."""
    trials: int


@dataclass(frozen=True, slots=True)
class Cost(Measurand):
    """Instructions per forwarded packet at saturation, from the trials of the saturation throughput.

    Where no trial at saturation says what was executed, nothing more is asked for.
    """

    lossless: float
    """A load that every build holds, packets/s."""
    duration: float
    """Seconds of each trial at saturation."""
    loss_ratio: float
    """What a trial must lose more than, to be one of saturation."""
    count: int = 1
    """Trials at the lossless load, in each of the first two replicates."""
    most: int = 5
    """Trials at saturation in a replicate, where they do not agree."""
    idle: float = 0.25
    """Seconds for which the kernel is watched without packets: some 60 ticks."""
    paths: bool = False
    """Whether the first replicate has one trial more that follows calls, at the load that saturates."""

    about = Description(
        "cost", INSTRUCTIONS, "lower", "instructions that the SUT's kernel executes for a packet, at saturation",
        beside=True, tolerance=TOLERANCE_OF_COST, sentence=Sentence(_more_instructions), parts=PARTS_OF_COST,
    )  # fmt: skip

    @classmethod
    def of(cls, setting: Setting) -> Self:
        return cls(min(setting.loads), setting.duration, setting.loss_ratio, paths=setting.paths)

    def next(self, trials: Sequence[Trial]) -> Ask | None:
        if not any(trial.occasion.phase == Phase.SATURATION and trial.seen.functions for trial in trials):
            return None
        if not any(trial.occasion.phase == Phase.IDLE for trial in trials):
            return Ask(0.0, self.idle, Phase.IDLE)
        at_saturation = [trial for trial in trials if trial.occasion.phase == Phase.SATURATION]
        if len(at_saturation) < self.most and self._in_doubt(trials):
            return Ask(at_saturation[-1].intended_load, at_saturation[-1].intended_duration, Phase.SATURATION)
        replicate = max(trials[0].belonging.pair, trials[0].occasion.repeat)
        if replicate <= REPORT_ONLY_IN and sum(trial.occasion.phase == Phase.COST for trial in trials) < self.count:
            return Ask(self.lossless, self.duration, Phase.COST)
        if self.paths and replicate <= 1 and not any(trial.occasion.phase == Phase.PATH for trial in trials):
            highest = max(at_saturation, key=lambda one: one.intended_load)
            return Ask(highest.intended_load, highest.intended_duration, Phase.PATH)
        return None

    def _in_doubt(self, trials: Sequence[Trial]) -> bool:
        """Whether the trials at saturation do not agree by majority on what a packet costs.

        Where the emulator was late to take what was sent on, the kernel queued 700 of 8 400 packets, and all cost 2.5 %
        more. Half of that is in the median of two trials, and nothing in that of three.
        """
        idle = idle_of(trials)
        costs = [_whole(on_path(one, idle)) for one in saturated(trials, self.loss_ratio)]
        alike = [cost for cost in costs if abs(cost / median(costs) - 1) <= _ALIKE]
        return 2 * len(alike) <= len(costs) and bool(costs)

    def value(self, trials: Sequence[Trial]) -> float | None:
        found = self.at_saturation(trials)
        return None if found is None else found.instructions

    def at_saturation(self, trials: Sequence[Trial]) -> PacketCost | None:
        """What a packet costs when the SUT is offered more than it can take; None where it was not counted."""
        return packet_cost(saturated(trials, self.loss_ratio), idle_of(trials))


@dataclass(frozen=True, slots=True)
class AtSaturation(Measurand):
    """What is counted for a packet in the trials at saturation."""

    loss_ratio: float
    """What a trial must lose more than, to be one of saturation."""

    @classmethod
    def of(cls, setting: Setting) -> Self:
        return cls(setting.loss_ratio)


def saturated(trials: Sequence[Trial], loss_ratio: float) -> list[Trial]:
    """The counted trials of a replicate at saturation.

    One that the machine disturbed counts where there is no other; that the generator fell short does not matter, as
    long as it was too much for the SUT. Where the machine stalled in between, the kernel took fewer packets at a time,
    and they cost up to half as much again: trials whose batches are smaller than the replicate's largest are left out,
    where most are not. A SUT must not have the few of its trials counted that it likes best. Trials that are not
    `complete` are left out where one is.
    """
    found = [
        one
        for one in trials
        if one.occasion.phase == Phase.SATURATION
        and one.seen.functions
        and one.forwarded
        and one.steady_loss_ratio > loss_ratio
    ]
    found = [trial for trial in found if not trial.seen.disturbed] or found
    found = list(filter(complete, found)) or found
    batches = [packets_per_poll(trial) or 0.0 for trial in found]
    least = _WHOLE * max(batches, default=0.0)
    whole = [trial for trial, batch in zip(found, batches, strict=True) if batch >= least]
    return whole if 2 * len(whole) > len(found) else found


def complete(trial: Trial) -> bool:
    """Whether all packets of a trial's bursts were handled: what was done for one that is lost, others would pay.

    Packets that are sent when they are due are lost at saturation, and are no bursts.
    """
    return bool(trial.under_way) or not trial.lost


def with_pair_beside(own: Sequence[Trial], others: Sequence[Trial]) -> Sequence[Trial]:
    """A replicate, and behind it what the other boots of its pair were granted: no side is granted more than the other.

    That is their idle trials, which `idle_of` finds, and their requests, whose waits `RequestCost` looks at.

    Args:
        own: trials of one boot.
        others: those of other boots, of any pair.
    """
    pair = own[0].belonging.pair if own else 0
    return [*own, *(one for one in others if one.belonging.pair == pair and _grants(one))]


def _grants(one: Trial) -> bool:
    return one.occasion.phase == Phase.IDLE or one.transfer.requests > 0


def idle_of(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials in which nothing was sent: that of the first trial's boot, and those of the boots that it is compared
    with. Empty where its own is not among them."""
    found = [one for one in trials if one.occasion.phase == Phase.IDLE and one.seen.functions]
    own = [one for one in found if one.belonging.boot == trials[0].belonging.boot]
    return (own[0], *(one for one in found if one not in own)) if own else ()


def packet_cost(trials: Sequence[Trial], idle: Sequence[Trial] = ()) -> PacketCost | None:
    """What a packet cost in trials at one load; None where none of them was counted."""
    counted = [trial for trial in trials if trial.seen.functions and trial.forwarded]
    if not counted:
        return None
    each = [on_path(trial, idle) for trial in counted]
    names = dict.fromkeys(name for functions in each for name in functions)
    batches = [batch for trial in counted if (batch := packets_per_poll(trial)) is not None]
    return PacketCost(
        load=median(trial.intended_load for trial in counted),
        instructions=median(map(_whole, each)),
        batch=median(batches) if batches else None,
        functions={
            name: (
                median(functions.get(name, (0.0, 0.0))[0] for functions in each),
                median(functions.get(name, (0.0, 0.0))[1] for functions in each),
            )
            for name in names
        },
        trials=len(counted),
    )


def on_path(trial: Trial, idle: Sequence[Trial] = ()) -> dict[str, tuple[float, float]]:
    """Instructions and calls per forwarded packet by function, without what the kernel does by itself.

    Args:
        idle: idle trials, that of the trial's own boot first; see `idle_of`.
    """
    own = _by_itself(trial, idle)
    found = {}
    for name, (instructions, calls) in trial.seen.functions.items():
        if name != USER_SPACE:
            by_itself = own.get(name, (0.0, 0.0))
            left = max(0.0, instructions - by_itself[0]), max(0.0, calls - by_itself[1])
            if any(left):
                found[name] = left[0] / trial.forwarded, left[1] / trial.forwarded
    return found


def _whole(path: Mapping[str, tuple[float, float]]) -> float:
    return sum(instructions for instructions, _ in path.values())


def packets_per_poll(trial: Trial) -> float | None:
    """How many packets a poll of the driver took; None where it is not known what polls."""
    polls = POLL_OF_DRIVER.calls(trial.seen.functions)
    return trial.forwarded / polls if polls else None


def _by_itself(trial: Trial, idle: Sequence[Trial]) -> dict[str, tuple[float, float]]:
    """Instructions and calls by function that fall on a trial without its packets: the least of all idle trials.

    They are counted by ticks, which a halted CPU has fewer of, and kernels of another HZ more. The kernel counts its
    ticks itself, so a trial has no more of them than its own idle trial had in as many seconds.
    """
    each = [_ticks(one) for one in idle]
    if all(each):
        now = _ticks(trial)
        if own := idle[0].seen.counted if idle else 0.0:
            now = min(now, _ONE_MORE + trial.seen.counted * each[0] / own)
    else:
        now, each = trial.seen.counted, [one.seen.counted for one in idle]
    if not idle or not all(each):
        return {}
    return {
        name: (
            now * min(one.seen.functions.get(name, (0, 0))[0] / time for one, time in zip(idle, each, strict=True)),
            now * min(one.seen.functions.get(name, (0, 0))[1] / time for one, time in zip(idle, each, strict=True)),
        )
        for name in idle[0].seen.functions
    }


def _ticks(trial: Trial) -> float:
    return TICK.calls(trial.seen.functions)
