"""Files that are written as a whole: a disk that becomes full meanwhile, or a kill, leaves what was there before."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pdrgate.errors import StorageError


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Put the content in place of a file at once, so that no reader sees half of it.

    Args:
        durable: whether it is on disk before this returns.

    Raises:
        StorageError: it cannot be written; what was in the file stays.
    """
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # half a file would only take up room
        raise StorageError(f"cannot write {path}: {error.strerror}; make room there and run again") from error
