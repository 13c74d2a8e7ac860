"""Saturation by the throughput increase ratio (PASTRAMI section V), in the three readings of the method.

``strict`` is the paper's text: TIR < η at the potential saturation point and at every later load. ``tolerant`` is what
the authors' notebook evidently meant: entering saturation asks TIR < 3 η, staying in it TIR < η. ``published`` is what
the notebook computes and the paper's figures show: by operator precedence its entry test is always true, so the TIR at
the potential saturation point is never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pdrgate.stability.curve import first_past

DEFAULT_ETA = 0.1
DEFAULT_PLR_THRESHOLD = 0.005
_ENTRY_FACTOR = 3.0


class TirReading(StrEnum):
    """Test of the entry into saturation."""

    STRICT = "strict"
    TOLERANT = "tolerant"
    PUBLISHED = "published"

    def entry_bound(self, eta: float) -> float:
        """The TIR that the potential saturation point must stay below."""
        return {TirReading.STRICT: eta, TirReading.TOLERANT: _ENTRY_FACTOR * eta, TirReading.PUBLISHED: math.inf}[self]


class Label(StrEnum):
    """GOOD: saturation starts at the potential point and lasts, so the PDR characterises the SUT."""

    GOOD = "GOOD"
    BAD = "BAD"


@dataclass(frozen=True, slots=True)
class Saturation:
    """Indices count loads from 0, as ``tir`` does: ``tir[i]`` belongs to the step that ends at load i."""

    label: Label
    potential_index: int | None
    """The load after the first one whose PLR exceeds the threshold; None when there is no such load."""
    actual_index: int | None
    """The index of the load where the saturation that lasts to the last load begins; None when the last step is not
    saturated."""
    tir: tuple[float | None, ...]
    """The TIR of each load; the first is None."""


def throughput_increase_ratios(loads: Sequence[float], throughputs: Sequence[float]) -> tuple[float | None, ...]:
    """TIR_i = (T_i - T_{i-1}) / (O_i - O_{i-1}) (section V-A), per load; the first is None.

    Raises:
        ValueError: the loads do not strictly increase, or the two sequences differ in length.
    """
    if len(loads) != len(throughputs):
        raise ValueError(f"{len(loads)} loads but {len(throughputs)} throughputs")
    ratios: list[float | None] = [None] if loads else []
    for index in range(1, len(loads)):
        step = loads[index] - loads[index - 1]
        if step <= 0:
            raise ValueError(f"loads must strictly increase, but {loads[index - 1]!r} is followed by {loads[index]!r}")
        ratios.append((throughputs[index] - throughputs[index - 1]) / step)
    return tuple(ratios)


def detect_saturation(
    loads: Sequence[float],
    plrs: Sequence[float],
    *,
    throughputs: Sequence[float] | None = None,
    reading: TirReading = TirReading.STRICT,
    plr_threshold: float = DEFAULT_PLR_THRESHOLD,
    eta: float = DEFAULT_ETA,
) -> Saturation:
    """The paper's algorithm (Fig. 7): walk up from the potential saturation point and forget saturation that ends.

    GOOD when the saturation that lasts begins at the potential point. Without a load past the threshold, or none
    after it, saturation was never seen: BAD. Throughputs that are not given are T = O (1 - PLR).
    """
    if throughputs is None:
        throughputs = [load * (1 - plr) for load, plr in zip(loads, plrs, strict=True)]
    tir = throughput_increase_ratios(loads, throughputs)
    past = first_past(plrs, plr_threshold)
    if past is None or past + 1 >= len(loads):
        return Saturation(Label.BAD, None, None, tir)
    potential = past + 1
    entered: int | None = None
    for index in range(potential, len(loads)):
        ratio = tir[index]
        assert ratio is not None  # only the first load has none, and potential >= 1
        if entered is None:
            entered = index if ratio < reading.entry_bound(eta) else None
        elif not ratio < eta:
            entered = None
    return Saturation(Label.GOOD if entered == potential else Label.BAD, potential, entered, tir)
