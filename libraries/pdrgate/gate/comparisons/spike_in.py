"""Could a comparison that passed have failed? Its baseline, slowed down on purpose, is compared with itself.

The slowdown is real and of known size: work in the packets' way (`pdrgate.data_paths.slowdowns`) that makes one slower
by twice the tolerance, as measured by trials of one boot. The comparison is one like any other, by the same plan and
rule, on boots of its own.

To put it into boots that are up already would cost less and prove less. Slow and plain in one boot show nothing of what
boots deviate by. With slow in one boot and plain in the next, the boots' deviations cancel from ratio to ratio, so that
the mean is known better than in any comparison of builds. The machine's ups and downs, which meet both boots of a pair
alike, do not cancel at all then.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from pdrgate.data_paths.catalogue import DATA_PATHS
from pdrgate.data_paths.slowdowns import Planted, Slowdown
from pdrgate.gate.comparisons.by_scenario import comparison_of
from pdrgate.gate.comparisons.pairs.comparison_task import Build
from pdrgate.gate.comparisons.pairs_comparison import PairsComparison
from pdrgate.gate.run.run_record import SPIKE_IN_FILE
from pdrgate.gate.sut.prepared_sut import Identity, PreparedSut
from pdrgate.history.whole_file import write_whole
from pdrgate.hosts.host import CommandError
from pdrgate.measurands import Ask
from pdrgate.measurands.counted.cost import packet_cost
from pdrgate.record.phase import Phase
from pdrgate.results.model import Side, SpikeInResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import DataError, TestbedError, without_value

_STARTS = 2
"""Starts of the boot in which a size is found; one failure can be the machine's."""
_TRIALS, _TRIALS_UNSTEADY = 3, 9
"""Trials of each size that is tried, where the SUT's speed is constant, and elsewhere."""
_ROUNDS = 2
"""Rounds: one from the first step to a size, and one more from there, since the next steps may cost more."""
_CLOSE = 0.1
"""A share of the wanted size: no round is made for less."""
_IDLE_TIME = 0.25
_NEAR = 0.75, 1.5
"""Shares of the wanted size: a slowdown between them is as good as that size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of a slowdown does what."""

    name: str
    """The slowdown's."""
    steps: int
    slowdown: float
    """How much more work a packet takes, relative."""


def spike_in(comparison: PairsComparison) -> SpikeInResult | None:
    """Plant a slowdown of twice the tolerance and see whether it is found; None where the comparison did not pass.

    Raises:
        PdrGateError: as `PairsComparison.measure`.
    """
    if comparison.judgement is None or comparison.judgement.verdict is not Verdict.PASS:
        return None
    session, baseline = comparison.session, comparison.task.builds["baseline"]
    wanted = twice(comparison.task.plan.tolerance)
    if comparison.stay_up or comparison.scenario.streams is not None:
        return SpikeInResult(wanted=wanted, reason=_why_none(comparison))
    if not wanted:
        return SpikeInResult(wanted=wanted, reason="twice a tolerance of nothing is nothing")
    with session.recorded_in(session.record.spike_in):
        known = {one.name: one for one in DATA_PATHS[comparison.scenario.data_path].slowdowns}
        size = _kept(comparison)
        if size is None:
            size, why = _found(comparison, known.values(), wanted)
            if size is None:
                session.observer.said(f"no slowdown was planted: {why}")
                return SpikeInResult(wanted=wanted, reason=why)
            _keep(comparison, size)
        planted = Planted(known[size.name], size.steps)
        session.observer.said(
            f"the comparison passed; could it have failed? The baseline with {planted}, {size.slowdown:.1%} more work "
            "for a packet, is compared with the baseline"
        )
        slow = dataclasses.replace(
            baseline, side="candidate", label=f"{baseline.label} with {planted}", planted=planted, identity=""
        )
        against = _beside(comparison, {"baseline": baseline, "candidate": slow})
        against.measure()
        judgement = against.judge(comparison.task.plan.tolerance)
        session.leave()
    session.observer.said(f"the planted slowdown: {judgement}")
    return SpikeInResult(
        wanted=wanted, planted=str(planted), slowdown=size.slowdown, verdict=judgement.verdict,
        reason=judgement.reason, comparison=against.comparison, trials=against.result().trials,
    )  # fmt: skip


def _beside(comparison: PairsComparison, builds: Mapping[Side, Build]) -> PairsComparison:
    """Another comparison of the same scenario, by the same plan and at the same loads, once these are known.

    Args:
        builds: both boot what is the baseline of the one before.
    """
    known = comparison.loop.replication
    other = comparison_of(dataclasses.replace(comparison.task, builds=builds))
    baseline = known.sides["baseline"]
    sides = {side: dataclasses.replace(baseline, side=side, build=build.label) for side, build in builds.items()}
    other.loop.replication.go_on_from(known.loads, known.latency_loads, sides, known.facts)
    return other


def _why_none(comparison: PairsComparison) -> str:
    """Why a comparison takes no slowdown."""
    if comparison.scenario.streams is not None:
        return "a closed loop has no packets whose way could be made longer by so much"
    return "one needs boots of its own, and the boots of a portfolio stay up for all its paths"


