"""A simulated SUT that follows the paper's load-loss curves. FOR TESTING THE MATHEMATICS ONLY: no packet is sent, and
no number it produces says anything about a router, a kernel or this machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from flat_values import flat_trial

from pdrgate.record.trial import LOOKS, Trial


class LoadLoss(Protocol):
    """The true PLR of a SUT as a function of the offered load, packets/s."""

    def loss_ratio(self, load: float) -> float:
        """PLR at ``load``, in [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class IdealCurve:
    """No loss up to saturation, a constant throughput beyond it (PASTRAMI Eq. 3)."""

    saturation_load: float

    def loss_ratio(self, load: float) -> float:
        """PLR = 1 - T_sat / O beyond saturation, else 0."""
        return max(0.0, 1.0 - self.saturation_load / load) if load > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RealisticCurve:
    """Loss that is tiny at low load and grows smoothly to ``saturation_loss`` at saturation (section IV-B, Fig. 4).

    The paper gives the two ends, 1e-8 … 1e-6 and about 1e-2, and no formula between them: here the logarithm of the
    loss rises with the ``steepness``-th power of the load.
    """

    saturation_load: float
    saturation_loss: float = 0.01
    lowest_loss: float = 1e-7
    steepness: float = 8.0

    def loss_ratio(self, load: float) -> float:
        """PLR at ``load``; beyond saturation the throughput stays at (1 - saturation_loss) of the saturation load."""
        if load >= self.saturation_load:
            return 1.0 - self.saturation_load * (1.0 - self.saturation_loss) / load
        rise = math.pow(load / self.saturation_load, self.steepness)
        return self.lowest_loss * math.pow(self.saturation_loss / self.lowest_loss, rise)


@dataclass(frozen=True, slots=True)
class TrashingCurve:
    """Another curve whose throughput falls from ``trashing_load`` on (PASTRAMI Eq. 4 with the f of Eq. 5).

    Eq. 4 hands f the distance from saturation, but Eq. 5 compares its argument with loads; the load is meant.
    """

    curve: LoadLoss
    trashing_load: float
    decline: float
    """M of Eq. 5, packets/s: the throughput is gone this far beyond the trashing load."""

    def loss_ratio(self, load: float) -> float:
        """PLR = 1 - f(O) (1 - PLR of the curve below)."""
        factor = max(0.0, 1.0 - max(0.0, load - self.trashing_load) / self.decline)
        return 1.0 - factor * (1.0 - self.curve.loss_ratio(load))


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a SUT departs from its curve. Each trial's curve is stretched along the load by one random capacity."""

    noise: float = 0.003
    """Deviation of the capacity from trial to trial, relative."""
    heavy_tails: bool = False
    """Student's t with 3 degrees of freedom, scaled to the same deviation, instead of a normal distribution."""
    drift: float = 0.0
    """Relative change of the capacity per trial, accumulating."""
    modes: Sequence[float] = (1.0,)
    """Capacities to flip between, relative to the curve, equally likely per trial."""
    correlation: float = 0.0
    """Lag-1 correlation of the noise from trial to trial."""
    dips: float = 0.0
    """Share of the trials in which the machine takes 20 to 70 % of the capacity."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most a generator can send, packets/s: beyond it packets stay unsent, or sending takes longer."""

    load: float
    stretches: bool = False


class SimulatedSut:
    """Measures trials on a curve; the same seed and calls give the same trials. For testing the mathematics only.

    Args:
        buffer: packets that wait for the SUT at most: what its curve loses fills this queue first, at a constant rate,
            is dropped once it is full, and what is queued at the end of sending drains. 0: nothing waits.
        flight: seconds that each packet is in flight, at any load.
        looks: whether the generator looks while it sends.
    """

    def __init__(
        self,
        curve: LoadLoss,
        behaviour: Behaviour | None = None,
        *,
        seed: int = 0,
        ceiling: Ceiling | None = None,
        buffer: int = 0,
        flight: float = 0.0,
        looks: bool = True,
        phase: str = "repeat",
    ) -> None:
        self._curve = curve
        self._behaviour = behaviour or Behaviour()
        self._random = np.random.default_rng(seed)
        self._ceiling = ceiling
        self._buffer = buffer
        self._flight = flight
        self._looks = looks
        self._phase = phase
        self._clock = 0.0
        self._trials = 0
        self._wave = 0.0

    def measure(self, load: float, duration: float) -> Trial:
        """One trial at ``load`` packets/s for ``duration`` seconds; returns at once, in simulated time."""
        intended = round(load * duration)
        offered, sending_time, seen = intended, duration, load
        if self._ceiling is not None and load > self._ceiling.load:
            seen = self._ceiling.load
            if self._ceiling.stretches:
                sending_time = duration * load / seen
            else:
                offered = round(seen * duration)
        capacity = self._capacity()
        plr = self._curve.loss_ratio(seen / capacity) if capacity > 0 else 1.0
        excess = int(self._random.binomial(offered, min(1.0, max(0.0, plr))))
        queued = min(excess, self._buffer)
        flying = round(min(1.0, self._flight / sending_time) * (offered - excess))
        started, self._clock = self._clock, self._clock + sending_time
        self._trials += 1
        return flat_trial(
            intended_load=load,
            intended_duration=duration,
            offered=offered,
            forwarded=offered - excess + queued,
            drained=queued + flying,
            unsent=intended - offered,
            sending_time=sending_time,
            under_way=tuple(excess * look // LOOKS + flying for look in range(1, LOOKS + 1)) if self._looks else (),
            scenario="simulated",
            phase=self._phase,
            started=started,
        )

    def repeat(self, loads: Sequence[float], duration: float, runs: int) -> list[Trial]:
        """``runs`` passes over ``loads``, so that drift reaches all loads alike."""
        return [self.measure(load, duration) for _ in range(runs) for load in loads]

    def _capacity(self) -> float:
        how = self._behaviour
        fresh = float(self._random.standard_t(3) / math.sqrt(3) if how.heavy_tails else self._random.normal())
        self._wave = how.correlation * self._wave + math.sqrt(1 - how.correlation**2) * fresh
        mode = how.modes[int(self._random.integers(len(how.modes)))]
        if how.dips and self._random.random() < how.dips:
            mode *= 1.0 - self._random.uniform(0.2, 0.7)
        return mode * (1.0 + how.drift * self._trials) * (1.0 + how.noise * self._wave)
