"""A file that is written as a whole has its old content or its new one, whatever happens meanwhile."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pdrgate.gate.run.run_record import FINGERPRINTS_FILE, RunRecord
from pdrgate.history.whole_file import write_whole
from pdrgate.values.errors import StorageError


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path) -> None:
    """The fingerprints of a run were once cut to nothing, and the run could not be resumed."""
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k", "pdrgate-test", tmp_path), check=True)
    try:
        record = RunRecord(tmp_path, "quick")
        record.note_fingerprint("one", {"kernel": "6.1"})
        with pytest.raises(StorageError, match=r"No space left on device; make room there and run again$"):
            record.note_fingerprint("two", {"kernel": "x" * (1 << 20)})
        record.close()
        resumed = RunRecord(tmp_path, "quick", resume=True)
        assert resumed.fingerprint("one") == {"kernel": "6.1"}
        resumed.close()
        assert not [*tmp_path.glob("*.part")]
        assert (tmp_path / FINGERPRINTS_FILE).exists()
    finally:
        subprocess.run(("umount", "--lazy", tmp_path), check=True)


def test_a_reader_sees_the_old_or_the_new(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, b"old")
    with file.open("rb") as reader:
        write_whole(file, b"new", durable=False)
        assert (reader.read(), file.read_bytes()) == (b"old", b"new")
