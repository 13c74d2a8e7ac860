"""The ELF image inside a bzImage, which QEMU boots by PVH (Documentation/arch/x86/boot.rst, Xen's misc/pvh.pandoc).

A bzImage decompresses itself, and under emulation the emulated CPU does it: half of the boot. So it is done here, once
for each image, and the result is kept in the cache. What the kernel's own decompressor also does is to choose a random
address (KASLR): a kernel booted by PVH lies where it was linked, in every boot alike. That is welcome here, for what
differs from boot to boot blurs comparisons, and addresses can be looked up in System.map; nothing in a guest that lives
for minutes is worth hiding. All builds of a comparison are booted alike wherever they can be.
"""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import lzma
import os
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from elftools.elf.segments import NoteSegment

from pdrgate.builds.elf_file import elf_file
from pdrgate.cache import cache_folder
from pdrgate.child_environment import child_environment

_SETUP_SECTORS, _MAGIC, _PROTOCOL, _PAYLOAD = 0x1F1, 0x202, 0x206, 0x248
"""Where a bzImage tells of itself: its first part's length, "HdrS", the protocol, the payload's offset and length."""
_WITH_PAYLOAD = 0x208
"""The protocol's version since which it tells where the payload lies."""

_PHYS32_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY: where a kernel may be entered by PVH."""

_SIZE = 4
"""Bytes behind the compressed image that hold its size, little-endian; with gzip they are part of the format."""

_KEPT = 16
"""Images that stay in the cache, each of about 60 MB, though more were not used for a day."""
_DAY = 86_400.0


def elf_image(image: Path, cache: Path | None = None) -> Path | None:
    """The ELF image in a bzImage, from the cache or put there; None where there is none that boots by PVH.

    That is a kernel without CONFIG_PVH, a compression for which there is no program here (lz4, zstd), a damaged
    payload, or a cache that cannot be written: the bzImage boots all the same.

    Args:
        cache: the folder for such images; by default in `cache_folder`.
    """
    folder = cache or cache_folder() / "images"
    with contextlib.suppress(OSError):
        content = image.read_bytes()
        kept = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.elf"
        if not kept.exists():
            unpacked = _unpacked(content)
            if unpacked is None:
                return None
            # An empty file says that it was looked at and cannot be booted so: unpacking takes seconds.
            _keep(kept, unpacked if boots_by_pvh(unpacked) else b"")
        os.utime(kept)
        return kept if kept.stat().st_size else None
    return None


def boots_by_pvh(content: bytes) -> bool:
    """Whether an ELF file says where it is entered by PVH."""
    try:
        with elf_file(content) as elf:
            for segment in elf.iter_segments("PT_NOTE"):
                assert isinstance(segment, NoteSegment)
                for note in segment.iter_notes():
                    kind: object = note["n_type"]  # a number, where pyelftools has no name for it
                    if note["n_name"] == "Xen" and kind == _PHYS32_ENTRY:
                        return True
    except ValueError:
        pass
    return False


def _unpacked(content: bytes) -> bytes | None:
    """What a bzImage decompresses itself to; None when that cannot be had."""
    if content[_MAGIC : _MAGIC + 4] != b"HdrS":
        return None
    (protocol,) = struct.unpack_from("<H", content, _PROTOCOL)
    if protocol < _WITH_PAYLOAD or len(content) < _PAYLOAD + 8:
        return None
    offset, length = struct.unpack_from("<II", content, _PAYLOAD)
    start = (content[_SETUP_SECTORS] + 1) * 512 + offset
    payload = content[start : start + length]
    if payload.startswith(b"\x7fELF"):
        return payload
    for magic, unpack in _COMPRESSIONS.items():
        if payload.startswith(magic):
            with contextlib.suppress(ValueError, EOFError, OSError, zlib.error, lzma.LZMAError):
                unpacked = unpack(payload)
                # Else it was cut off.
                return unpacked if len(unpacked) == int.from_bytes(payload[-_SIZE:], "little") else None
    return None


def _by_lzma(payload: bytes) -> bytes:
    return lzma.LZMADecompressor(lzma.FORMAT_AUTO).decompress(payload)


def _by(*command: str) -> Callable[[bytes], bytes]:
    def unpack(payload: bytes) -> bytes:
        done = subprocess.run(
            command, input=payload[:-_SIZE], capture_output=True, check=False, env=child_environment()
        )
        if done.returncode:
            raise ValueError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    return unpack


_COMPRESSIONS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda payload: zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(payload),
    b"\xfd7zXZ\0": _by_lzma,
    b"\x5d\0\0": _by_lzma,
    b"BZh": lambda payload: bz2.BZ2Decompressor().decompress(payload),
    b"\x02\x21\x4c\x18": _by("lz4", "-dc"),
    b"\x28\xb5\x2f\xfd": _by("zstd", "-dcq"),
}
"""By what a payload begins with; LZO is left to the kernel."""


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="part-", ignore_cleanup_errors=True) as place:
        part = Path(place) / path.name
        part.write_bytes(content)
        part.rename(path)
    _forget(path.parent)


def _forget(cache: Path) -> None:
    """Remove the images that were not used for longest; those of the last day may be in use just now."""
    images = sorted(cache.glob("*.elf"), key=lambda path: path.stat().st_mtime)
    for path in images[:-_KEPT]:
        if time.time() - path.stat().st_mtime > _DAY:
            path.unlink(missing_ok=True)
