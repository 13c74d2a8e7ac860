"""Estimated cycles: their parts, how a change is told, and files of weights."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from pdrgate.measurands.counted.estimated_cycles import (
    PRICED_CPU,
    CycleWeights,
    PricedEvents,
    WeightsWorth,
    cycle_weights,
    cycles_in_words,
    estimate_in_words,
    estimated_cycles,
    priced_events,
    read_weights,
)
from pdrgate.measurands.memory.memory_result import memory_result
from pdrgate.record.stretch import MemoryCounts, MemorySeen
from pdrgate.results.model import MemoryResult
from pdrgate.values.errors import UsageError

WEIGHTS = CycleWeights(
    "a machine", PricedEvents(0.5, 10.0, 40.0, 200.0, 20.0, 5.0, 25.0), WeightsWorth(30, 0.95, 0.1, 0.12)
)
COUNTS = MemoryCounts(
    instructions=20_000, loads=7, stores=7, lines=7, code_lines=7, missed_l1=300, missed_l1_code=100, missed_l2=50,
    missed_last=10, atomics=20, indirect=40, returns=4,
)  # fmt: skip


def test_each_event_has_its_price() -> None:
    events = priced_events(COUNTS, packets=10)
    assert events == (2000, 40, 5, 1, 2, 4, 0.4)
    parts = estimated_cycles(events, WEIGHTS)
    assert parts == (1000, 400, 200, 200, 40, 20, 10)
    assert parts.total == 1870


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (PricedEvents(1000, 400, 200, 200, 40, 20), "about 1 860 cycles a packet, as before"),
        (PricedEvents(1037, 400, 200, 330, 40, 20), "about 2 030 cycles a packet, +9 %: 7 % misses, 2 % instructions"),
        (PricedEvents(814, 400, 200, 200, 226, 20), "about 1 860 cycles a packet, as before"),
        (PricedEvents(814, 400, 200, 200, 40, 20), "about 1 670 cycles a packet, -10 %: -10 % instructions"),
        (PricedEvents(1000, 400, 200, 200, 133, 20), "about 1 950 cycles a packet, +5 %: 5 % atomics"),
        (PricedEvents(12_345), "about 12 300 cycles a packet, +564 %: 610 % instructions, -43 % misses, -2 % atomics, "
         "-1 % indirect branches"),
    ],
)  # fmt: skip
def test_a_change_is_told_by_its_parts(after: PricedEvents, told: str) -> None:
    assert cycles_in_words(PricedEvents(1000, 400, 200, 200, 40, 20), after) == told


def test_what_has_no_baseline_is_told_alone() -> None:
    assert cycles_in_words(PricedEvents(), PricedEvents(99.4)) == "about 99 cycles a packet"


def test_what_two_builds_come_to_is_told_with_its_worth() -> None:
    def result(**more: int) -> MemoryResult:
        seen = MemorySeen(10, 0, {"one": COUNTS, "other": COUNTS._replace(**more)})
        found = memory_result([seen, seen])
        assert found is not None
        return found

    told = estimate_in_words(result(), result(missed_last=20), "x86_64")
    worth = cycle_weights().worth.error_of_change
    assert told.startswith("about ")
    assert told.endswith(
        "% misses on AMD EPYC (an estimate, which is not judged: in the median its change is off by "
        f"{100 * worth:.0f} %, and judging takes 15 %)"
    )
    assert worth > 0.15
    assert estimate_in_words(None, result(), None) == ""
    assert estimate_in_words(result(), result(missed_last=20), "aarch64") == (
        "no estimate of cycles: there are prices of x86_64 alone, and the guest is aarch64"
    )
    assert estimate_in_words(MemoryResult(trials=2, values={}, functions=()), result(), None) == ""


def test_the_shipped_weights_have_prices_and_a_worth() -> None:
    weights = cycle_weights(PRICED_CPU)
    assert weights.machine
    assert all(price >= 0 for price in weights.cycles)
    assert weights.cycles.instructions > 0
    assert weights.cycles.missed_last > weights.cycles.atomics
    assert weights.worth.programs >= 30
    assert "within" in str(weights.worth)


@pytest.mark.parametrize("text", ["", "machine: x", "machine: x\ncycles: {instructions: no}\nworth: {}", "{"])
def test_a_file_without_weights_is_told_of(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"mine\.yaml: holds no weights .*tests/bench/fidelity"):
        read_weights(file)


def test_a_cpu_without_prices_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match=r"called 'znver9'; there are amd-epyc-25-17"):
        cycle_weights("znver9")


def test_a_testbed_file_can_name_each_cpu_that_has_prices() -> None:
    schema = json.loads(files("pdrgate").joinpath("schemas/testbed.schema.json").read_text())
    model = schema["$defs"]["vm-sut"]["properties"]["model"]
    weights = files("pdrgate.measurands").joinpath("weights")
    assert {f"{one}.yaml" for one in model["enum"]} == {one.name for one in weights.iterdir()}
    assert model["default"] == PRICED_CPU
    assert all(one in model["description"] for one in model["enum"])
