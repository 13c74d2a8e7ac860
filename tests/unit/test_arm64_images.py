"""Images of arm64 kernels in each form that builds have, and what no guest runs. All kernels here are made up."""

import gzip
import re
import shutil
import struct
import subprocess
from dataclasses import replace

import pytest
from made_kernels import RELEASE, VERSION, flat_image, image, image_around, modules_folder, zboot_image

from pdrgate.builds.architecture import ARCHITECTURES, ARM64, X86_64, of_package, this_machines
from pdrgate.builds.boot_image import flat_image as unpacked_flat
from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.image_facts import ImageFacts, image_facts
from pdrgate.builds.kernel_build import kernel_build
from pdrgate.builds.named_build import check_one_architecture
from pdrgate.cli.gate import _by_architecture
from pdrgate.differences.code_differences import code_differences
from pdrgate.values.errors import UsageError

FACTS = ImageFacts(ARM64, RELEASE, VERSION)
needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")


def by_zstd(content):
    return subprocess.run(("zstd", "-qc"), input=content, capture_output=True, check=True).stdout


FORMS = {
    "Image": lambda kernel: kernel,
    "Image.gz": gzip.compress,
    "gzip.efi": lambda kernel: zboot_image(kernel, gzip.compress, b"gzip"),
    "zstd.efi": lambda kernel: zboot_image(kernel, by_zstd, b"zstd22"),
}


@pytest.mark.parametrize("form", [pytest.param(one, marks=needs_zstd if "zstd" in one else ()) for one in FORMS])
def test_each_form_shows_the_architecture_and_the_release(tmp_path, form):
    kernel, path = flat_image(more=bytes(5000)), tmp_path / form
    path.write_bytes(FORMS[form](kernel))
    assert image_facts(path) == FACTS
    flat = unpacked_flat(path, tmp_path / "cache")
    assert flat is not None
    assert flat.read_bytes() == kernel
    assert linked_image(path, tmp_path / "cache") == flat
    assert (flat == path) == (form == "Image")


def test_the_banner_of_the_link_is_taken(tmp_path):
    """Linux has a second banner in its image, of no number, that the linker leaves behind."""
    left = f"Linux version {RELEASE} (b@h) (gcc) # SMP x\n\0".encode()
    (tmp_path / "Image").write_bytes(flat_image(more=left))
    assert image_facts(tmp_path / "Image").version == VERSION


@pytest.mark.parametrize(("bits", "bytes_of_page"), [(0, 4096), (1, 4096), (2, 16384), (3, 65536)])
def test_the_size_of_pages_is_read(tmp_path, bits, bytes_of_page):
    (tmp_path / "Image").write_bytes(flat_image(flags=8 | bits << 1))
    assert kernel_build(tmp_path / "Image").page_size == bytes_of_page


def x86_of_32_bits():
    head = bytearray(image_around(b"\x7fELF" + bytes(5000), 5004))
    struct.pack_into("<H", head, 0x236, 0)
    return bytes(head)


