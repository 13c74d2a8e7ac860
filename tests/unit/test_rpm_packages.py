"""Kernels in RPM packages: Fedora's, over core and modules; openSUSE's, as a whole; and what is no such package."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_kernels import by, image, module, modules_folder
from made_rpms import cpio_archive, rpm

from pdrgate.builds.kernel_build import BuildError, kernel_build
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.builds.named_build import named_build

R = "6.14.0-63.fc42.x86_64"
PLACE = f"./lib/modules/{R}"
ENDING = "6.14.0-63.fc42.x86_64.rpm"


@pytest.fixture
def fedora(tmp_path: Path) -> dict[str, Path]:
    """Fedora's packages: core with image and lists, modules-core with what a guest needs, and more modules."""
    (tmp_path / "shop").mkdir()
    lists = modules_folder(tmp_path / "m", R)

    def made(name: str, files: dict[str, bytes], *requires: str) -> Path:
        return rpm(tmp_path / "shop" / f"{name}-{ENDING}", name, files, requires)

    return {
        "kernel": made("kernel", {}, "kernel-core-uname-r", "kernel-modules-core-uname-r", "kernel-modules-uname-r"),
        "core": made("kernel-core", {
            f"{PLACE}/vmlinuz": image(R), f"{PLACE}/config": b"CONFIG_VIRTIO_NET=m\n",
            **{f"{PLACE}/{name}": (lists / name).read_bytes() for name in ("modules.order", "modules.builtin")},
            "./usr/share/licenses/x": b"no part of a kernel",
        }, "systemd >= 203", "/usr/bin/kernel-install"),
        "modules-core": made("kernel-modules-core", {
            f"{PLACE}/{path.relative_to(lists)}": path.read_bytes() for path in lists.rglob("*.ko")
        }, "kernel-uname-r"),
        "modules": made("kernel-modules", {f"{PLACE}/kernel/net/dummy.ko": module("dummy", release=R)},
                        "kernel-uname-r", "kernel-modules-core-uname-r"),
    }  # fmt: skip


@pytest.mark.parametrize("named", ["core", "modules-core", "modules", "kernel"])
def test_packages_beside_the_named_one_are_found(tmp_path: Path, fedora: dict[str, Path], named: str) -> None:
    build = kernel_build(fedora[named], cache=tmp_path / "cache")
    assert (build.name, build.release) == ("kernel-core 6.14.0-63.fc42", R)
    assert build.config_text() == "CONFIG_VIRTIO_NET=m\n"
    assert {"virtio_net", "virtio_pci"} <= {one.name for one in select_modules(build, ["virtio_pci", "virtio_net"])}


def test_packages_are_named_or_lie_in_one_folder(tmp_path: Path, fedora: dict[str, Path]) -> None:
    text = ",".join(str(fedora[part]) for part in ("core", "modules-core", "modules"))
    for build in (named_build(text, tmp_path / "cache"), kernel_build(tmp_path / "shop", cache=tmp_path / "cache")):
        assert [one.name for one in select_modules(build, ["dummy"])] == ["dummy"]


def test_a_core_without_modules_names_the_package_with_them(tmp_path: Path, fedora: dict[str, Path]) -> None:
    alone = fedora["core"].rename(tmp_path / "core.rpm")
    with pytest.raises(BuildError) as error:
        kernel_build(alone, cache=tmp_path / "cache")
    assert str(error.value) == (
        f"{alone}: holds the kernel {R} without its modules, which are in kernel-modules-core; name both, as "
        f"{alone},kernel-modules-core-….rpm"
    )
    with pytest.raises(BuildError, match=r"holds no kernel .*; it needs kernel-core: name that"):
        kernel_build(fedora["modules"], cache=tmp_path / "cache")


def test_an_unpacked_core_without_modules_names_the_package_with_them(tmp_path: Path) -> None:
    folder = modules_folder(tmp_path / f"lib/modules/{R}", R)
    shutil.rmtree(folder / "kernel")
    (folder / "vmlinuz").write_bytes(image(R))
    (folder / "config").write_text("CONFIG_VIRTIO_NET=m\n")
    with pytest.raises(BuildError, match="has none of its modules, and virtio_pci is not built in; name the package "
                       "with them too, such as kernel-modules-core"):  # fmt: skip
        select_modules(kernel_build(tmp_path), ["virtio_console", "virtio_pci"])
    # What is built in needs no module.
    assert select_modules(kernel_build(tmp_path), ["virtio_console"]) == ()


