"""What is known of a testbed's noise, as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pdrgate.gate.verdicts.change_verdict import CHANGE_CONFIDENCE
from pdrgate.replication import MeasurandNoise, NoiseFloor, PairsRule
from pdrgate.replication.noise import DAYS
from pdrgate.reports.markup.columns import table_lines
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.stats.intervals import t_quantile
from pdrgate.stats.pooled import Deviation

PAIRS = (4, 8, 16, 48)
"""Numbers of pairs whose resolution is shown."""
_NUMBERS = ("pairs", "boots", "within a boot", "drift", "dips", *(f"{pairs} pairs" for pairs in PAIRS))
_COLUMNS = (Column("measurand"), *(Column(name, True) for name in _NUMBERS))
_UNKNOWN = "-"


def noise_lines(floor: NoiseFloor, tolerances: Mapping[str, float]) -> list[str]:
    """A table, and what the tolerances need.

    Args:
        tolerances: by measurand, what is accepted.
    """
    known = [floor.of(name) for name in tolerances if name in floor.measurands]
    title = f"{floor.pairs} pairs, {floor.boots} boots; what they deviate by, and the tolerance that pairs resolve"
    lines = table_lines(Table("", _COLUMNS, [_row(one) for one in known]))
    return [title, *lines, *(f"  {_needed(one, tolerances[one.measurand])}" for one in known)]


def one_boot_resolves(noise: MeasurandNoise, measurands: int) -> float | None:
    """The least tolerance at which a boot passes against one of the same build, should both come to the same.

    Args:
        measurands: that are compared.
    """
    if (boots := noise.known_boots) is None:
        return None
    quantile = t_quantile(1 - (1 - CHANGE_CONFIDENCE) / measurands / 2, boots.freedom)
    return noise.as_tolerance(quantile * math.sqrt(2) * boots.value)


def _row(one: MeasurandNoise) -> list[Cell]:
    drift = _UNKNOWN if one.drift is None else f"{one.drift:+z.2%}"
    dips = f"{one.dips} of {one.seen}" if one.seen else _UNKNOWN
    resolved = [one.resolves(pairs) for pairs in PAIRS]
    told = (_UNKNOWN if least is None else f"{least:.2%}" for least in resolved)
    known = map(_percent, (one.pairs, one.boots, one.within))
    return [*map(Cell, (one.measurand, *known, drift, dips, *told))]


def _needed(one: MeasurandNoise, tolerance: float) -> str:
    needs, most = one.needs(tolerance), PairsRule().most
    told = (
        f"{needs} pairs" if needs is not None else f"more than {most} pairs" if one.resolves(most) else "nobody knows"
    )
    alone = one_boot_resolves(one, 2)
    stored = "" if alone is None else f"; one boot against a stored one resolves {alone:.2%}"
    if alone is None and one.boots is not None:
        stored = f"; one boot against a stored one is judged once {DAYS} days were seen, {one.days_seen} so far"
    return f"a tolerance of {tolerance:.0%} of {one.measurand} needs {told}{stored}"


def _percent(deviation: Deviation | None) -> str:
    return _UNKNOWN if deviation is None else f"{deviation.value:.2%}"
