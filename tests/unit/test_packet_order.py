"""Packets that a later one of their flow overtook, as a part of all."""

import json

import pytest

from pdrgate.measurands.rates.numbered_packets import PacketsInOrder
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Occasion
from pdrgate.record.trial import Aside, Trial
from pdrgate.results.model import ChangeResult
from pdrgate.results.verdict import Verdict


def made(numbered: int, overtaken: int, phase: Phase = Phase.SATURATION) -> Trial:
    return Trial(
        intended_load=1000.0, intended_duration=1.0, offered=1000, forwarded=1000,
        aside=Aside(numbered=numbered, overtaken=overtaken), occasion=Occasion(phase=phase),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("trials", "value"),
    [
        ([made(0, 0)], None), ([made(1000, 0)], 1.0), ([made(1000, 200)], 1.25), ([made(600, 0), made(400, 200)], 1.25),
        ([made(1000, 0), made(1000, 900, Phase.MEMORY)], 1.0), ([made(3, 3)], 3.0),
    ],
)  # fmt: skip
def test_it_is_told_of_packets_that_have_a_number(trials: list[Trial], value: float | None) -> None:
    assert PacketsInOrder().value(trials) == value


@pytest.mark.parametrize(
    ("baseline", "candidate", "verdict", "told"),
    [
        (1.0, 1.25, Verdict.REGRESSION, "20.0% of packets come out of their flow's order, was 0.0%"),
        (1.0, 1.0004, Verdict.PASS, "packets keep their flow's order"),
        (1.0, 0.5, Verdict.REGRESSION, "0.0% of packets come out of their flow's order, was 0.0%"),
    ],
)
def test_it_is_said_as_a_part_of_all(baseline: float, candidate: float, verdict: Verdict, told: str) -> None:
    change = ChangeResult(
        measurand=PacketsInOrder.about.name, change=candidate / baseline - 1.0, lower=0.0, upper=0.3, confidence=0.95,
        tolerance=0.005, baseline=baseline, candidate=candidate, unit="ratio", better="lower",
        verdict=verdict,
    )  # fmt: skip
    assert PacketsInOrder.about.told(change) == told


def test_no_more_can_be_overtaken_than_have_a_number() -> None:
    with pytest.raises(ValueError, match=r"overtaken \(2\) exceeds numbered \(1\)"):
        made(1, 2)


def test_a_line_on_disk_has_both() -> None:
    told = made(5, 2)
    assert Trial.from_mapping(json.loads(told.to_json())).aside == told.aside
