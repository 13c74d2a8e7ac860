"""Both builds on guests of several CPUs, once beside the pairs: what the CPUs do to each other for a packet.

The guests of pairs have one CPU, whose speed can be held. What several CPUs share is counted and not timed: one more
boot of each build tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from pdrgate.errors import PdrGateError
from pdrgate.fate import INSIDE
from pdrgate.gate.comparisons.pairs.compared_builds import SIDES
from pdrgate.gate.comparisons.pairs.comparison_task import ComparisonTask
from pdrgate.gate.sut.open_loop_sut import OpenLoopSut
from pdrgate.gate.sut.prepared_sut import Identity
from pdrgate.measurands.memory.memory_changes import memory_result
from pdrgate.measurands.memory.memory_trials import memory_of
from pdrgate.measurands.memory.scaling import LOCKSTEP_TRIALS, tells_rate, with_scaling
from pdrgate.measurands.memory.shared_lines import OF_SEVERAL_CPUS
from pdrgate.phase import Phase
from pdrgate.results.model import MemoryResult, Side
from pdrgate.trial import Trial

_TRIALS = 2
_PACKETS, _LOAD = 1024, 12e3
"""Packets of a trial for each CPU, and packets/s at which all are sent: more than CPUs that execute in turn take where
each access is seen, so that none has nothing to do, and few enough at a time for them all to wait in the queues."""
_TRIES = 3
"""Of a trial that tells nothing: this machine was too busy to send packets as fast as they were taken."""

_IN_TURN, _ALONE, _FLOOD = 1024, 1536, 20e3
"""Packets, for each CPU and for one alone, of a trial in which CPUs execute in turn, half of which tell enough; and
packets/s at which they are sent: CPUs take up half of that at most, for they rest behind packets."""

OnSeveralCpus = Mapping[Side, MemoryResult]
"""What is known of both builds, or nothing."""


def on_several_cpus(task: ComparisonTask) -> OnSeveralCpus:
    """What is known of both builds then; nothing where the testbed has no such guest, or one of them tells nothing."""
    session, scenario = task.session, task.scenario
    if scenario.counts in INSIDE:  # programs of the SUT's own take turns with packets
        return {}
    suts: list[OpenLoopSut] = []
    with (
        session.on_several_cpus() as cpus,
        session.recorded_in(session.record.several_cpus if cpus else session.record),
        ThreadPoolExecutor(len(SIDES), "several-cpus") as workers,  # what a thread has started ends with it
    ):
        try:
            for side in SIDES if cpus else ():
                build = task.builds[side]
                identity = Identity(side, build.label, program=build.program, test=task.longname, stays=False)
                testbed = session.begin(build.start)
                suts.append(OpenLoopSut(session, scenario, testbed, identity, introduce=False))
            await_all([workers.submit(sut.set_up) for sut in suts])
            for sut in suts:
                sut.prepare()
            for _ in range(_TRIALS):
                for sut in suts:
                    see_packets(sut, cpus)
            run_in_lockstep(suts, cpus, session.observer.said)
        except PdrGateError as error:
            session.observer.said(f"what several CPUs share is not told: {error}")
            return {}
        finally:
            for sut in suts:
                sut.abandon()
            session.leave([sut.testbed for sut in suts])
    return results_of({side: sut.trials for side, sut in zip(SIDES, suts, strict=False)})


def await_all(coming: Sequence[Future[None]]) -> None:
    """Wait until all of it has ended. Raises what the first one raises."""
    wait(coming)
    for one in coming:
        one.result()


def see_packets(sut: OpenLoopSut, cpus: int, trials: int = 1) -> None:
    """Trials of a SUT of so many CPUs; one that tells nothing is made again. Raises TestbedError."""
    for _ in range(trials):
        for _ in range(_TRIES):
            sut.measure(_LOAD, cpus * _PACKETS / _LOAD, Phase.MEMORY)
            if memory_of(sut.trials[-1:]):
                break


def run_in_lockstep(
    suts: Sequence[OpenLoopSut], cpus: int, said: Callable[[str], None], phases: Sequence[Phase] = LOCKSTEP_TRIALS
) -> None:
    """Trials in which the CPUs of SUTs execute in turn. What goes wrong is said, and the scaling not told.

    They end with a SUT that tells nothing, however often it is tried: programs read its packets, as a rule.
    """
    try:
        for phase in phases:
            packets = cpus * _IN_TURN if phase is Phase.ALL_CPUS else _ALONE
            for sut in suts:
                tries = (tells_rate(sut.measure(_FLOOD, packets / _FLOOD, phase)) for _ in range(_TRIES))
                if not any(tries):
                    return
    except PdrGateError as error:
        said(f"how much more {cpus} CPUs handle is not told: {error}")


def results_of(made: Mapping[Side, Sequence[Trial]], trials: int = _TRIALS) -> OnSeveralCpus:
    """What the trials of both builds come to; nothing where one of them has seen fewer packets' memory."""
    found = {side: memory_result(memory_of(own), OF_SEVERAL_CPUS) for side, own in made.items()}
    told = {
        side: replace(one, values=with_scaling(one, made[side]))
        for side, one in found.items()
        if one is not None and one.trials >= trials
    }
    return told if len(told) == len(SIDES) else {}
