"""Kernels as Debian packs them since Linux 6.19, and folders of packages: what is taken, and what is refused."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

import pytest
from made_kernels import RELEASE, archived, deb, image, image_around, modules_folder, needs_dpkg, split_kernel, vmlinux

from pdrgate.builds.found_builds import builds_at
from pdrgate.builds.kernel_build import BuildError, kernel_build
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.builds.named_build import GUEST_MODULES, look_at, named_build

pytestmark = needs_dpkg
PARTS = ("image", "base", "binary", "modules")


@pytest.fixture(params=[True, False], ids=["7.2", "6.19"])
def packages(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Path]:
    """The packages by what they are called between linux- and the release, each in a folder of its own."""
    made = {}
    for package in split_kernel(tmp_path / "made", beside=request.param)[1:]:
        part = package.name.split("-")[1]
        (tmp_path / part).mkdir()
        made[part] = archived(package.rename(tmp_path / part / package.name))
    return made


def together(folder: Path, *packages: Path) -> list[Path]:
    folder.mkdir()
    return [package.rename(folder / package.name) for package in packages]


def test_a_binary_alone_is_refused_at_once_with_the_packages_of_the_rest(packages: dict[str, Path]) -> None:
    with pytest.raises(BuildError) as error:
        look_at(str(packages["binary"]))
    assert str(error.value) == (
        f"{packages['binary']}: holds the kernel {RELEASE} without its modules, which are in linux-modules-{RELEASE}, "
        f"and its configuration and lists of modules, which are in linux-base-{RELEASE}; name all, as "
        f"{packages['binary']},linux-modules-{RELEASE}_….deb,linux-base-{RELEASE}_….deb"
    )


@pytest.mark.parametrize("named", PARTS)
def test_any_package_of_a_kernel_is_taken_with_those_beside_it(
    tmp_path: Path, packages: dict[str, Path], named: str
) -> None:
    place = together(tmp_path / "all", *packages.values())[0].parent
    build = kernel_build(place / packages[named].name, cache=tmp_path / "cache")
    assert (build.name, build.release) == (f"linux-binary-{RELEASE} 1.2-3", RELEASE)
    assert build.config_text() == "CONFIG_VIRTIO_NET=m\n"
    assert {"virtio_pci", "virtio_net"} <= {one.name for one in select_modules(build, ["virtio_pci", "virtio_net"])}


def test_packages_are_taken_from_wherever_they_are_named(tmp_path: Path, packages: dict[str, Path]) -> None:
    text = ",".join(str(packages[part]) for part in ("binary", "modules", "base"))
    build = named_build(text, tmp_path / "cache")
    assert select_modules(build, ["virtio_net"])


@pytest.mark.parametrize(("lacks", "words"), [
    ("modules", f"without its modules, which are in linux-modules-{RELEASE}; name both, as "),
    ("base", f"without its configuration and lists of modules, which are in linux-base-{RELEASE}; name both, as "),
])  # fmt: skip
def test_one_that_is_lacking_is_named(tmp_path: Path, packages: dict[str, Path], lacks: str, words: str) -> None:
    there = [path for part, path in packages.items() if part not in (lacks, "image")]
    moved = together(tmp_path / "some", *there)
    with pytest.raises(BuildError) as error:
        kernel_build(next(path for path in moved if "binary" in path.name), cache=tmp_path / "cache")
    assert f"holds the kernel {RELEASE} {words}" in str(error.value)
    assert str(error.value).endswith(f",linux-{lacks}-{RELEASE}_….deb")
    with pytest.raises(BuildError, match=f"{words.partition(';')[0]}; put the package there too$"):
        kernel_build(tmp_path / "some", cache=tmp_path / "cache")


@pytest.mark.parametrize(("named", "needs"), [
    ("modules", f"linux-base-{RELEASE}, linux-binary-{RELEASE}: name those"),
    ("base", f"linux-binary-{RELEASE}, linux-modules-{RELEASE}: name those"),
    ("image", f"linux-base-{RELEASE}, linux-binary-{RELEASE}, linux-modules-{RELEASE}: name those"),
])  # fmt: skip
def test_packages_without_an_image_name_the_one_with_it(
    tmp_path: Path, packages: dict[str, Path], named: str, needs: str
) -> None:
    with pytest.raises(BuildError) as error:
        kernel_build(packages[named], cache=tmp_path / "cache")
    assert str(error.value).endswith(f"which holds no kernel (no boot/vmlinuz-…); it needs {needs}")


def test_an_unsigned_image_stands_for_the_signed_one(tmp_path: Path, packages: dict[str, Path]) -> None:
    del packages["image"], packages["binary"]
    unsigned = deb(tmp_path, f"linux-binary-unsigned-{RELEASE}", {f"boot/vmlinuz-{RELEASE}": image()},
                   f"Depends: linux-base-{RELEASE}\n")  # fmt: skip
    together(tmp_path / "all", *packages.values(), archived(unsigned))
    assert kernel_build(tmp_path / "all", cache=tmp_path / "cache").name == f"linux-binary-unsigned-{RELEASE} 1.2-3"
    named = tmp_path / f"all/linux-modules-{RELEASE}_1.2-3_amd64.deb"
    with pytest.raises(BuildError, match=f"it needs linux-binary-{RELEASE}: name that"):
        kernel_build(named, cache=tmp_path / "cache")
    text = f"{named},{tmp_path}/all/linux-binary-unsigned-{RELEASE}_1.2-3_amd64.deb"
    assert named_build(text, tmp_path / "cache").release == RELEASE


def test_a_kernel_with_modules_of_its_own_folder_needs_no_package_of_them(
    tmp_path: Path, packages: dict[str, Path]
) -> None:
    own = modules_folder(tmp_path / "own")
    assert named_build(f"{packages['binary']},modules={own}", tmp_path / "cache").modules == own


def test_an_unpacked_image_without_modules_is_refused_by_what_is_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A binary package, unpacked: neither a configuration nor a list says what the kernel has built in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / f"root/usr/lib/modules/{RELEASE}"
    folder.mkdir(parents=True)
    content = vmlinux() + b"\0virtio_pci\0virtio_console\0"
    (folder / "vmlinuz").write_bytes(image_around(lzma.compress(content, check=lzma.CHECK_CRC32), len(content)))
    assert select_modules(kernel_build(tmp_path / "root"), ["virtio_pci", "virtio_console"]) == ()
    with pytest.raises(BuildError) as error:
        select_modules(kernel_build(tmp_path / "root"), GUEST_MODULES)
    assert str(error.value) == (
        f"root has no virtio_net built in, and no modules were handed over; name them too, as "
        f"{tmp_path}/root,modules=lib/modules/{RELEASE}, or the package that has them, such as kernel-modules-core "
        "(Fedora) or linux-modules-RELEASE (Debian, Ubuntu)"
    )
    # With modules but no list of what is built in, the image says that as well.
    shutil.copytree(modules_folder(tmp_path / "m") / "kernel/drivers/net", folder / "kernel/drivers/net")
    with pytest.raises(BuildError, match="has no virtio_blk, neither as a module nor built in"):
        select_modules(kernel_build(tmp_path / "root"), ["virtio_console", "virtio_net", "virtio_blk"])
    assert {one.name for one in select_modules(kernel_build(tmp_path / "root"), GUEST_MODULES)} == {"virtio_net"}


# --- A folder of packages ---


def test_a_folder_of_packages_is_the_kernel_that_they_hold(tmp_path: Path, packages: dict[str, Path]) -> None:
    others = (
        deb(tmp_path, f"linux-headers-{RELEASE}", {"usr/src/x": b"x"}),
        deb(tmp_path, f"linux-image-{RELEASE}-dbg", {f"usr/lib/debug/boot/vmlinux-{RELEASE}": b"x"}),
        deb(tmp_path, "linux-libc-dev", {"usr/include/x.h": b"x"}),
        deb(tmp_path, "linux-image-amd64", {}, f"Depends: linux-image-{RELEASE}\n"),
    )
    together(tmp_path / "all", *packages.values(), *others)
    (tmp_path / "all/torn.deb").write_bytes(b"!<arch>\ntorn")
    (tmp_path / "all/linux.changes").write_text("what else a build leaves")
    build = kernel_build(tmp_path / "all", cache=tmp_path / "cache")
    assert (build.name, build.source) == (f"linux-binary-{RELEASE} 1.2-3", str(tmp_path / "all"))
    assert select_modules(build, ["virtio_net"])
    assert [one.name for one in builds_at(str(tmp_path / "all"), tmp_path / "cache")] == [build.name]


def test_a_folder_with_a_package_of_any_other_name(tmp_path: Path) -> None:
    mine = deb(tmp_path, "my-kernel", {f"boot/vmlinuz-{RELEASE}": image()})
    together(tmp_path / "all", mine, deb(tmp_path, "my-tools", {"usr/bin/x": b"x"}))
    assert kernel_build(tmp_path / "all", cache=tmp_path / "cache").name == "my-kernel 1.2-3"


def test_a_folder_with_packages_of_several_kernels_asks_for_one_and_a_history_takes_each(tmp_path: Path) -> None:
    first, second = (
        [archived(path) for path in split_kernel(tmp_path / release, release)[1:]] for release in ("7.10.1", "7.9.2")
    )
    together(tmp_path / "all", *first, *second)
    with pytest.raises(BuildError, match="all: holds the packages of 2 kernels; name one with an image: those that"):
        kernel_build(tmp_path / "all", cache=tmp_path / "cache")
    found = builds_at(str(tmp_path / "all"), tmp_path / "cache")
    assert [(one.release, Path(one.source).name) for one in found] == [
        (release, f"linux-image-{release}_1.2-3_amd64.deb") for release in ("7.9.2", "7.10.1")
    ]


def test_a_package_beside_the_named_one_that_is_a_link_elsewhere_is_refused(
    tmp_path: Path, packages: dict[str, Path]
) -> None:
    place = together(tmp_path / "all", packages["binary"], packages["base"])[0].parent
    (place / packages["modules"].name).symlink_to(packages["modules"])
    with pytest.raises(BuildError, match="is, or lies behind, a link to "):
        kernel_build(place / packages["binary"].name, cache=tmp_path / "cache")


def test_a_package_that_is_a_link_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    elsewhere = deb(tmp_path, "linux-image-x", {f"boot/vmlinuz-{RELEASE}": image()})
    (tmp_path / "all").mkdir()
    (tmp_path / "all/a.deb").symlink_to(elsewhere)
    with pytest.raises(BuildError, match=r"a\.deb: is, or lies behind, a link to .*, out of "):
        kernel_build(tmp_path / "all", cache=tmp_path / "cache")


def test_a_name_that_apt_does_not_know_says_what_else_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apt-get").write_text('#!/bin/sh\necho "E: Unable to locate package linux-image-9" >&2; exit 100\n')
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BuildError) as error:
        kernel_build("linux-image-9", cache=tmp_path / "cache")
    assert str(error.value) == (
        "linux-image-9: there is no such file, and apt-get says: Unable to locate package linux-image-9; run apt-get "
        "update, name another one, its .deb files, or a suite that has it, as in SUITE/linux-image-9"
    )
