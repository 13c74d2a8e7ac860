"""The configuration that a kernel has in its image (CONFIG_IKCONFIG), for builds that have it in no file.

Arch's packages have no other. An image that was looked at is not unpacked again: what it has is kept in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

from pdrgate.builds.arm64_image import flat_kernel
from pdrgate.builds.bz_image import LARGEST_IMAGE, PackedKernel, packed_kernel
from pdrgate.builds.decompression import MissingToolError, decompressed
from pdrgate.builds.handed_over import BuildError, opened_build_file
from pdrgate.this_process.cache import forget, put

LARGEST_CONFIG = 4 << 20
"""Bytes that a configuration may have."""
_BEGIN, _END = b"IKCFG_ST\x1f\x8b", b"IKCFG_ED"
"""Marks of kernel/configs.c around the configuration, the first with the begin of gzip's data."""
_GZIP = 2
_KEPT = 64


def image_config(image: Path, cache: Path) -> Path | None:
    """A file with the configuration in an image; None if it has none, or cannot be unpacked here.

    Args:
        image: the real path of the image.
        cache: the folder where such files are kept.
    """
    with (
        contextlib.suppress(OSError, BuildError, MissingToolError),
        opened_build_file(image, image, LARGEST_IMAGE) as file,
    ):
        kept = cache / f"{hashlib.file_digest(file, 'sha256').hexdigest()}.config"
        if not kept.exists():
            # An empty file says that there is none.
            put(kept, _configuration(packed_kernel(file) or flat_kernel(file)))
            forget(cache.glob("*.config"), _KEPT)
        return kept if kept.stat().st_size else None
    return None


def _configuration(kernel: PackedKernel | None) -> bytes:
    """The configuration in a kernel; empty if it has none that can be read."""
    try:
        packed = _between_marks(decompressed(kernel.packed, kernel.size)) if kernel is not None else b""
        return b"".join(decompressed(io.BytesIO(packed), LARGEST_CONFIG))
    except ValueError:
        return b""


def _between_marks(kernel: Iterable[bytes]) -> bytes:
    """The packed configuration in a kernel that comes in pieces; empty if it has none."""
    found, tail, inside = bytearray(), b"", False
    for piece in kernel:
        if inside:
            found += piece
        else:
            window = tail + piece
            at = window.find(_BEGIN)
            inside = at >= 0
            found += window[at + len(_BEGIN) - _GZIP :] if inside else b""
            tail = window[1 - len(_BEGIN) :]
        if inside and (end := found.find(_END)) >= 0:
            return bytes(found[:end])
        if len(found) > LARGEST_CONFIG:
            break
    return b""
