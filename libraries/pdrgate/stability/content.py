"""Contents of files that are looked at more than once: a pipe (``/dev/stdin``, ``<(zcat trials.jsonl.gz)``) gives its
own once."""

from __future__ import annotations

import functools
import io
from pathlib import Path
from typing import BinaryIO

from pdrgate.this_process.no_follow import regular_no_follow

_LARGEST = 1 << 30
"""Bytes of a file of trials."""


def opened_content(path: Path) -> BinaryIO:
    """A file, from its beginning each time. Raises OSError."""
    return io.BytesIO(_of_pipe(path)) if path.is_relative_to("/dev") else regular_no_follow(path, _LARGEST)


@functools.cache
def _of_pipe(path: Path) -> bytes:
    return path.read_bytes()
