"""Files that no link leads to, by openat2 and step by step."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from made_results import result, scenario

from pdrgate.history.lines import LineFile
from pdrgate.history.results import read_result, write_result
from pdrgate.history.whole_file import write_whole
from pdrgate.stability import read_trials
from pdrgate.this_process import no_follow
from pdrgate.this_process.no_follow import (
    LinkError,
    first_linked_below,
    folder_no_follow,
    open_no_follow,
    read_no_follow,
)
from pdrgate.values.errors import DataError, StorageError


@pytest.fixture(params=["openat2", "step by step"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    if request.param == "step by step":
        monkeypatch.setattr(no_follow, "_openat2", lacking)


LINKED = {
    "the file": "folder/linked",
    "its folder": "elsewhere/file",
    "a parent of its folder": "elsewhere/below/file",
    "a link to nothing": "folder/dangling",
    "a link that leads back": "folder/back/folder/file",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder/below").mkdir(parents=True)
    for name in ("folder/file", "folder/below/file"):
        (tmp_path / name).write_text("content")
    (tmp_path / "elsewhere").symlink_to("folder")
    (tmp_path / "folder/linked").symlink_to("file")
    (tmp_path / "folder/dangling").symlink_to("nowhere")
    (tmp_path / "folder/back").symlink_to("..")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("kernel")
class TestLinks:
    @pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
    @pytest.mark.parametrize("name", LINKED.values(), ids=LINKED)
    def test_none_is_followed_and_the_error_names_it(self, place: Path, name: str, absolute: bool) -> None:
        path = place / name if absolute else Path(name)
        for flags in (os.O_RDONLY, os.O_PATH, os.O_RDWR | os.O_CREAT):
            with pytest.raises(LinkError, match=r"is a link; name the (file|folder) itself"):
                os.close(open_no_follow(path, flags))
        with pytest.raises(LinkError):
            read_no_follow(path, 100)
        assert not (place / "folder/nowhere").exists()

    @pytest.mark.parametrize("name", ["folder/file", "folder/below/../file", "./folder/file", "folder/../folder/file"])
    def test_what_no_link_leads_to_is_read(self, place: Path, name: str) -> None:
        assert read_no_follow(Path(name), 7) == read_no_follow(place / name, 7) == b"content"

    def test_a_folder_is_made_with_its_parents_and_not_behind_a_link(self, place: Path) -> None:
        with folder_no_follow(Path("new/folder"), make=True) as fd:
            assert os.path.samestat(os.fstat(fd), (place / "new/folder").stat())
        for name in ("elsewhere/new", "folder/dangling/new", "folder/dangling"):
            with pytest.raises(LinkError), folder_no_follow(place / name, make=True):
                pass
        assert sorted(path.name for path in (place / "folder").iterdir()) == [
            "back",
            "below",
            "dangling",
            "file",
            "linked",
        ]

    def test_a_file_is_written_in_place_of_a_link_and_never_behind_one(self, place: Path) -> None:
        for name in ("folder/linked", "folder/dangling"):
            assert write_whole(Path(name), b"new") == Path(name)
            assert not Path(name).is_symlink()
        Path("folder/other.part").symlink_to("file")
        write_whole(Path("folder/other"), b"new")
        assert Path("folder/file").read_text() == "content"
        with pytest.raises(StorageError, match=r"^cannot write elsewhere/other: elsewhere is a link; name the folder"):
            write_whole(Path("elsewhere/other"), b"new")
        with pytest.raises(StorageError, match="elsewhere is a link; name the folder itself"):
            LineFile(Path("elsewhere/lines.jsonl"))

    def test_results_and_trials_are_not_read_behind_one(self, place: Path) -> None:
        with pytest.raises(DataError, match=r"^cannot read elsewhere/file: elsewhere is a link; name the folder"):
            read_result(Path("elsewhere/file"))
        with pytest.raises(DataError, match=r"^folder/linked: cannot be read: it is a link; name the file itself$"):
            read_trials(Path("folder/linked"))


def test_what_is_no_regular_file_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="it is no regular file"):
        read_no_follow(tmp_path / "fifo", 1)
    with pytest.raises(OSError, match="it is no regular file"):
        read_no_follow(Path("/dev/zero"), 1)
    with pytest.raises(IsADirectoryError):
        read_no_follow(tmp_path, 1)


def test_what_is_too_large_is_refused_in_one_line(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    with result.open("wb") as file:
        file.truncate(78 << 20)
    with pytest.raises(DataError) as told:
        read_result(tmp_path)
    assert str(told.value) == (
        f"cannot read {result}: it is larger than 64 MiB, which no such file is; name a result.json or the folder of "
        "a run"
    )


def test_all_that_could_lead_out_of_a_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "below/deeper").mkdir(parents=True)
    (tmp_path / "below/file").write_text("x")
    assert first_linked_below(tmp_path) is None
    planted = tmp_path / "below/deeper/planted"
    for plant in (
        lambda: planted.symlink_to("/etc/passwd"), lambda: planted.symlink_to("/"), lambda: os.mkfifo(planted),
        lambda: planted.hardlink_to(tmp_path / "below/file"),
    ):  # fmt: skip
        plant()
        assert first_linked_below(tmp_path) in (planted, tmp_path / "below/file")
        planted.unlink()
    assert first_linked_below(tmp_path) is None


def test_a_text_that_no_run_writes_is_refused_in_one_line(tmp_path: Path) -> None:
    """A reason of megabytes took a minute to be put into words."""
    write_result(tmp_path / "result.json", result(scenario()))
    content = json.loads((tmp_path / "result.json").read_text())
    for text in ("x" * 70_000, '"; (' * 20_000):
        (tmp_path / "result.json").write_text(json.dumps(content | {"reason": text}))
        with pytest.raises(DataError, match=r"is no result of a run: at byte \d+: a text of more than 64 KiB; name a "):
            read_result(tmp_path)
