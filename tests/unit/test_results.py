"""result.json: checked when written, checked when read, never half there."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flat_values import changed
from hypothesis import given, settings
from hypothesis import strategies as st
from made_results import compared, pdr, result, scenario, written

from pdrgate.history.results import GrowingResult, decoded_result, encoded, read_result, results_below, write_result
from pdrgate.history.schema import COMMAND, SCHEMA_PATH, result_schema, schema_text
from pdrgate.observers.environment import Environment, PortEnvironment
from pdrgate.results.model import RunResult, TestbedResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.errors import DataError, StorageError
from pdrgate.values.units import Rate, Ratio


def any_value(kind: Any) -> st.SearchStrategy[Any]:
    """All values of a type that the model uses."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if kind is int:
        return st.integers(-(2**63), 2**63 - 1)
    if kind is Any:
        return st.none() | st.booleans() | st.text() | st.lists(st.floats(allow_nan=False, allow_infinity=False))
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{field.name: any_value(hints[field.name]) for field in dataclasses.fields(kind)})
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(any_value(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(any_value, arguments))
    if origin is Mapping:
        return st.dictionaries(st.text(), any_value(arguments[1]), max_size=2)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(any_value, arguments))
    return st.from_type(kind)


RESULTS = any_value(RunResult).map(lambda made: dataclasses.replace(made, schema=2))


@settings(max_examples=15, deadline=None)
@given(RESULTS)
def test_any_result_is_read_as_it_was_written_and_is_what_the_schema_promises(made: RunResult) -> None:
    content = encoded(made)
    assert decoded_result(content, "result.json") == made
    jsonschema.Draft202012Validator(result_schema()).validate(json.loads(content))


def test_the_committed_schema_is_the_generated_one() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), f"it is out of date; make it again: {COMMAND}"
    jsonschema.Draft202012Validator.check_schema(result_schema())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content = result(scenario(), scenario("REGRESSION"))
    write_result(tmp_path / "result.json", content)
    assert read_result(tmp_path / "result.json") == read_result(tmp_path) == content
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b"\xef\xbb\xbf" + encoded(result(scenario())))
    assert read_result(tmp_path) == result(scenario())


def test_rates_and_ratios_are_numbers(tmp_path: Path) -> None:
    write_result(tmp_path / "result.json", result(scenario(), started=Rate(5.5), finished=Ratio(0.25)))
    assert (read_result(tmp_path).started, read_result(tmp_path).finished) == (5.5, 0.25)


def test_what_is_no_text_is_told_by_its_code(tmp_path: Path) -> None:
    """A testbed file may be called by any bytes: a run of one was measured, and left no result."""
    odd = os.fsdecode(b"of/odd\xff.yaml")
    testbed = TestbedResult(name="odd", kind="rack", source=odd)
    write_result(tmp_path / "result.json", result(scenario(), testbed=testbed, environment={odd: [odd]}))
    read = read_result(tmp_path)
    assert read.testbed.source == r"of/odd\xff.yaml"
    assert read.environment == {r"of/odd\xff.yaml": [r"of/odd\xff.yaml"]}


def test_environments_with_few_and_with_many_entries(tmp_path: Path) -> None:
    ports = (PortEnvironment("eth0", driver="ice", mtu=1500, offloads=("rx-checksumming",)), PortEnvironment("eth1"))
    full = Environment(cpus=2, turbo=False, sysctls={"net.core.netdev_budget": "300"}, ports=ports)
    few = {"kernel_release": "6.18.44", "mitigations": {"l1tf": "Not affected"}, "cpus": 2, "governor": None}
    for environment in (full.to_dict(), Environment().to_dict(), few, {}):
        write_result(tmp_path / "result.json", result(scenario(), environment=environment))
        assert json.dumps(read_result(tmp_path).environment) == json.dumps(environment)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_never_written(tmp_path: Path, number: float) -> None:
    bad = changed(scenario(), measurands=(pdr((1.0, number)),))
    with pytest.raises(ValueError, match=r"no finite number at scenarios\[1\]\.measurands\[0\]\.samples\[1\]; every"):
        write_result(tmp_path / "result.json", result(scenario(), bad))
    assert list(tmp_path.iterdir()) == []


def test_what_the_reader_would_not_take_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not what its reader takes: at scenarios\[0\]\.trials: expected `int`, got"):
        write_result(
            tmp_path / "result.json",
            result(dataclasses.replace(scenario(), trials="3")),  # type: ignore[arg-type]
        )
    assert list(tmp_path.iterdir()) == []


def spoilt(**changes: Any) -> dict[str, Any]:
    return json.loads(encoded(result(scenario()))) | changes  # type: ignore[no-any-return]


def spoilt_scenario(**changes: Any) -> dict[str, Any]:
    content = spoilt()
    content["scenarios"][0] |= changes
    return content


