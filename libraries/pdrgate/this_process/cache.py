"""The cache folder keeps what can be made again, between runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_DAY = 86_400.0


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/pdrgate``, else ``~/.cache/pdrgate``: compiled parts, unpacked kernels."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pdrgate"


@contextlib.contextmanager
def alone(folder: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[int]:
    """A folder of the cache for one process at a time, with the lock's descriptor. Raises OSError.

    Args:
        waiting: called once if another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """The place to write a file or a folder of the cache, which appears as ``path`` only when it is complete.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="part-", ignore_cleanup_errors=True) as place:
        part = Path(place) / path.name
        yield part
        part.rename(path)


def put(path: Path, content: bytes) -> None:
    """Write a file of the cache, which appears only when it is complete. Raises OSError."""
    with appearing(path) as part:
        part.write_bytes(content)


def forget(kept: Iterable[Path], most: int) -> None:
    """Remove the least recently used files and folders until ``most`` are left. Those used in the last day are kept."""
    by_use = sorted(kept, key=lambda path: path.stat().st_mtime)
    for path in by_use[:-most]:
        if time.time() - path.stat().st_mtime <= _DAY:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
