"""trials.jsonl: whole lines only, each on disk before the next trial, also when the disk is full."""

from __future__ import annotations

import codecs
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from flat_values import flat_trial

from pdrgate.history.trials import TrialFile
from pdrgate.record.phase import Phase
from pdrgate.record.trial import Trial
from pdrgate.stability import read_trials
from pdrgate.values.errors import DataError, StorageError


def trial(number: int) -> Trial:
    return flat_trial(1000.0 + number, 1.0, offered=1000, forwarded=990, scenario="s", boot="b", phase=Phase.SEARCH)


def test_every_trial_is_in_the_file_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "folder" / "trials.jsonl"
    synced: list[bytes] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        synced.append(path.read_bytes())

    monkeypatch.setattr("os.fsync", fsync)
    with TrialFile(path) as file:
        for number in range(3):
            file.append(trial(number))
            assert len(synced) == number + 1
            assert synced[-1].endswith(trial(number).to_json().encode() + b"\n")
            assert read_trials(path) == [trial(n) for n in range(number + 1)]
    file.close()  # a second time


def test_a_file_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    for number in range(2):
        with TrialFile(path) as file:
            file.append(trial(number))
    assert read_trials(path) == [trial(0), trial(1)]


@pytest.mark.parametrize("torn", [b"{", b'{"intended_load":1', b"x" * 200_000, trial(9).to_json().encode()])
def test_what_a_killed_run_could_not_finish_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "trials.jsonl"
    whole = trial(0).to_json().encode() + b"\n"
    path.write_bytes(whole * 2 + torn)
    with TrialFile(path) as file:
        assert path.read_bytes() == whole * 2
        file.append(trial(1))
    assert read_trials(path) == [trial(0), trial(0), trial(1)]


def test_a_file_of_nothing_but_a_torn_line_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(b'{"intended')
    TrialFile(path).close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)).replace(b"\n", b""), 1),
        (b"\x7fELF\n\x00\x01", 1),
        (b"these are notes of mine", 1),
        (b"\n\nthese are notes of mine", 3),
        (b"[[1000, 0], [1000, 999]]", 1),
        (trial(0).to_json().encode() + b"\nnotes\nmore", 2),
    ],
    ids=["binary", "binary lines", "text", "text after blank lines", "PASTRAMI", "text among trials"],
)
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        TrialFile(path)
    assert path.read_bytes() == content
    assert str(error.value) == (
        f"cannot continue {path}: line {line} is no JSON object of a run's, so the file was left as it is; move it "
        "away, or start a new run"
    )


def test_a_file_that_an_editor_saved_with_a_byte_order_mark_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + trial(0).to_json().encode() + b'\n{"torn')
    with TrialFile(path) as file:
        file.append(trial(1))
    assert read_trials(path) == [trial(0), trial(1)]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as error:
        TrialFile(tmp_path / "file" / "trials.jsonl")
    assert str(error.value) == (
        f"cannot write {tmp_path}/file/trials.jsonl: File exists; choose another folder with --output"
    )


def fill(file: TrialFile) -> int:
    """Append until it fails; how many trials went in."""
    for number in range(10_000):
        try:
            file.append(trial(number))
        except StorageError as error:
            told = str(error)
            break
    else:
        raise AssertionError("the disk was never full")
    assert told.startswith(f"cannot write {file.path}: ")
    assert told.endswith(
        "; all trials before this one are kept: make room, then continue with --resume " + str(file.path.parent)
    )
    assert "\n" not in told
    assert "no space is left" in told or "No space left on device" in told or "File too large" in told
    return number


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ("mount", "-t", "tmpfs", "-o", "size=16k", "pdrgate-test", str(place)), capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(("umount", str(place)), check=True)


def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "trials.jsonl"
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 4096)
    with TrialFile(path) as file:
        kept = fill(file)
        assert kept > 0
        assert read_trials(path) == [trial(number) for number in range(kept)]
        assert path.read_bytes().endswith(b"\n")  # no half of a trial stays behind
        ballast.unlink()  # somebody makes room
        file.append(trial(kept))
    assert read_trials(path) == [trial(number) for number in range(kept + 1)]


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with TrialFile(path) as file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        try:
            kept = fill(file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        assert kept == 2000 // len(trial(0).to_json() + "\n")
        assert read_trials(path) == [trial(number) for number in range(kept)]
        file.append(trial(kept))
    assert read_trials(path) == [trial(number) for number in range(kept + 1)]
