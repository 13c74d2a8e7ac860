"""result.json: checked when written, checked when read, never half there."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_results import result, scenario, written

from pdrgate.errors import DataError, StorageError
from pdrgate.history.results import read_result, results_below, write_result
from pdrgate.observers.environment import Environment, PortEnvironment


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content = result(scenario(), scenario("REGRESSION"))
    write_result(tmp_path / "result.json", content)
    assert read_result(tmp_path / "result.json") == read_result(tmp_path) == content
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_environments_of_this_version_and_of_older_ones(tmp_path: Path) -> None:
    ports = (PortEnvironment("eth0", driver="ice", mtu=1500, offloads=("rx-checksumming",)), PortEnvironment("eth1"))
    full = Environment(cpus=2, turbo=False, sysctls={"net.core.netdev_budget": "300"}, ports=ports)
    older = {"kernel_release": "6.18.44", "mitigations": {"l1tf": "Not affected"}, "cpus": 2, "governor": None}
    for environment in (full.to_dict(), Environment().to_dict(), older, {}):
        write_result(tmp_path / "result.json", result(scenario()) | {"environment": environment})
        assert read_result(tmp_path)["environment"] == environment


def spoilt(**changes: Any) -> dict[str, Any]:
    return result(scenario()) | changes


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (spoilt(verdict="FINE"), "at verdict: 'FINE' is not one of"),
        (spoilt(schema=2), "at schema: 1 was expected"),
        (spoilt(scenarios={}), "at scenarios: {} is not of type 'array'"),
        (result(scenario() | {"trials": -1}), "at scenarios/0/trials: -1 is less than the minimum of 0"),
        (result(scenario(per_run=(0.0,))), "at scenarios/0/pdr: "),
        (spoilt(environment={"cpus": "2"}), "at environment/cpus: '2' is not of type 'integer', 'null'"),
        (spoilt(environment={"ports": [{}]}), "at environment/ports/0: 'interface' is a required property"),
        ([], r"at its top level: \[\] is not of type 'object'"),
        (17, "at its top level: 17 is not of type 'object'"),
        ({}, "at its top level: '[a-z]+' is a required property"),
    ],
)
def test_a_fault_names_its_place_and_is_neither_written_nor_read(tmp_path: Path, content: Any, where: str) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(jsonschema.ValidationError):
        write_result(path, content)
    assert not path.exists()
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"is no result of this version of pdrgate: {where}") as error:
        read_result(path)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("text", ["", "{", '{"a":\n\n1,}', "\0"])
def test_a_file_that_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_result(path)
    assert str(error.value).startswith(f"{path} is no JSON (")
    assert str(error.value).endswith("); name a result.json or the folder of a run")
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is no JSON"):
        read_result(tmp_path)


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
