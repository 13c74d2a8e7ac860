"""One scenario of a closed loop on one SUT: window curve, repeats at a fixed window, verdict.

A closed loop has no load that could be searched, so no PDR, and no curve that PASTRAMI could judge. In their place
stands a window that the scenario fixes, and repeats of it: are they one number, and what was that before?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.data_paths.tcp_streams import Buffers, size
from pdrgate.gate.run.profile import Profile
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.scenarios.one_sut_run import OneSutRun
from pdrgate.gate.scenarios.replicate_samples import Replicate, measure_in_turn, summaries
from pdrgate.measurands import (
    AtRest,
    Measurand,
    TcpThroughput,
    TransferSetting,
    WindowCurve,
    of_transfers,
)
from pdrgate.measurands.transfers.tcp import loaded_transfers, rest_rtt
from pdrgate.record.cause import causes_in_words
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import CheckResult, ScenarioResult, TransferResult, TransfersResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.stability import StabilityVerdict as Stability
from pdrgate.stability.series_checks import checks_of_series, verdict_of
from pdrgate.values.errors import TestbedError

_KIB = 1024
_WINDOWS = tuple(16 * _KIB * 2**step for step in range(9))
"""Windows of the window curve in bytes: 16 KiB to 4 MiB."""
_EACH = 0.5
"""Seconds that a transfer takes besides its traffic, about: programs connect, counters are read."""
_BUSY, _IDLE = 0.97, 0.85
"""Shares of the time in which the other end's CPU is busy at least, and the SUT's at most, where the other end is the
limit."""


def measured_transfers(
    window: int, duration: float, count: int, *, buffers: Buffers = "fixed", request: int = 0
) -> tuple[Measurand, ...]:
    """The measurands of a replicate of ``count`` transfers of ``duration`` seconds, the throughput first.

    Args:
        window: bytes; unless ``fixed`` that is what ``buffers`` allow.
    """
    return of_transfers(TransferSetting(window, whole_seconds(duration), count, buffers, request))


def whole_seconds(duration: float) -> float:
    """What a transfer lasts that is to last so long: one second at least, until it has left slow start behind."""
    return float(max(1, math.ceil(duration)))


def seconds_of(profile: Profile) -> float:
    """What a transfer takes, with what programs and counters need."""
    return whole_seconds(profile.trial_duration) + _EACH


class TransferRun(OneSutRun):
    """One scenario: `prepare`, then `sweep` where a curve is wanted, `repeat` and `judge` in this order, then `finish`.

    Raises:
        TestbedError: the scenario is no closed loop.
    """

    checks: tuple[CheckResult, ...] = ()
    """Checks of the repeats; empty before them."""
    _curve: WindowCurve | None = None

    def _check(self, scenario: Scenario) -> None:
        if scenario.streams is None:
            closed = next(name for name, path in DATA_PATHS.items() if path.transfers)
            raise TestbedError(
                f"{scenario.data_path} transfers nothing by TCP; choose {closed}, or search its partial drop rate"
            )

    @property
    def window(self) -> int:
        """Window of the repeats, bytes."""
        return self.scenario.window

    @property
    def _buffers(self) -> Buffers:
        assert self.scenario.streams is not None
        return self.scenario.streams.buffers

    def prepare(self) -> None:
        """Set the SUT up for the scenario and start the programs. Raises TestbedError, and DataError as `repeat`."""
        self.sut.prepare()
        if self.session.options.traces_drops:
            self.session.say_once("drops are traced in trials that lose packets; a closed loop has none")
        self._against.find()

    def sweep(self) -> int | None:
        """Measure the window curve until two sweeps agree on its knee, bytes; None, and a verdict, where none do."""
        profile = self.session.profile
        windows = _WINDOWS[:: profile.window_step]
        curve = self._curve = WindowCurve(windows, whole_seconds(profile.trial_duration))
        replicate: Replicate = Replicate(self.sut, (curve,))
        self._foresee(*2 * (2 * len(windows) * seconds_of(profile),))
        measure_in_turn([replicate])
        knee = curve.knee(replicate.trials)
        by_sweep = ", ".join(map(size, curve.knees(replicate.trials)))
        if knee is None:
            why = f"no two sweeps agree on the knee of the window curve: {by_sweep}"
            self._judged(Judgement(Verdict.UNSTABLE, why))
        else:
            beyond = ", the largest that was tried" if knee == windows[-1] else ""
            self.session.observer.said(f"the knee of the window curve is {size(knee)}{beyond} ({by_sweep} by sweep)")
        return knee

    def repeat(self) -> tuple[CheckResult, ...]:
        """Measure the replicates at the fixed window, once, and judge whether their throughput is one number."""
        if self.checks:
            return self.checks
        profile, session = self.session.profile, self.session
        measurands = measured_transfers(self.window, profile.trial_duration, profile.transfers, buffers=self._buffers)
        self._foresee(*2 * ((profile.repeats * profile.transfers + 1) * seconds_of(profile),))
        replicates = [Replicate(self.sut, measurands, number) for number in range(1, profile.repeats + 1)]
        # At rest first, so that what load leaves behind is none of its round trips'.
        replicates[0].steps = (AtRest(self.window), *measurands)
        for one in replicates:
            measure_in_turn([one])
        self.measurands = summaries(measurands, replicates)
        repeats = [trial for one in replicates for trial in loaded_transfers(one.trials)]
        rates = [one.transfer.throughput / 1e9 for one in repeats]
        self.checks = checks_of_series(TcpThroughput.name, TcpThroughput.unit, rates)
        failure = self.judgement or instability(self.checks)
        if not repeats:
            failure = failure or Judgement(Verdict.INCONCLUSIVE, "no transfer shows what the SUT did")
        self._explain(failure, self.trials, repeats)
        session.say_once(station_limited(repeats))
        return self.checks

    @property
    def _repeated(self) -> bool:
        return bool(self.checks)

    @property
    def _first(self) -> str:
        return "measure transfers"

    def _detailed(self, result: ScenarioResult) -> ScenarioResult:
        return replace(
            result,
            details=replace(
                result.details,
                transfers=transfers_result(self.window, self.trials, self.checks, self._curve),
            ),
        )

    def _on_trial(self, trial: Trial, replayed: bool) -> None:
        again = ", of the run that is continued" if replayed else ""
        self.session.observer.said(transfer_in_words(trial) + again)


def instability(checks: Sequence[CheckResult]) -> Judgement | None:
    """Why throughputs are not one number; None when they are. Of too few repeats nobody knows."""
    verdict, reason = verdict_of(checks)
    return None if verdict is Stability.STABLE else Judgement(Verdict(verdict.value), reason)


def station_limited(transfers: Sequence[Trial]) -> str:
    """A sentence that the other end was busier than the SUT, and so the limit; empty where it was not.

    It is a hint, for the CPU of the other end may be somebody else's too.
    """
    ours = [one.transfer.cpu.sut_busy for one in transfers if one.transfer.cpu.sut_busy is not None]
    theirs = [one.transfer.cpu.station_busy for one in transfers if one.transfer.cpu.station_busy is not None]
    if not ours or not theirs or median(theirs) < _BUSY or median(ours) > _IDLE:
        return ""
    return (
        f"the other end's CPU was busy for {median(theirs):.0%} of the time, and the SUT's for {median(ours):.0%}: a "
        "faster SUT would not show"
    )


def transfers_result(
    window: int, transfers: Sequence[Trial], checks: Sequence[CheckResult] = (), curve: WindowCurve | None = None
) -> TransfersResult:
    """Transfers as result.json has them."""
    swept = [one for one in transfers if one.occasion.phase == Phase.CURVE]
    return TransfersResult(
        window=window,
        rest_rtt=rest_rtt(transfers),
        knee=curve.knee(swept) if curve else None,
        knees=curve.knees(swept) if curve else (),
        transfers=tuple(_result(one) for one in transfers),
        checks=tuple(checks),
    )


def _result(one: Trial) -> TransferResult:
    moved, senders, cpu = one.transfer, one.transfer.senders, one.transfer.cpu
    return TransferResult(
        phase=one.occasion.phase, repeat=one.occasion.repeat, window=moved.window, throughput=moved.throughput,
        rtt=senders.rtt, retransmitted=senders.retransmitted, segments=senders.segments, sut_busy=cpu.sut_busy,
        station_busy=cpu.station_busy, sut_cpu=cpu.sut_cpu, rtts=tuple(look.rtt for look in senders.looks),
        rates=tuple(8 * look.sent / look.seconds for look in senders.looks if look.seconds),
        disturbed=causes_in_words(one.seen.disturbed),
    )  # fmt: skip


def transfer_in_words(trial: Trial) -> str:
    """``repeat, window 1 MiB: 9.41 Gbit/s, round trip 0.21 ms, 3 of 8123 segments sent again``."""
    moved = trial.transfer
    rtt = f", round trip {1e3 * moved.senders.rtt:.3g} ms" if moved.senders.rtt is not None else ""
    again = (
        f", {moved.senders.retransmitted} of {moved.senders.segments} segments sent again"
        if moved.senders.retransmitted
        else ""
    )
    disturbed = f"; disturbed: {causes_in_words(trial.seen.disturbed)}" if trial.seen.disturbed else ""
    rate = f"{moved.throughput / 1e9:.4g} Gbit/s"
    return f"{trial.occasion.phase}, window {size(moved.window)}: {rate}{rtt}{again}{disturbed}"
