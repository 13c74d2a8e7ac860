"""The cache folder keeps what can be made again, between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/pdrgate``, else ``~/.cache/pdrgate``: compiled parts, unpacked kernels."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pdrgate"
