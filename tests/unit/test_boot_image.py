"""The ELF image in a bzImage: unpacked whatever it is packed with, kept, and left alone where it cannot be booted."""

import bz2
import gzip
import io
import lzma
import random
import shutil
import struct
import subprocess

import pytest
from made_kernels import vmlinux

from pdrgate.builds.boot_image import boots_by_pvh, built_into, elf_image


def image(payload, protocol=0x20F):
    """A bzImage around a payload: three sectors of set-up, some code, the payload, some more."""
    head = bytearray(3 * 512)
    head[0x1F1] = 2
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, protocol)
    struct.pack_into("<II", head, 0x248, 100, len(payload))
    return bytes(head) + b"c" * 100 + payload + b"m" * 100


def sized(compressed, content):
    """What the kernel's Makefile appends where the format does not end in the size."""
    return compressed + struct.pack("<I", len(content))


def by(*command):
    return lambda content: sized(
        subprocess.run(command, input=content, capture_output=True, check=True).stdout, content
    )


PACKINGS = {
    "gzip": gzip.compress,
    "xz": lambda content: sized(lzma.compress(content, check=lzma.CHECK_CRC32), content),
    "lzma": lambda content: sized(lzma.compress(content, lzma.FORMAT_ALONE), content),
    "bzip2": lambda content: sized(bz2.compress(content), content),
    "lz4": by("lz4", "-l", "-c"),
    "zstd": by("zstd", "-qc"),
    "none": lambda content: content,
}


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def bz_image(tmp_path):
    def make(payload, **options):
        path = tmp_path / "bzImage"
        path.write_bytes(image(payload, **options))
        return path

    return make


@pytest.mark.parametrize("packing", PACKINGS)
def test_an_image_is_unpacked_once(bz_image, cache, packing):
    if packing in ("lz4", "zstd") and shutil.which(packing) is None:
        pytest.skip(f"needs {packing}")
    path = bz_image(PACKINGS[packing](vmlinux()))
    found = elf_image(path, cache)
    assert found is not None
    assert found.read_bytes() == vmlinux()
    written = found.stat().st_ino
    assert elf_image(path, cache) == found
    assert found.stat().st_ino == written
    assert [one.name for one in cache.iterdir()] == [found.name]


def test_another_image_of_that_name_is_another(bz_image, cache):
    first = elf_image(bz_image(gzip.compress(vmlinux())), cache)
    second = elf_image(bz_image(gzip.compress(vmlinux(size=6000))), cache)
    assert first != second
    assert second.read_bytes() == vmlinux(size=6000)


@pytest.mark.parametrize(
    "content",
    [vmlinux(kind=17), vmlinux(owner=b"GNU\0"), b"no ELF file", vmlinux()[:70]],
    ids=["another note", "another owner", "no ELF file", "torn"],
)
def test_what_cannot_be_entered_by_pvh_is_found_out_once(bz_image, cache, content, monkeypatch):
    assert not boots_by_pvh(io.BytesIO(content))
    path = bz_image(gzip.compress(content))
    assert elf_image(path, cache) is None
    assert [one.stat().st_size for one in cache.iterdir()] == [0]
    monkeypatch.setattr("pdrgate.builds.boot_image._unpack", lambda *_: pytest.fail("unpacked again"))
    assert elf_image(path, cache) is None


@pytest.mark.parametrize(
    "payload",
    [
        gzip.compress(random.Random(1).randbytes(5000))[:-2000], lzma.compress(vmlinux()), b"\x1f\x8bgarbage",
        b"\xfd7zXZ\0garbage", b"BZhgarbage", b"\x5d\0\0", b"\x02\x21\x4c\x18garbage", b"\x28\xb5\x2f\xfdgarbage",
        b"\x89LZO\0garbage", b"",
    ],
    ids=["torn gzip", "lzma of no size", "gzip", "xz", "bzip2", "lzma", "lz4", "zstd", "lzo", "empty"],
)  # fmt: skip
def test_a_payload_that_cannot_be_read_leaves_the_bzimage(bz_image, cache, payload):
    assert elf_image(bz_image(payload), cache) is None


def test_an_old_protocol_or_no_bzimage_at_all(bz_image, tmp_path, cache):
    assert elf_image(bz_image(gzip.compress(vmlinux()), protocol=0x207), cache) is None
    (tmp_path / "file").write_bytes(b"short")
    assert elf_image(tmp_path / "file", cache) is None
    assert elf_image(tmp_path / "nowhere", cache) is None


def test_a_missing_tool_or_a_cache_that_cannot_be_written_leaves_the_bzimage(bz_image, tmp_path, cache, monkeypatch):
    (tmp_path / "file").write_text("")
    path = bz_image(gzip.compress(vmlinux()))
    assert elf_image(path, tmp_path / "file" / "cache") is None
    packed = bz_image(b"\x28\xb5\x2f\xfd" + vmlinux())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert elf_image(packed, cache) is None
    # Nothing is remembered: the tool may be installed by the next time.
    assert not cache.exists()


def test_a_driver_that_is_built_in_is_named_in_the_image(bz_image, cache):
    path = bz_image(gzip.compress(vmlinux() + b"\0virtio_pci\0virtio_net_hdr\0my_virtio_net\0"))
    assert [built_into(path, name, cache) for name in ("virtio_pci", "virtio_net")] == [True, False]
    assert built_into(bz_image(b"\x1f\x8bgarbage"), "virtio_net", cache) is None
