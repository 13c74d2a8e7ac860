"""The assessment as data: the shape that other programs rely on."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_sut import Behaviour, IdealCurve, SimulatedSut

from pdrgate.record.trial import Trial
from pdrgate.stability import Assessment, TirReading, assess

LOADS = [4e5, 6e5, 8e5, 9.5e5, 1.1e6, 1.3e6, 1.5e6]


def example(scale: float = 1.0, runs: int = 6) -> Assessment:
    sut = SimulatedSut(IdealCurve(1e6 * scale), Behaviour(0.002), seed=4)
    return assess(sut.repeat([scale * load for load in LOADS], 1.0, runs), source="here")


def test_the_shape_of_an_experiment() -> None:
    shape = json.loads(json.dumps(msgspec.to_builtins(example().result()), allow_nan=False))
    assert {"source", "labels", "pdr", "saturation", "loads", "drift", "verdict"} <= shape.keys()
    assert shape["source"] == "here"
    assert shape["labels"] == {"strict": "GOOD", "tolerant": "GOOD", "published": "GOOD"}
    assert {"load", "lower", "upper"} <= shape["pdr"].keys()
    assert shape["pdr"]["lower"] <= shape["pdr"]["load"] <= shape["pdr"]["upper"]
    assert shape["pdr"]["bracket"] == [9.5e5, 1.1e6]
    assert (shape["saturation"]["potential_index"], shape["saturation"]["actual_index"]) == (5, 5)
    assert len(shape["saturation"]["tir"]) == len(LOADS) - 1
    assert [load["load"] for load in shape["loads"]] == LOADS
    assert {"load", "runs", "plr", "plr_sd", "lcl", "ucl", "delta_ucl"} <= shape["loads"][0].keys()
    assert [load["tir"] for load in shape["loads"]] == [None, *shape["saturation"]["tir"]]
    assert [series["quantity"] for series in shape["drift"]["series"]] == ["pdr", "throughput", "throughput"]
    assert all(check["sentence"] for check in shape["checks"])
    assert shape["verdict"] == "STABLE"


def test_what_one_run_cannot_say_is_null() -> None:
    shape = msgspec.to_builtins(example(runs=1).result())
    assert {load["plr_sd"] for load in shape["loads"]} == {None}
    assert (shape["pdr"]["lower"], shape["pdr"]["upper"]) == (None, None)
    assert shape["pdr"]["load"] is not None


def test_the_estimate_lies_near_the_capacity() -> None:
    # Between 0.95 and 1.1 Mpps; linear interpolation errs low, never above the true 1.005 Mpps.
    load = example().pdr.load
    assert load is not None
    assert 0.95e6 < load < 1.01e6


def test_a_faster_sut_at_proportional_loads_is_the_same_in_other_numbers() -> None:
    slow, fast = example(), example(scale=4)
    assert slow.verdict == fast.verdict
    assert slow.labels == fast.labels
    assert slow.pdr.load is not None
    assert fast.pdr.load == pytest.approx(4 * slow.pdr.load, rel=0.01)


loss_tables = st.lists(
    st.lists(st.integers(min_value=0, max_value=1000), min_size=1, max_size=12), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(loss_tables, st.sampled_from(TirReading), st.sampled_from([0.0, 0.005, 0.5]))
def test_any_trials_get_a_verdict_a_reason_and_valid_json(
    table: list[list[int]], reading: TirReading, threshold: float
) -> None:
    trials = [
        Trial(intended_load=1e5 * (row + 1), intended_duration=1, offered=1000, forwarded=1000 - lost, sending_time=1)
        for row, losses in enumerate(table)
        for lost in losses
    ]
    found = assess(trials, reading=reading, plr_threshold=threshold)
    shape = json.loads(json.dumps(msgspec.to_builtins(found.result()), allow_nan=False))
    assert shape["verdict"] in {"STABLE", "UNSTABLE", "INCONCLUSIVE"}
    assert bool(found.reason) == (shape["verdict"] != "STABLE")
    if shape["labels"][reading.value] == "BAD":
        assert shape["verdict"] != "STABLE"
