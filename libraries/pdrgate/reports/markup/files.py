"""Files that nobody sees half of."""

from __future__ import annotations

from pathlib import Path

from pdrgate.errors import StorageError


def written(path: Path, content: bytes) -> Path:
    """Put the content in place of the file at once, and return its path. Raises StorageError."""
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}; make room there, or run as its owner") from error
    return path
