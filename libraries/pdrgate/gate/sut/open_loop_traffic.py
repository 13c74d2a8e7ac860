"""Traffic of an open loop: a generator offers a load, whatever comes back."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Self

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.data_paths.catalogue import DataPath
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.alike_packets import ALIKE_LOOKS, LOOK_DURATION
from pdrgate.gate.sut.cost_counting import busy_of
from pdrgate.gate.sut.probe import PROBE_LOAD, lead_in, probe_path, warm_up
from pdrgate.measurands import Ask
from pdrgate.measurands.measurand import LATENCY, is_counted
from pdrgate.measurands.rates.latency import probe_rate
from pdrgate.observers.fates import by_fate
from pdrgate.observers.gains import Gains
from pdrgate.observers.reading import Place
from pdrgate.record.fate import Fate
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Occasion
from pdrgate.record.trial import Trial
from pdrgate.testbeds import Testbed
from pdrgate.traffic.delivery import counted_by
from pdrgate.traffic.frame_fields import packet_in_words
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator, ShowsFrames
from pdrgate.values.errors import SutError, UsageError


class OpenLoopTraffic:
    """Packets of a generator; in the phase `Phase.IDLE` nothing is sent.

    Args:
        fate: what counts as handled.
        kept: what of a fresh trial is worth keeping: the frames that a generator took whole are many.
        lead_in: called before a fresh trial of a load, while nobody watches.
        busy: has a program use the SUT's CPU, around trials in which nothing is sent.
    """

    def __init__(
        self,
        generator: Generator,
        frames: Frames,
        *,
        fate: Fate = "forwarded",
        kept: Callable[[Trial], Trial] = lambda trial: trial,
        lead_in: Callable[[float, Phase], None] = lambda load, phase: None,
        busy: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self.generator = generator
        self._frames = frames
        self._fate = fate
        self._kept = kept
        self._lead_in = lead_in
        self._busy = busy

    @classmethod
    def of(cls, scenario: Scenario, testbed: Testbed, path: DataPath, kept: Callable[[Trial], Trial]) -> Self:
        """The traffic of a scenario over an applied path. Raises TestbedError."""
        generator = counted_by(path.arrivals, testbed.generator(path.family))

        def led_in(load: float, phase: Phase) -> None:
            # Near and past the PDR of an end host what was before shows, where the machine's speed does not hide it.
            if scenario.starves and testbed.steady and phase in (Phase.SEARCH, Phase.PDR, Phase.PAST):
                lead_in(generator, scenario.frames, load)

        return cls(
            generator, scenario.frames, fate=scenario.counts, kept=kept, lead_in=led_in, busy=busy_of(testbed)
        )  # fmt: skip

    def see_it_pass(
        self, scenario: Scenario, testbed: Testbed, path: DataPath, check: Callable[[], None]
    ) -> None:  # fmt: skip
        """See that packets have their fate, and warm the SUT up.

        Args:
            check: raises what the SUT's kernel, or frames, say against going on.

        Raises:
            TestbedError: packets have another fate.
            UsageError: latency is asked for, and these packets cannot be probes.
        """
        generator, frames = self.generator, scenario.frames
        try:
            self._kept(probe_path(path, testbed, generator, frames, scenario.counts))
        except SutError as error:
            outcome, packet = self._outcome(scenario, path)
            if outcome is None:
                raise
            explained = f"{error}; given {packet_in_words(packet)}, {outcome}"
            remedy = outcome.remedy(path.family)
            if "--set fate=" in remedy and "--set fate=" in explained:
                remedy = ""  # what became of packets has named it
            raise SutError("; ".join(filter(None, (explained, remedy)))) from error
        for _ in range(ALIKE_LOOKS if scenario.alike else 0):
            sent = generator.trial(PROBE_LOAD, LOOK_DURATION, frames)
            # Where they leave the probe has judged.
            aside = dataclasses.replace(sent.aside, fate=scenario.counts, returned=0)
            self._kept(dataclasses.replace(sent, aside=aside))
        check()
        if testbed.steady:
            warm_up(generator, frames)
        if scenario.latency and not self.can_probe:
            raise UsageError("packets of a capture cannot be latency probes; leave latency out, or the capture")

    def answer(self, scenario: Scenario, path: DataPath) -> str:
        """What the path's eBPF program returns for a packet of the scenario, in words; empty where nobody can say."""
        outcome, packet = self._outcome(scenario, path)
        return "" if outcome is None else f"{outcome.verdict} is returned for {packet_in_words(packet)}"

    def _outcome(self, scenario: Scenario, path: DataPath) -> tuple[PacketOutcome | None, bytes]:
        """What the path's eBPF program makes of a packet of the scenario, and the packet."""
        if not isinstance(self.generator, ShowsFrames):
            return None, b""
        packet = self.generator.sample(scenario.frames)
        return path.explain(packet), packet

    def describe(self) -> dict[str, str]:
        return self.generator.describe()

    @contextlib.contextmanager
    def led_in(self, ask: Ask) -> Iterator[None]:
        self._lead_in(ask.load, ask.phase)
        with self._busy() if ask.phase == Phase.IDLE else contextlib.nullcontext():
            yield

    def trial(self, ask: Ask) -> Trial:
        if ask.phase == Phase.IDLE:
            return _rest(ask.duration)
        return self.generator.trial(ask.load, ask.duration, self._frames_of(ask))

    def finished(self, trial: Trial) -> Trial:
        trial = self._kept(by_fate(trial, self._fate))
        taken = taken_from_taps(trial)
        if taken is not None and trial.forwarded > taken:
            raise SutError(
                f"the SUT is said to have had {trial.forwarded} packets of a trial, and {taken} were taken from the "
                "queues before it: what its side says is not true; is its kernel to be trusted?"
            )
        return trial

    def counts(self, phase: Phase, replicate: int) -> bool:
        """Whether functions are counted in trials of a phase, for the cost of a packet."""
        return is_counted(phase, replicate)

    def close(self) -> None:
        self.generator.close()

    @property
    def can_probe(self) -> bool:
        """Whether packets may be latency probes: they are the generator's own, and come back to it."""
        return self._fate in ("forwarded", "returned") and "captures" not in self.generator.describe()

    def _frames_of(self, ask: Ask) -> Frames:
        """Frames of a trial. Trials for latency have probes, also where nobody asked for probes in all trials."""
        asked = ask.phase in LATENCY or (ask.phase == Phase.SOAK and self.can_probe)
        if not asked or self._frames.probe_rate:
            return self._frames
        return dataclasses.replace(self._frames, probe_rate=probe_rate(ask.load))


def _rest(duration: float) -> Trial:
    """A trial in which nothing is sent."""
    started = time.time()
    time.sleep(duration)
    return Trial(
        intended_load=0.0, intended_duration=duration, offered=0, forwarded=0, occasion=Occasion(started=started)
    )


def taken_from_taps(trial: Trial) -> int | None:
    """Packets that QEMU took from the generator's TAPs meanwhile; None if the SUT is no guest behind any.

    Of namespaces each wire is counted instead, and veths count frames of XDP in different ways.
    """
    gains = Gains({Place.parse(place): gained for place, gained in trial.seen.counter_changes.items()})
    taps = [
        place
        for place in map(Place.parse, trial.seen.counters_after)
        if (place.kind, place.node) == ("interface", "tg")
    ]
    if gains.wired or gains.of_hops or not taps:
        return None
    return sum(gains.at(tap, "tx_packets") for tap in taps)