def test_modules_of_a_release_before_modules_core_are_enough(tmp_path: Path, fedora: dict[str, Path]) -> None:
    """RHEL 8 has them all in kernel-modules, which requires nothing but the kernel."""
    fedora["modules-core"].unlink()
    fedora["modules"].unlink()
    lists = tmp_path / "m"
    files = {f"{PLACE}/{path.relative_to(lists)}": path.read_bytes() for path in lists.rglob("*.ko")}
    modules = rpm(tmp_path / "shop/kernel-modules.rpm", "kernel-modules", files, ["kernel-uname-r"])
    assert select_modules(named_build(f"{fedora['core']},{modules}", tmp_path / "cache"), ["virtio_net"])


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lzma.compress, bz2.compress, by("zstd", "-q")],
    ids=["plain", "gzip", "xz", "bzip2", "zstd"],
)  # fmt: skip
def test_a_payload_by_whatever_it_is_packed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """openSUSE's kernel is one package, whose links in boot may be absolute."""
    folder = modules_folder(tmp_path / "m", R)
    where = f"usr/lib/modules/{R}"
    files = {
        f"./{where}/vmlinuz": image(R), f"./{where}/config": b"CONFIG_SMP=y\n", f"./{where}/System.map": b"0 A x\n",
        **{f"./{where}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()},
    }  # fmt: skip
    links = [(f"./boot/{one}-{R}", stat.S_IFLNK | 0o777, f"/{where}/{one}".encode())
             for one in ("vmlinuz", "config", "System.map")]  # fmt: skip
    entries = [*links, *((name, stat.S_IFREG | 0o644, content) for name, content in files.items())]
    package = rpm(tmp_path / "kernel-default.rpm", "kernel-default", entries, pack=pack)
    if pack is not bytes and shutil.which("zstd") is None:
        pytest.skip("needs zstd")
    build = kernel_build(package, cache=tmp_path / "cache")
    assert str(build.image).endswith(f"/{where}/vmlinuz")
    assert (build.name, build.config_text()) == ("kernel-default 6.14.0-63.fc42", "CONFIG_SMP=y\n")
    assert select_modules(build, ["virtio_net"])


def test_files_with_several_names_have_one_content(tmp_path: Path) -> None:
    """The last name in the archive comes with it."""
    first, second = f"./lib/modules/{R}/kernel/a.ko", f"./lib/modules/{R}/kernel/b.ko"
    regular = stat.S_IFREG | 0o644
    entries = [
        (f"./boot/vmlinuz-{R}", regular, image(R)),
        (first, regular, b""),
        (second, regular, module("b", release=R)),
    ]
    package = rpm(tmp_path / "k.rpm", "kernel-x", payload=cpio_archive(entries, {first: 77, second: 77}))
    build = kernel_build(package, cache=tmp_path / "cache")
    assert build.modules is not None
    assert (build.modules / "kernel/a.ko").read_bytes() == (build.modules / "kernel/b.ko").read_bytes() != b""


# --- A stranger's file ---


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (("./lib/modules/../../etc/x", stat.S_IFREG, b"x"), "lies outside of it"),
        ((f"/boot/vmlinuz-{R}", stat.S_IFREG, b"x"), "lies outside of it"),
        ((f"./boot/vmlinuz-{R}", stat.S_IFBLK, b""), "is a device or a FIFO"),
        (("./lib/modules", stat.S_IFLNK, b"/etc"), "which is no folder|is there twice"),
        ((f"./lib/modules/{R}/x" + "y" * 5000, stat.S_IFREG, b""), "a name of more than 4096 bytes"),
    ],
)  # fmt: skip
def test_an_archive_that_would_write_elsewhere_is_refused(
    tmp_path: Path, entry: tuple[str, int, bytes], words: str
) -> None:
    others = [(f"{PLACE}/kernel/x.ko", stat.S_IFREG, b"x"), entry, (f"{PLACE}/vmlinuz", stat.S_IFREG, image(R))]
    package = rpm(tmp_path / "k.rpm", "kernel-x", others)
    with pytest.raises(BuildError, match=words):
        kernel_build(package, cache=tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith("part-")]