def twice(tolerance: float) -> float:
    """How much more work makes a packet rate fall by a tolerance, and from there by the same again."""
    return (1.0 - tolerance) ** -2 - 1.0


def sized(work: Callable[[int], float], most: int, wanted: float) -> tuple[int, float]:
    """How many steps come nearest to a slowdown, at least one, and what they come to.

    Args:
        work: what a packet takes with so many steps, in any unit; about linear from the first step on.
        most: steps.
        wanted: more work, as a fraction.
    """
    none, known = work(0), {1: work(1), most: work(most)}
    each = (known[most] - known[1]) / max(1, most - 1)
    steps = 1 if each > 0 else most
    for _ in range(_ROUNDS if each > 0 else 0):
        if abs(known[steps] / none - 1.0 - wanted) <= _CLOSE * wanted:
            break
        steps = min(most, max(1, steps + round((none * (1.0 + wanted) - known[steps]) / each)))
        known[steps] = known.get(steps) or work(steps)
    return steps, known[steps] / none - 1.0


def _found(
    comparison: PairsComparison, known: Iterable[Slowdown], wanted: float
) -> tuple[Size | None, str]:  # fmt: skip
    """The slowdown that is as large as wanted, or the least above; else why there is none."""
    for start in range(1, _STARTS + 1):
        try:
            return _tried(comparison, known, wanted)
        except TestbedError as error:
            if start == _STARTS:
                raise
            comparison.session.observer.said(f"the boot to size a slowdown in failed: {error}")
    raise AssertionError("the last start has returned or raised")


def _tried(comparison: PairsComparison, known: Iterable[Slowdown], wanted: float) -> tuple[Size | None, str]:
    """Size a slowdown in a boot of the baseline; None, and why, where that fails."""
    session, build = comparison.session, comparison.task.builds["baseline"]
    session.observer.said(f"a boot of the baseline, {build.label}, to size a slowdown in")
    larger: list[Size] = []
    why: list[str] = []
    with session.booted(build.start) as testbed:
        # Of a pair, and a boot of no pair: a run that is resumed sizes anew what was not sized to the end.
        boot_id = f"{testbed.boot_id}-sizing-{secrets.token_hex(4)}"
        identity = Identity("baseline", build.label, 1, boot_id, build.program, test=comparison.task.longname)
        sut = PreparedSut(session, comparison.scenario, testbed, identity, introduce=False)
        try:
            sut.prepare()
            work = _Work(sut, max(comparison.loads))
            for one in known:
                try:
                    steps, found = sized(partial(work, one), one.most, wanted)
                except CommandError as error:
                    why.append(f"the kernel does not take {Planted(one, 1)} ({error})")
                    continue
                if _NEAR[0] * wanted <= found <= _NEAR[1] * wanted:
                    return Size(name=one.name, steps=steps, slowdown=found), ""
                if found > wanted:
                    larger.append(Size(name=one.name, steps=steps, slowdown=found))
                else:
                    most = f"{Planted(one, steps)}, as many as there can be,"
                    why.append(f"{most} make {found:.1%} more work for a packet")
        finally:
            sut.release(ending=True)
    if larger:
        return min(larger, key=lambda one: one.slowdown), ""
    return None, f"{'; '.join(why)}; twice the tolerance is {wanted:.1%}"


class _Work:
    """What a packet takes when it is offered more than the SUT can: instructions where they are counted, else time."""

    def __init__(self, sut: PreparedSut, load: float) -> None:
        self._sut = sut
        self._load = load
        self._count = _TRIALS if sut.testbed.steady else _TRIALS_UNSTEADY
        self._idle = () if sut.uncounted else (sut.measure(Ask(0.0, _IDLE_TIME, Phase.IDLE)),)

    def __call__(self, slowdown: Slowdown, steps: int) -> float:
        """Raises CommandError when the host does not take the slowdown."""
        sut, profile = self._sut, self._sut.session.profile
        sut.plant(Planted(slowdown, steps) if steps else None)
        ask = Ask(self._load, profile.boot_trial, Phase.SATURATION)
        trials = [sut.measure_patiently(ask, profile.patience) for _ in range(self._count)]
        cost = packet_cost(trials, self._idle) if self._idle else None
        if cost is not None:
            return cost.instructions
        rate = median(trial.forwarding_rate for trial in trials)
        return 1.0 / rate if rate else math.inf


def _file(comparison: PairsComparison) -> Path:
    return comparison.session.record.folder / SPIKE_IN_FILE


def _kept(comparison: PairsComparison) -> Size | None:
    """What the run that is resumed has planted. Raises DataError when that cannot be read."""
    if not comparison.session.record.resumed:
        return None
    return _read(_file(comparison)).get(_asked(comparison))


def _keep(comparison: PairsComparison, size: Size) -> None:
    """Raises StorageError, or DataError when what is there is not ours."""
    file = _file(comparison)
    write_whole(file, msgspec.json.encode(_read(file) | {_asked(comparison): size}))


def _asked(comparison: PairsComparison) -> str:
    """What the size is for: another test of the scenario may have another baseline."""
    return f"{comparison.task.longname} {comparison.scenario.name}".lstrip()


def _read(file: Path) -> dict[str, Size]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Size])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"cannot go on from {file.parent}: {file} is damaged ({without_value(error)}); start a new run"
        ) from error
