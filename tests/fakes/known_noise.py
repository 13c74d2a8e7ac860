"""Experience in memory, which has of every testbed the noise that a test wants."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pdrgate.measurands import Cost, PartialDropRate, SaturationThroughput
from pdrgate.measurands.transfers.tcp import LoadedRoundTrip, TcpThroughput, Transmissions
from pdrgate.replication import NoiseFloor, NoiseObservation, ObservedBoot, Try

DAY = 86400.0
NAMES = (PartialDropRate.name, SaturationThroughput.name, Cost.name)
OF_TCP = (TcpThroughput.name, LoadedRoundTrip.name, Transmissions.name)


def spread(deviation: float, count: int = 16) -> list[float]:
    """So many values around 0 of just that deviation, a multiple of four; in pairs their differences are as of
    independent ones."""
    scale = deviation * math.sqrt((count - 1) / count)
    signs = (1, -1, -1, 1, 1, 1, -1, -1)
    return [scale * signs[number % 8] for number in range(count)]


def observed(
    levels: Sequence[float], *, when: float, paired: bool = True, build: str = "one", names: Sequence[str] = NAMES
) -> NoiseObservation:
    """Boots of one build that came to these logs, in pairs where they are that."""
    boots = tuple(
        ObservedBoot(
            build=build, boot=f"boot-{when:.0f}-{number}", pair=number // 2 + 1 if paired else 0,
            values={name: 1e6 * math.exp(level) for name in names},
        )
        for number, level in enumerate(levels)
    )  # fmt: skip
    return NoiseObservation(when=when, boots=boots)


def floor(deviation: float, boots: int = 16) -> NoiseFloor:
    """Of a testbed whose boots deviate by that, and whose days by nothing more."""
    return NoiseFloor.seen([observed(spread(deviation, boots), when=day * DAY) for day in range(16)], 0.0)


class KnownNoise:
    """Stands in for `Experience`; it keeps no tries.

    Args:
        deviation: between boots, of all that is measured; None: nothing is known yet.
        daily: whether what is kept is of a day of its own each time.
        names: what is measured.
    """

    def __init__(self, deviation: float | None = 0.001, *, daily: bool = False, names: Sequence[str] = NAMES) -> None:
        self._daily = daily
        self.kept: list[tuple[str, Mapping[str, str], NoiseObservation]] = []
        days = [] if deviation is None else [time.time() - day * DAY for day in range(16)]
        self._known = [observed(spread(deviation or 0.0), when=when, names=names) for when in days]

    def observations(self, testbed: str) -> list[NoiseObservation]:
        return [*self._known, *(one for key, _, one in self.kept if key == testbed)]

    def add_observation(self, testbed: str, conditions: Mapping[str, str], observation: NoiseObservation) -> None:
        ago = len(self.kept) * DAY if self._daily else 0.0
        self.kept.append((testbed, conditions, replace(observation, when=observation.when - ago)))

    def tries(self, compared: str) -> list[Try]:
        return []

    def add_try(self, compared: str, ended: Try) -> None:
        """Forget it."""