def test_what_a_package_requires_names_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for place in (tmp_path, tmp_path / "in"):
        rpm(place / "kernel-x-modules-6.14.0-63.fc42.noarch.rpm", "other", {f"{PLACE}/kernel/x.ko": b"x"})
    files = {f"{PLACE}/vmlinuz": image(R)}
    requires = ("../kernel-x-modules-uname-r", "*-uname-r", "/kernel-modules-uname-r", "kernel-uname-r")
    package = rpm(tmp_path / "in/kernel-x.rpm", "kernel-x", files, requires)
    assert kernel_build(package, cache=tmp_path / "cache").name == "kernel-x 6.14.0-63.fc42"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xed\xab\xee\xdb" + bytes(2000), "its header is damaged"),
        (b"\xed\xab\xee\xdb", "its header is damaged"),
        (b"\xed\xab\xee\xdb".ljust(96) + b"\x8e\xad\xe8\x01\0\0\0\0" + b"\xff" * 8, "a header that no kernel's has"),
        (b"\xed\xab\xee\xdb".ljust(96) + b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\x01\0\0\0\x01", "it ends too early"),
    ],
)  # fmt: skip
def test_a_damaged_package_is_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "k.rpm").write_bytes(content)
    with pytest.raises(BuildError, match=rf"k\.rpm: cannot be unpacked: .*{words}; is it whole\?"):
        kernel_build(tmp_path / "k.rpm", cache=tmp_path / "cache")


def test_a_payload_that_is_none_or_fills_the_disk_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(cpio_archive([(f"{PLACE}/vmlinuz", stat.S_IFREG, bytes(300 << 20))]))
    for payload, form, words in (
        (b"no archive" * 20, "cpio", "it is no cpio archive, or damaged"),
        (b"", "cpio", "it ends too early"), (b"", "drpm", "its payload is no cpio archive"),
        (bomb, "cpio", "unpacks to more"),
    ):  # fmt: skip
        package = rpm(tmp_path / "k.rpm", "kernel-x", payload=payload, form=form)
        with pytest.raises(BuildError, match=words):
            kernel_build(package, cache=tmp_path / "cache")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 4000), value=st.integers(0, 255), cut=st.integers(0, 5000))
def test_whatever_a_package_holds_is_a_kernel_or_one_line(tmp_path: Path, at: int, value: int, cut: int) -> None:
    entries = [(f"{PLACE}/vmlinuz", stat.S_IFREG, image(R)), (f"{PLACE}/kernel/x.ko", stat.S_IFREG, b"x")]
    content = bytearray(rpm(tmp_path / "k.rpm", "kernel-x", entries, ["a", "b"]).read_bytes())
    content[at % len(content)] = value
    (tmp_path / "k.rpm").write_bytes(content[: max(4, len(content) - cut % 400)])
    try:
        kernel_build(tmp_path / "k.rpm", cache=tmp_path / "cache")
    except BuildError as error:
        assert "\n" not in str(error)


# --- The real tool ---


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="needs rpmbuild (Debian's package rpm)")
@pytest.mark.parametrize("payload", ["w9.gzdio", "w6.xzdio", "w3.zstdio"])
def test_a_package_that_rpmbuild_made(tmp_path: Path, payload: str) -> None:
    folder = modules_folder(tmp_path / f"root/lib/modules/{R}", R)
    (folder / "vmlinuz").write_bytes(image(R))
    (folder / "linked.ko").hardlink_to(folder / "kernel/drivers/virtio/virtio.ko")
    spec = tmp_path / "k.spec"
    spec.write_text(
        f"Name: kernel-default\nVersion: 6.14.0\nRelease: 63.fc42\nSummary: x\nLicense: x\n"
        f"Requires: x-uname-r = {R}\n%description\nx\n%install\ncp -a {tmp_path}/root/. %{{buildroot}}\n"
        f"%files\n/lib/modules/{R}\n"
    )
    macros = {"_topdir": str(tmp_path / "top"), "_binary_payload": payload, "_build_id_links": "none",
              "__os_install_post": "%{nil}", "_rpmdir": str(tmp_path), "_rpmfilename": "k.rpm"}  # fmt: skip
    words = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    subprocess.run(("rpmbuild", "-bb", *words, "--target", "x86_64-linux", spec), check=True, capture_output=True)
    build = kernel_build(tmp_path / "k.rpm", cache=tmp_path / "cache")
    assert (build.name, build.release) == ("kernel-default 6.14.0-63.fc42", R)
    assert {"virtio_net"} <= {one.name for one in select_modules(build, ["virtio_net"])}
    assert build.modules is not None
    found = {
        str(path.relative_to(build.modules)): path.read_bytes() for path in build.modules.rglob("*") if path.is_file()
    }
    assert found == {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
