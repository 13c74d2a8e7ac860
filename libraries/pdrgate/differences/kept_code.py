"""What was found of a kernel's code, or of two kernels, kept in the cache by the content of the builds.

Whatever cannot be read there is made again. Builds of one identity are the same: see `pdrgate.builds.identity`.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from pdrgate.builds.identity import build_identity
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.this_process.cache import cache_folder, forget, put

_Found = TypeVar("_Found")

_FORM = "1"
"""It changes with what is compared and how, so that no older answer is taken."""
_KEPT = 64


def kept(kind: str, builds: tuple[KernelBuild, ...], as_type: type[_Found], made: Callable[[], _Found]) -> _Found:
    """Return what the cache has, or make it and keep it there. Raises what ``made`` and `build_identity` raise."""
    words = "\n".join((_FORM, kind, *map(build_identity, builds)))
    path = _folder() / f"{kind}-{hashlib.sha256(words.encode()).hexdigest()}"
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        found = msgspec.msgpack.decode(path.read_bytes(), type=as_type)
        path.touch()
        return found
    found = made()
    with contextlib.suppress(OSError):
        put(path, msgspec.msgpack.encode(found))
        forget(path.parent.glob(f"{kind}-*"), _KEPT)
    return found


def _folder() -> Path:
    return cache_folder() / "differences"
