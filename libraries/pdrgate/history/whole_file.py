"""Files that are written as a whole: a disk that becomes full meanwhile, or a kill, leaves what was there before."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

from pdrgate.this_process.no_follow import LinkError, folder_no_follow
from pdrgate.values.errors import StorageError


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> Path:
    """Put the content in place of a file at once, so that no reader sees half of it, and return its path.

    Its folder is made where there is none. No link on the way to it is followed, and one in its place is replaced.

    Args:
        durable: whether it is on disk before this returns.

    Raises:
        StorageError: it cannot be written; what was in the file stays.
    """
    partial = f"{path.name}.part"
    try:
        with folder_no_follow(path.parent, make=True) as folder:
            _forget(partial, folder)
            try:
                with _new(partial, folder) as file:
                    file.write(content)
                    file.flush()
                    if durable:
                        os.fsync(file.fileno())
                os.replace(partial, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(OSError):
                    _forget(partial, folder)  # half a file would only take up room
                raise
    except LinkError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}; make room there and run again") from error
    return path


def _new(name: str, folder: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(name, flags, 0o666, dir_fd=folder), "wb")  # noqa: PTH123 - its folder may have moved


def _forget(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