REFUSED = {
    "big-endian": (lambda: flat_image(flags=0xB), "is a big-endian kernel"),
    "ARM": (lambda: bytes(0x24) + bytes.fromhex("18286f01") + bytes(1000), "is a kernel for 32-bit ARM"),
    "RISC-V": (lambda: bytes(0x38) + b"RSC\x05" + bytes(1000), "is a kernel for RISC-V"),
    "32 bits": (x86_of_32_bits, "is a 32-bit kernel"),
    "no banner": (lambda: flat_image()[:64] + bytes(1000), "has no kernel release in its banner"),
    "cut off": (lambda: gzip.compress(flat_image(more=bytes(9000)))[:-20], "cannot be unpacked|is no kernel image"),
    "packed text": (lambda: gzip.compress(b"text" * 100), "ends too early|is no kernel image|cannot be unpacked"),
    "EFI program": (lambda: b"MZ\0\0zimg" + struct.pack("<II", 64, 1 << 30) + bytes(100), "is no kernel image"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_guest_runs_is_refused_in_one_line(tmp_path, name):
    make, words = REFUSED[name]
    (tmp_path / "Image").write_bytes(make())
    with pytest.raises(BuildError, match=words) as error:
        kernel_build(tmp_path / "Image", cache=tmp_path)
    assert "\n" not in str(error.value)


def test_a_tree_has_its_image_where_its_architecture_puts_it(tmp_path):
    place = tmp_path / ARM64.tree_image
    place.parent.mkdir(parents=True)
    place.write_bytes(flat_image())
    (tmp_path / ".config").write_text("CONFIG_ARM64=y\n")
    build = kernel_build(tmp_path)
    assert (build.architecture, build.config) == (ARM64, tmp_path / ".config")
    (tmp_path / "arch/x86/boot").mkdir(parents=True)
    (tmp_path / X86_64.tree_image).write_bytes(image())
    assert kernel_build(tmp_path).architecture == ARM64
    (tmp_path / ".config").write_text("CONFIG_X86=y\nCONFIG_X86_64=y\n")
    assert kernel_build(tmp_path).architecture == X86_64
    (tmp_path / ".config").unlink()
    with pytest.raises(BuildError, match="holds 2 kernels; name one of"):
        kernel_build(tmp_path)
    assert kernel_build(place).config is None


def test_builds_of_two_architectures_are_not_compared(tmp_path):
    (tmp_path / "Image").write_bytes(flat_image())
    (tmp_path / "bzImage").write_bytes(image())
    arm, x86 = (kernel_build(tmp_path / one) for one in ("Image", "bzImage"))
    check_one_architecture((arm, arm))
    check_one_architecture(())
    with pytest.raises(BuildError, match="bzImage is a kernel for x86_64, and Image one for arm64; name two of one"):
        check_one_architecture((x86, arm))


def test_code_of_flat_images_is_not_compared_and_the_line_says_so(tmp_path):
    (tmp_path / "Image").write_bytes(flat_image())
    build = kernel_build(tmp_path / "Image")
    with pytest.raises(BuildError, match=r"^Image: code is compared of images that have sections, and those for arm64"):
        code_differences(build, replace(build, name="another"))


def test_modules_beside_an_image_are_found(tmp_path):
    (tmp_path / "Image").write_bytes(flat_image())
    folder = modules_folder(tmp_path / "m")
    assert kernel_build(tmp_path / "Image", modules=tmp_path / "m").modules == folder


@pytest.mark.parametrize("one", ARCHITECTURES, ids=lambda one: one.name)
def test_a_record_agrees_with_itself(one):
    assert of_package(f"{one.kernel_package}=6.12.1-1") == one
    assert one.triplet.startswith(one.machine)
    assert re.fullmatch(r"qemu-system-\w+", one.qemu)
    assert one.has_flat_image is (one.image_area is None)


def test_records_differ_in_all_that_a_file_is_known_by():
    for field in (
        "name",
        "machine",
        "debian",
        "triplet",
        "tree_image",
        "qemu",
        "decoder",
        "traits",
        "page_tables",
    ):
        assert len({getattr(one, field) for one in ARCHITECTURES}) == len(ARCHITECTURES), field


def test_a_package_without_an_architecture_is_this_machines():
    assert of_package("linux-image-generic") == this_machines()


@pytest.mark.parametrize(
    "name",
    [
        "linux-image-arm64-16k", "linux-image-6.12.1-cloud-arm64-unsigned", "linux-image-6.12.*-arm64*",
        "linux-image-arm64=6.12.1-1",
    ],
)  # fmt: skip
def test_a_package_has_its_architecture_anywhere_in_its_name(name):
    assert of_package(name) is ARM64


def test_a_banner_that_never_ends_takes_no_time(tmp_path):
    """A pattern for the whole of it took 6 s for 8 KB, and longer by the cube of what it was given."""
    hostile = b"Linux version 1 (" * 20_000 + b") #1" * 20_000
    (tmp_path / "Image").write_bytes(flat_image(version="x", more=hostile))
    with pytest.raises(BuildError, match="has no kernel release in its banner"):
        image_facts(tmp_path / "Image")


@pytest.mark.parametrize(("begin", "length"), [(2, 0), (64, 0), (64, 7), (0, 4096)])
def test_a_packed_image_of_impossible_sizes_is_refused_in_one_line(tmp_path, begin, length):
    head = bytearray(zboot_image(flat_image(), gzip.compress, b"gzip"))
    struct.pack_into("<II", head, 8, begin, length)
    (tmp_path / "Image.efi").write_bytes(head)
    with pytest.raises(BuildError) as raised:
        image_facts(tmp_path / "Image.efi")
    assert "\n" not in str(raised.value)


def test_programs_are_compared_under_the_small_kernel_of_each_architecture_that_is_asked_for():
    asked = {"bpf": "new.o", "against": "old.o"}
    assert _by_architecture(asked | {"arch": "arm64"}) == [asked | {"kernel": "linux-image-cloud-arm64"}]
    assert _by_architecture(asked | {"arch": this_machines().debian}) == [asked]
    both = _by_architecture(asked | {"arch": "amd64,arm64", "kernel": "trixie/linux-image-cloud-{arch}"})
    assert [one["kernel"] for one in both] == [f"trixie/linux-image-cloud-{name}" for name in ("amd64", "arm64")]
    with pytest.raises(UsageError, match=r"^--arch is of kernels; name one with --kernel"):
        _by_architecture({"arch": "arm64"})
