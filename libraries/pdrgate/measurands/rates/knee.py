"""PDR and saturation throughput are one number where the SUT loses nothing up to what it forwards at most."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from pdrgate.measurands.rates.pdr import PartialDropRate
from pdrgate.measurands.rates.saturation import SaturationThroughput
from pdrgate.results.model import ChangeResult

AT_THE_KNEE: Final = f"{PartialDropRate.name} (at the knee)"
"""The name of both where they agree."""
_APART: Final = 0.01
"""Relative: a PDR at the knee lies above the saturation throughput by the loss ratio of its goal, or by less."""
_EQUAL: Final = 1e-6
"""Changes that are measured by themselves differ by more."""


def agree_at_the_knee(changes: Iterable[ChangeResult]) -> bool:
    """Whether the changes of PDR and saturation throughput are the same, and so are their values."""
    known = {one.measurand: one for one in changes}
    pdr, saturation = known.get(PartialDropRate.name), known.get(SaturationThroughput.name)
    if pdr is None or saturation is None or pdr.verdict is not saturation.verdict:
        return False
    told = ((pdr.change, saturation.change), (pdr.lower, saturation.lower), (pdr.upper, saturation.upper))
    return all(math.isclose(one, other, rel_tol=0.0, abs_tol=_EQUAL) for one, other in told) and (
        math.isclose(pdr.candidate, saturation.candidate, rel_tol=_APART)
        and math.isclose(pdr.baseline, saturation.baseline, rel_tol=_APART)
    )  # fmt: skip


def told_once(changes: Iterable[ChangeResult]) -> list[ChangeResult]:
    """The changes without that of the saturation throughput, where it equals the PDR's."""
    found = list(changes)
    if not agree_at_the_knee(found):
        return found
    return [one for one in found if one.measurand != SaturationThroughput.name]
