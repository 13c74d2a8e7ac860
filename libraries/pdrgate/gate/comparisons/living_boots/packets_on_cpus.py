"""Trials that show what the CPUs of a guest do to each other for a packet.

The guests of pairs have one CPU, whose speed can be held. What several CPUs share is counted and not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.guests.guest import GuestError
from pdrgate.measurands import Ask
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.measurands.memory.scaling import LOCKSTEP_TRIALS, tells_rate, with_scaling
from pdrgate.measurands.memory.shared_lines import OF_SEVERAL_CPUS
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import MemoryResult, Side
from pdrgate.results.verdict import Judgement
from pdrgate.values.errors import PdrGateError

_PACKETS, _LOAD = 1024, 12e3
"""Packets of a trial for each CPU, and packets/s at which all are sent: more than CPUs that execute in turn take where
each access is seen, so that none has nothing to do, and few enough at a time for them all to wait in the queues."""
_TRIES = 3
"""Times that a trial is tried, for it shows nothing where this machine was too busy to send packets as fast as they
were taken."""

_IN_TURN, _ALONE, _FLOOD = 1024, 1536, 20e3
"""Packets of a trial in which CPUs execute in turn, for each CPU and for one alone; and packets/s at which they are
sent.

Half of the packets are enough. CPUs take up half of that rate at most, for they rest behind packets.
"""

BOOTS = 2
"""Times that guests are booted, where one of them ends before all is seen."""


@dataclass(frozen=True, slots=True)
class SeveralCpusSeen:
    """What several CPUs do to each other for a packet, with each build."""

    results: Mapping[Side, MemoryResult] = field(default_factory=dict)
    """What is known of both builds, or nothing."""
    unmeasured: tuple[str, ...] = ()
    """What was to be measured and was not, each with why, in a sentence."""
    crash: Judgement | None = None
    """CRASH of the candidate, where its guests died each time, and the baseline's did not; else None."""


def see_packets(sut: PreparedSut, cpus: int, trials: int = 1) -> None:
    """Measure trials of a SUT of so many CPUs.

    A trial in which no memory was seen is made again. Raises TestbedError.
    """
    for _ in range(trials):
        for _ in range(_TRIES):
            sut.measure(Ask(_LOAD, cpus * _PACKETS / _LOAD, Phase.MEMORY))
            if memory_of(sut.trials[-1:]):
                break


def run_in_lockstep(
    suts: Sequence[PreparedSut], cpus: int, lose: Callable[[str], None], phases: Sequence[Phase] = LOCKSTEP_TRIALS
) -> None:
    """Trials in which the CPUs of SUTs execute in turn. What goes wrong costs the scaling alone: ``lose`` gets it.

    They end at the first SUT without a sound trial in `_TRIES` tries. As a rule, programs read its packets.

    Raises:
        GuestError: a SUT died.
    """
    try:
        for phase in phases:
            packets = cpus * _IN_TURN if phase is Phase.ALL_CPUS else _ALONE
            for sut in suts:
                tries = (tells_rate(sut.measure(Ask(_FLOOD, packets / _FLOOD, phase))) for _ in range(_TRIES))
                if not any(tries):
                    return
    except PdrGateError as error:
        lose(f"how much more {cpus} CPUs handle was not measured: {error}")
        if isinstance(error, GuestError):
            raise


def not_shared(why: object) -> str:
    """What is lost with a guest of several CPUs, in a sentence."""
    return f"what several CPUs share was not measured: {why}"


def seen_of_both(made: Mapping[Side, Sequence[Trial]], trials: int, lost: Iterable[str] = ()) -> SeveralCpusSeen:
    """What the trials of both builds come to, at least so many of each.

    Args:
        lost: what went wrong meanwhile, in sentences.
    """
    found = {side: memory_result(memory_of(own), OF_SEVERAL_CPUS) for side, own in made.items()}
    results = {
        side: replace(one, values=with_scaling(one, made[side]))
        for side, one in found.items()
        if one is not None and one.trials >= trials
    }
    blind = " and ".join(f"the {side}" for side in made if side not in results)
    why = [not_shared(f"too few trials of {blind} had all CPUs handle packets at once")] if blind else []
    return SeveralCpusSeen({} if blind else results, tuple(dict.fromkeys([*lost, *why])))
