"""What was found of a kernel's code, or of two kernels, kept in the cache by the content of the builds.

Whatever cannot be read there is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import packed_module
from pdrgate.this_process.cache import cache_folder, forget, put

_Found = TypeVar("_Found")

_KEPT = 64


def code_digest(build: KernelBuild, modules: Iterable[str]) -> str:
    """The digest of a build's image and of these modules, by their content: a time says nothing of it."""
    with build.open_image() as image:
        digest = hashlib.file_digest(image, "sha256")
    for name in modules:
        digest.update(f"\0{name} {hashlib.sha256(packed_module(build, name)).hexdigest()}".encode())
    return digest.hexdigest()


def kept(kind: str, digests: tuple[str, ...], as_type: type[_Found], made: Callable[[], _Found]) -> _Found:
    """Return what the cache has, or make it and keep it there. Raises what ``made`` raises.

    Args:
        digests: of the builds, see `code_digest`.
    """
    words = "\n".join((_form(), kind, *digests))
    path = cache_folder() / "differences" / f"{kind}-{hashlib.sha256(words.encode()).hexdigest()}"
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        found = msgspec.msgpack.decode(path.read_bytes(), type=as_type)
        path.touch()
        return found
    found = made()
    with contextlib.suppress(OSError):
        put(path, msgspec.msgpack.encode(found))
        forget(path.parent.glob(f"{kind}-*"), _KEPT)
    return found


def _form() -> str:
    """The digest of what compares: an older answer is none of today's."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(one.read_bytes() for one in sources)).hexdigest()
