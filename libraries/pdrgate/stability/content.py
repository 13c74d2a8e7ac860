"""Contents of files that are looked at more than once: a pipe (``/dev/stdin``, ``<(zcat trials.jsonl.gz)``) gives its
own once."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import BinaryIO


def opened_content(path: Path) -> BinaryIO:
    """A file, from its beginning each time. Raises OSError."""
    return path.open("rb") if path.is_file() else io.BytesIO(_of_pipe(path))


@functools.cache
def _of_pipe(path: Path) -> bytes:
    return path.read_bytes()
