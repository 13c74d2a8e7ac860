"""The load-loss curve (PASTRAMI section IV): what the repeats at each load say about loss, delivery and throughput."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.results.model import CurvePdr
from pdrgate.stats.intervals import delta_ucl, mean, sample_deviation, t_interval


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady loss ratios of a load's repeats, see `Trial.steady_loss_ratio`; no limits below two repeats."""

    losses: tuple[float, ...]
    plr: float
    lcl: float | None
    ucl: float | None

    @classmethod
    def of(cls, losses: Sequence[float], confidence: float) -> Steady:
        """Mean and t-interval of one or more."""
        limits = t_interval(losses, confidence) if len(losses) > 1 else None
        return cls(tuple(losses), mean(losses), limits.low if limits else None, limits.high if limits else None)


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """All repeats at one intended load. Ratios are fractions, loads packets/s."""

    load: float
    losses: tuple[float, ...]
    """PLR of each repeat, in measured order."""
    plr: float
    """Mean PLR (section IV-A)."""
    plr_sd: float | None
    """Sample deviation (Eq. 2); None below two repeats, as are the limits."""
    lcl: float | None
    ucl: float | None
    delta_ucl: float | None
    """Relative distance of the UCL: (UCL - PLR) / PLR; None also when the PLR is 0."""
    deliveries: tuple[float, ...]
    """The part of the load that came back while sending went on, one for each repeat, see
    `Trial.throughput_ratio`."""
    steady: Steady
    """Loss of the load if its trials went on, from which a PDR is computed."""
    surplus: float
    """Mean of forwarded-beyond-offered over offered: beside the loss, never netted against it."""
    left_out: int
    """Repeats left out because the generator, not the SUT, was the limit."""
    disturbed: int = 0
    """Repeats left out because the machine disturbed them."""
    least: float | None = None
    """Packets/s: the least that a repeat delivered in half of its time; None if that is not what they were made for.
    """

    @property
    def runs(self) -> int:
        """Repeats that count."""
        return len(self.losses)

    @property
    def delivery_ratio(self) -> float:
        """DR = 1 - PLR (Eq. 1)."""
        return 1.0 - self.plr

    @property
    def throughput(self) -> float:
        """T of the load, packets/s: the mean of `throughputs`."""
        return mean(self.throughputs)

    @property
    def throughputs(self) -> tuple[float, ...]:
        """T = O (1 - PLR) of each repeat, in measured order, counted over the time of sending.

        What a queue gave back afterwards is no throughput: it would make that of an overload too high by the buffer
        over the duration.
        """
        return tuple(self.load * delivered for delivered in self.deliveries)

    @classmethod
    def from_trials(cls, load: float, trials: Sequence[Trial], confidence: float = 0.95) -> LoadPoint | None:
        """The point of all ``trials`` at ``load``; None when none of them is sound."""
        kept = [trial for trial in trials if trial.sound]
        if not kept:
            return None
        losses = tuple(trial.loss_ratio for trial in kept)
        repeated = len(losses) > 1
        limits = t_interval(losses, confidence) if repeated else None
        return cls(
            load=load,
            losses=losses,
            plr=mean(losses),
            plr_sd=sample_deviation(losses) if repeated else None,
            lcl=limits.low if limits else None,
            ucl=limits.high if limits else None,
            delta_ucl=delta_ucl(losses, confidence) if repeated else None,
            deliveries=tuple(trial.throughput_ratio for trial in kept),
            steady=Steady.of([trial.steady_loss_ratio for trial in kept], confidence),
            surplus=mean([trial.surplus / trial.offered if trial.offered else 0.0 for trial in kept]),
            left_out=sum(trial.generator_limited for trial in trials),
            least=min(past) if (past := [one.least_rate for one in kept if one.occasion.phase == Phase.PAST]) else None,
            disturbed=sum(bool(trial.seen.disturbed) and not trial.generator_limited for trial in trials),
        )