NO_RESULT = " is no result of a run: "


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (spoilt(verdict="FINE"), f"{NO_RESULT}at verdict: invalid enum value"),
        (spoilt(scenarios={}), f"{NO_RESULT}at scenarios: expected `array`, got `object`"),
        (spoilt(started="now"), f"{NO_RESULT}at started: expected `float`, got `str`"),
        (spoilt_scenario(trials=1.5), f"{NO_RESULT}at scenarios[0].trials: expected `int`, got `float`"),
        (
            spoilt_scenario(pdr={"load": "1"}),
            f"{NO_RESULT}at scenarios[0].pdr.load: expected `float`, got `str`",
        ),
        (
            spoilt_scenario(pdr={"load": 1.0}),
            f"{NO_RESULT}at scenarios[0].pdr: object missing required field `lower`",
        ),
        (
            spoilt_scenario(fingerprint={"a": 1}),
            f"{NO_RESULT}at scenarios[0].fingerprint[...]: expected `str`, got `int`",
        ),
        (
            spoilt_scenario(boots=[{"side": "left", "pair": 1, "boot": "", "kernel": ""}]),
            f"{NO_RESULT}at scenarios[0].boots[0].side: invalid enum value",
        ),
        ({"schema": 2}, f"{NO_RESULT}at its top level: object missing required field `pdrgate`"),
        (spoilt(schema=3), " is of schema 3, and this pdrgate reads schema 2; use the version that wrote it, or mea"),
        ({"schema": 1}, " is of schema 1, and this pdrgate reads schema 2; use the version that wrote it, or measure"),
        (spoilt(schema="2"), f"{NO_RESULT}at schema: the number 2 belongs there"),
        (spoilt(schema=True), f"{NO_RESULT}at schema: the number 2 belongs there"),
        ([], f"{NO_RESULT}it has no schema number at its top level; "),
        (17, f"{NO_RESULT}it has no schema number at its top level; "),
        ({}, f"{NO_RESULT}it has no schema number at its top level; "),
    ],
)
def test_a_fault_names_its_place_and_what_belongs_there(tmp_path: Path, content: Any, told: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError) as error:
        read_result(path)
    assert str(error.value).startswith(f"{path}{told}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", " is empty; name a result.json"),
        (b" \n", " is empty; name a result.json"),
        (b"{", " is no JSON ("),
        (b'{"a":\n\n1,}', " is no JSON ("),
        (b"\0", " is no JSON ("),
        (b"\xff\xfe\x00", " is no JSON ("),
        (b'{"schema": NaN}', " is no JSON ("),
        (b'{"schema": 2, "started": 1e999}', " is no JSON ("),
        (b'{"schema": 2, "reason": "\xff"}', " is no JSON ("),
        (bytes(range(256)) * 10, " is no JSON ("),
        (b'{"schema":' * 100_000, " is nested too deeply to be a result; name a result.json"),
        (b"[" * 1_000_000, " is nested too deeply to be a result; name a result.json"),
    ],
)
def test_a_file_that_is_no_json(tmp_path: Path, raw: bytes, told: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(raw)
    with pytest.raises(DataError) as error:
        read_result(path)
    assert str(error.value).startswith(f"{path}{told}")
    assert str(error.value).endswith("; name a result.json or the folder of a run")
    assert "\n" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_result(tmp_path)
    assert str(error.value) == (
        f"cannot read {tmp_path}/result.json: No such file or directory; name a result.json or the folder of a run"
    )


def test_a_write_that_fails_leaves_the_old_result(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_result(path, result(scenario()))
    before = path.read_text()
    (tmp_path / "result.json.part").mkdir()
    with pytest.raises(StorageError) as error:
        write_result(path, result(scenario("PASS")))
    assert str(error.value) == f"cannot write {path}: Is a directory; make room there and run again"
    assert path.read_text() == before


def test_a_result_that_grows_is_the_one_that_is_written_at_once(tmp_path: Path) -> None:
    """Each scenario is encoded once, and all of it again where it is another one."""
    path, first, second = tmp_path / "result.json", scenario(), compared()
    growing = GrowingResult(path)
    for some in ((first,), (first, second), (second,), (second, first), ()):
        growing.write(result(*some))
        assert path.read_bytes() == encoded(result(*some))


def test_what_a_growing_result_refuses_is_told_by_the_number_of_its_scenario(tmp_path: Path) -> None:
    bad = dataclasses.replace(scenario(), pdr=pdr(float("nan")))
    growing = GrowingResult(tmp_path / "result.json")
    growing.write(result(scenario()))
    with pytest.raises(ValueError, match=r"scenarios\[1\]\.pdr"):
        growing.write(result(scenario(), bad))


def test_a_full_disk_is_left_without_half_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match=r"result\.json: No space left on device; make room there and run again$"):
        write_result(tmp_path / "result.json", result(scenario()))
    assert list(tmp_path.iterdir()) == []


def test_results_come_newest_first_and_unreadable_ones_not_at_all(tmp_path: Path) -> None:
    for name, started in (("a", 2.0), ("b", 3.0), ("c", 1.0)):
        written(tmp_path / name, scenario(), started=started)
    written(tmp_path / "c" / "too-deep", scenario(), started=9.0)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "result.json").write_text("no JSON")
    assert [path.parent.name for path, _ in results_below(tmp_path)] == ["b", "a", "c"]
    assert next(results_below(tmp_path))[1].verdict is Verdict.NO_BASELINE


def test_scenarios_and_sides_are_flat_on_disk_whatever_parts_they_have() -> None:
    told = json.loads(encoded(result(compared())))["scenarios"][0]
    assert list(told)[:6] == ["name", "title", "verdict", "reason", "test", "carried"]
    assert told["fingerprint"] == told["sides"][1]["fingerprint"] == compared().findings.fingerprint
    for entry in (told, *told["sides"]):
        assert not entry.keys() & {"origin", "findings", "builds", "details"}
