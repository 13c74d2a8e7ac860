"""The cache folder keeps what can be made again, between runs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

_DAY = 86_400.0


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/pdrgate``, else ``~/.cache/pdrgate``: compiled parts, unpacked kernels."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pdrgate"


def put(path: Path, content: bytes) -> None:
    """Write a file of the cache, which appears only when it is complete. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="part-", ignore_cleanup_errors=True) as place:
        part = Path(place) / path.name
        part.write_bytes(content)
        part.rename(path)


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