@dataclass(frozen=True, slots=True)
class LoadLossCurve:
    """Points with strictly increasing loads."""

    points: tuple[LoadPoint, ...]
    limited_loads: tuple[float, ...] = ()
    """Loads that are no points because the generator limited every trial there."""
    disturbed_loads: tuple[float, ...] = ()
    """Loads that are no points because the machine disturbed trials there, and none was sound."""

    @classmethod
    def from_trials(cls, trials: Iterable[Trial], confidence: float = 0.95) -> LoadLossCurve:
        """Group ``trials``, in measured order, by intended load.

        Raises:
            ValueError: there are no trials, or one has an intended load of 0.
        """
        by_load: dict[float, list[Trial]] = {}
        for trial in trials:
            if trial.intended_load <= 0:
                raise ValueError("a trial has an intended load of 0: it says nothing about a load-loss curve")
            by_load.setdefault(trial.intended_load, []).append(trial)
        if not by_load:
            raise ValueError("there are no trials to assess")
        points: list[LoadPoint] = []
        limited: list[float] = []
        disturbed: list[float] = []
        for load in sorted(by_load):
            point = LoadPoint.from_trials(load, by_load[load], confidence)
            if point is not None:
                points.append(point)
            elif any(trial.seen.disturbed for trial in by_load[load]):
                disturbed.append(load)
            else:
                limited.append(load)
        return cls(tuple(points), tuple(limited), tuple(disturbed))

    @property
    def loads(self) -> tuple[float, ...]:
        """Intended loads, packets/s."""
        return tuple(point.load for point in self.points)

    @property
    def steady_plrs(self) -> tuple[float, ...]:
        """Mean steady loss ratio per load: whatever asks where the curve passes a threshold asks these."""
        return tuple(point.steady.plr for point in self.points)

    @property
    def throughputs(self) -> tuple[float, ...]:
        """Mean throughput per load, packets/s."""
        return tuple(point.throughput for point in self.points)

    @property
    def left_out(self) -> int:
        """Generator-limited repeats at loads that still are points."""
        return sum(point.left_out for point in self.points)

    def pdr(self, threshold: float) -> CurvePdr:
        """The load where the PLR crosses ``threshold``; see `CurvePdr` for how its interval comes about."""
        loads = self.loads
        past = first_past(self.steady_plrs, threshold)
        bracket = (
            (loads[-1] if loads else None, None) if past is None else (loads[past - 1] if past else None, loads[past])
        )
        return CurvePdr(
            load=None if past is None else crossing(loads, self.steady_plrs, threshold, self.throughputs),
            lower=self._lower(threshold),
            upper=self._upper(threshold),
            bracket=bracket,
            plr_threshold=threshold,
        )

    def _lower(self, threshold: float) -> float | None:
        uppers = _until_past([point.steady.ucl for point in self.points], threshold)
        if uppers is None:
            return None
        return self._crossing_of(uppers, threshold) if uppers[-1] > threshold else self.loads[-1]

    def _upper(self, threshold: float) -> float | None:
        lowers = _until_past([point.steady.lcl for point in self.points], threshold)
        if lowers is None or lowers[-1] <= threshold:
            return None
        return self._crossing_of(lowers, threshold) if len(lowers) > 1 else self.loads[0]

    def _crossing_of(self, limits: Sequence[float], threshold: float) -> float | None:
        """The load where limits of the PLR cross the threshold.

        The curve loses as much more, or less, than the mean forwards as much less, or more. Packets in a queue are in
        no throughput, so the two do not add up to the load.
        """
        rates = [
            point.throughput * (1.0 - limit) / (1.0 - point.steady.plr) if point.steady.plr < 1.0 else 0.0
            for point, limit in zip(self.points, limits, strict=False)  # the limits end where they are past
        ]
        return crossing(self.loads, limits, threshold, rates)

    def pdr_per_run(self, threshold: float) -> tuple[float, ...]:
        """The crossing of each repeat's own curve: repeat k takes the k-th loss at every load.

        As many as the least repeated load up to the one after the first past the threshold; higher loads that were
        repeated less often are left out. A repeat whose curve starts past the threshold counts as the lowest load,
        one that never passes it as the highest.
        """
        past = first_past(self.steady_plrs, threshold)
        deciding = self.points if past is None else self.points[: past + 2]
        if not deciding:
            return ()
        runs = min(point.runs for point in deciding)
        points = deciding + tuple(point for point in self.points[len(deciding) :] if point.runs >= runs)
        loads = tuple(point.load for point in points)
        rates = [point.throughputs for point in points]
        result = []
        for run in range(runs):
            losses = [point.steady.losses[run] for point in points]
            throughputs = [own[run] for own in rates]
            if first_past(losses, threshold) is None:
                result.append(loads[-1])
            else:
                found = crossing(loads, losses, threshold, throughputs)
                result.append(loads[0] if found is None else found)
        return tuple(result)


def _until_past(limits: Sequence[float | None], threshold: float) -> list[float] | None:
    """The limits up to and including the first above ``threshold``; None when one before that is unknown."""
    known: list[float] = []
    for limit in limits:
        if limit is None:
            return None
        known.append(limit)
        if limit > threshold:
            break
    return known or None


def first_past(plrs: Sequence[float], threshold: float) -> int | None:
    """Index of the first PLR above ``threshold``; None when none is."""
    return next((index for index, plr in enumerate(plrs) if plr > threshold), None)


def crossing(
    loads: Sequence[float], plrs: Sequence[float], threshold: float, throughputs: Sequence[float]
) -> float | None:
    """Load at which the PLR first crosses ``threshold``; None if it never does, or already has at the first load.

    Between its two neighbours the curve is taken to bend where an ideal one does: up to T_sat / (1 - threshold) it
    keeps the threshold, and T_sat is the throughput at the upper neighbour (PASTRAMI Eq. 3). A straight line between
    the two PLRs would put the crossing just above the lower load, wherever the knee is.
    """
    past = first_past(plrs, threshold)
    if not past:
        return None
    knee = throughputs[past] / (1.0 - threshold)
    return min(max(knee, loads[past - 1]), loads[past])
