"""Kernels as distributions lay them out: over several packages, beside their modules, in archives of their own."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from made_kernels import (
    RELEASE,
    archive_deb,
    by,
    deb,
    image,
    module,
    modules_folder,
    needs_dpkg,
    tar_file,
    tarred,
)

from pdrgate.bare_metal.host_files import packed_modules
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.found_builds import builds_at
from pdrgate.builds.kernel_build import BuildError, absolute, kernel_build
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.builds.named_build import named_build
from pdrgate.builds.packages.package_fields import needed_packages

MODULES = f"lib/modules/{RELEASE}"
SHARED = Path(__file__).parents[3] / "shared/cases"


def files_of(folder: Path) -> dict[str, bytes]:
    return {f"{MODULES}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    """A kernel as Ubuntu has it: the package with the image, and the one with its modules."""
    needs = f"Depends: kmod, linux-base (>= 4.5ubuntu1~16.04.1), linux-modules-{RELEASE}\n"
    with_image = deb(tmp_path, f"linux-image-unsigned-{RELEASE}", {f"boot/vmlinuz-{RELEASE}": image()}, needs)
    with_modules = {**files_of(modules_folder(tmp_path / "m")), f"boot/config-{RELEASE}": b"CONFIG_SMP=y\n"}
    return with_image, deb(tmp_path, f"linux-modules-{RELEASE}", with_modules)


@needs_dpkg
def test_an_image_without_its_modules_is_refused_with_what_it_lacks(tmp_path: Path, parts: tuple[Path, Path]) -> None:
    with_image, with_modules = parts
    with pytest.raises(BuildError) as error:
        kernel_build(with_image, cache=tmp_path / "cache")
    assert str(error.value) == (
        f"{with_image}: holds the kernel {RELEASE} without its modules, which are in linux-modules-{RELEASE}; name "
        f"both, as {with_image},linux-modules-{RELEASE}_….deb"
    )
    elsewhere = modules_folder(tmp_path / "elsewhere")
    assert kernel_build(with_image, modules=elsewhere, cache=tmp_path / "cache").modules == elsewhere
    # Modules alone are no kernel.
    with pytest.raises(BuildError, match="which holds no kernel"):
        kernel_build(with_modules, cache=tmp_path / "cache")


@needs_dpkg
@pytest.mark.parametrize("order", [1, -1])
def test_several_packages_are_one_build(
    tmp_path: Path, parts: tuple[Path, Path], order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = absolute(",".join(path.name for path in parts[::order]))
    monkeypatch.chdir("/")
    build = named_build(text, tmp_path / "cache")
    assert (build.name, build.release) == (f"linux-image-unsigned-{RELEASE} 1.2-3", RELEASE)
    assert build.config_sha256 == hashlib.sha256(b"CONFIG_SMP=y\n").hexdigest()
    assert "virtio_net" in [one.name for one in select_modules(build, ["virtio_net"])]
    assert build.source == text
    assert named_build(build.source, tmp_path / "cache").image == build.image


@needs_dpkg
def test_what_an_image_needs_is_looked_for_beside_it(tmp_path: Path, parts: tuple[Path, Path]) -> None:
    with_image, with_modules = parts
    named = with_modules.with_name(f"linux-modules-{RELEASE}_1.2-3_amd64.deb")
    with_modules.rename(named)
    assert kernel_build(with_image, cache=tmp_path / "cache").modules is not None
    shop = tmp_path / "shop"
    shop.mkdir()
    for path in (with_image, named):
        shutil.move(path, shop / path.name)
    assert [build.release for build in builds_at(str(shop), tmp_path / "cache")] == [RELEASE]
    (shop / named.name).rename(shop / f"linux-modules-{RELEASE}_1.2-4_amd64.deb")  # of another version
    with pytest.raises(BuildError, match="without its modules"):
        kernel_build(shop / with_image.name, cache=tmp_path / "cache")


@needs_dpkg
def test_packages_that_hold_one_file_twice_are_no_build(tmp_path: Path) -> None:
    one = deb(tmp_path, "linux-image-a", {f"boot/vmlinuz-{RELEASE}": image()})
    two = deb(tmp_path, "linux-image-b", {f"boot/vmlinuz-{RELEASE}": image(version="#2 x")})
    with pytest.raises(
        BuildError, match=r"linux-image-b 1\.2-3: cannot be put together with .*: boot/vmlinuz-.* is there twice"
    ):
        named_build(f"{one},{two}", tmp_path / "cache")
    (tmp_path / "text").write_text("x")
    for second in (tmp_path / "text", tmp_path):
        with pytest.raises(BuildError, match="is no package; of one kernel several packages can be named"):
            kernel_build(one, further=(second,), cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("depends", "needs"),
    [
        ("linux-image-6.8.0-31-generic, linux-modules-extra-6.8.0-31-generic, linux-firmware",
         ("linux-image-6.8.0-31-generic",)),
        ("kmod, linux-base (>= 4.5ubuntu1~16.04.1), linux-modules-6.8.0-31-generic",
         ("linux-modules-6.8.0-31-generic",)),
        ("linux-image-6.1.0-9-amd64 (= 6.1.27-1)", ("linux-image-6.1.0-9-amd64",)),
        ("linux-image-6.1.0-9-amd64(=6.1.27-1),linux-image-6.1.0-9-amd64", ("linux-image-6.1.0-9-amd64",)),
        ("x | linux-image-unsigned-6.8.0-31 | linux-image-6.8.0-31", ("linux-image-unsigned-6.8.0-31",)),
        ("linux-modules-6.8.0-31-generic:amd64 [amd64] <!nocheck>", ("linux-modules-6.8.0-31-generic",)),
        ("linux-binary-6.16.3+deb14-amd64 (= 6.16.3-1), linux-base-6.16.3+deb14-amd64",
         ("linux-binary-6.16.3+deb14-amd64", "linux-base-6.16.3+deb14-amd64")),
        ("kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool", ()),
        ("", ()), (", ,|,", ()),
    ],
)  # fmt: skip
def test_what_a_package_needs_of_its_kernel(depends: str, needs: tuple[str, ...]) -> None:
    assert needed_packages(depends) == needs


@needs_dpkg
def test_a_meta_package_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ubuntu's: what it depends on is a list. A stand-in for apt-get has the packages, and knows no other names."""
    needs = "Depends: linux-image-6.8.0-31-generic, linux-modules-extra-6.8.0-31-generic, linux-firmware\n"
    debs = tmp_path / "archive"
    debs.mkdir()
    folder = modules_folder(tmp_path / "m")
    deb(debs, "linux-image-generic", {}, needs)
    deb(debs, "linux-image-6.8.0-31-generic", {f"boot/vmlinuz-{RELEASE}": image()},
        "Depends: kmod, linux-modules-6.8.0-31-generic | x, linux-base (>= 4.5)\n")  # fmt: skip
    deb(debs, "linux-modules-6.8.0-31-generic", files_of(folder))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/apt-get").write_text(f"""#!/bin/sh
for name; do :; done
file="{debs}/$name.deb"
[ -f "$file" ] || {{ echo "E: Unable to locate package $name" >&2; exit 100; }}
case "$*" in
    *print-uris*) echo "'file://$file' $name.deb 1 SHA256:$(sha256sum "$file" | cut -c1-64)" ;;
    *) cp "$file" . ;;
esac
""")
    (tmp_path / "bin/apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    build = kernel_build("linux-image-generic", cache=tmp_path / "cache")
    assert (build.name, build.release) == ("linux-image-6.8.0-31-generic 1.2-3", RELEASE)
    assert select_modules(build, ["virtio_net"])
    again = named_build("linux-image-6.8.0-31-generic,linux-modules-6.8.0-31-generic", tmp_path / "cache")
    assert select_modules(again, ["virtio_net"])
    with pytest.raises(BuildError, match=r"Unable to locate package linux-image-6\.8\.0-99"):
        named_build("linux-image-generic,linux-image-6.8.0-99", tmp_path / "cache")


# --- Beside its modules ---


@pytest.mark.parametrize("top", ["lib", "usr/lib"])
@pytest.mark.parametrize("name", ["package", "release", "image"])
def test_an_image_beside_its_modules(tmp_path: Path, top: str, name: str) -> None:
    """Fedora's, openSUSE's and Arch's packages, unpacked; and that release folder itself."""
    folder = modules_folder(tmp_path / "kernel" / top / "modules" / RELEASE)
    (folder / "vmlinuz").write_bytes(image())
    (folder / "config").write_text("CONFIG_SMP=y\n")
    (folder / "System.map").write_text("0 A start\n")
    if top == "usr/lib":
        (tmp_path / "kernel/lib").symlink_to("usr/lib")
    named = {"package": tmp_path / "kernel", "release": folder, "image": folder / "vmlinuz"}[name]
    build = kernel_build(named)
    assert (build.image, build.modules, build.config, build.symbols) == (
        folder / "vmlinuz", folder, folder / "config", folder / "System.map",
    )  # fmt: skip
    assert select_modules(build, ["virtio_net"])
    (tmp_path / "bzImage").write_bytes(image())
    assert kernel_build(tmp_path / "bzImage", modules=tmp_path / "kernel").config == folder / "config"


def test_a_package_that_is_installed_has_its_image_twice(tmp_path: Path) -> None:
    folder = modules_folder(tmp_path / MODULES)
    (tmp_path / "boot").mkdir()
    for path in (folder / "vmlinuz", tmp_path / f"boot/vmlinuz-{RELEASE}"):
        path.write_bytes(image())
    assert kernel_build(tmp_path).image == tmp_path / f"boot/vmlinuz-{RELEASE}"
    other = tmp_path / "lib/modules/6.2.0"
    modules_folder(other, "6.2.0")
    (other / "vmlinuz").write_bytes(image("6.2.0"))
    with pytest.raises(BuildError, match="holds 2 kernels; name one of "):
        kernel_build(tmp_path)


@pytest.mark.parametrize("absolute_links", [True, False])
def test_links_in_boot_to_what_lies_beside_the_modules(tmp_path: Path, absolute_links: bool) -> None:
    """openSUSE's package, unpacked: an absolute link leads to the host, and what it means lies in the build."""
    folder = modules_folder(tmp_path / "usr" / MODULES)
    (tmp_path / "boot").mkdir()
    for name, content in (("vmlinuz", image()), ("config", b"CONFIG_SMP=y\n"), ("System.map", b"0 A start\n")):
        (folder / name).write_bytes(content)
        start = "/" if absolute_links else "../"
        (tmp_path / f"boot/{name}-{RELEASE}").symlink_to(f"{start}usr/{MODULES}/{name}")
    (tmp_path / "boot/vmlinuz").symlink_to(f"vmlinuz-{RELEASE}")
    build = kernel_build(tmp_path)
    assert (build.image, build.config, build.symbols) == (
        folder / "vmlinuz", folder / "config", folder / "System.map",
    )  # fmt: skip
    assert select_modules(build, ["virtio_net"])
    assert [one.release for one in builds_at(str(tmp_path))] == [RELEASE]


def test_a_link_out_of_the_build_is_refused_where_nothing_stands_for_it(tmp_path: Path) -> None:
    (tmp_path / "host").write_bytes(image())
    (tmp_path / "build/boot").mkdir(parents=True)
    (tmp_path / f"build/boot/vmlinuz-{RELEASE}").symlink_to(tmp_path / "host")
    with pytest.raises(BuildError, match=r"is, or lies behind, a link to .*/host, out of "):
        kernel_build(tmp_path / "build")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".tar", bytes), (".tar.gz", gzip.compress), (".pkg.tar.xz", lzma.compress), (".tar.bz2", bz2.compress),
     (".pkg.tar.zst", by("zstd", "-q"))],
)  # fmt: skip
def test_an_archive_of_a_kernel(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    """What `make targz-pkg` makes, and packages of Arch; by pax headers and by GNU's long names."""
    if suffix.endswith("zst") and shutil.which("zstd") is None:
        pytest.skip("needs zstd")
    long = f"usr/{MODULES}/kernel/{'long/' * 30}dummy.ko"
    folder = modules_folder(tmp_path / "m")
    members = [
        tar_file(f"usr/{MODULES}/vmlinuz", image()), tar_file(long, module("dummy")),
        *(tar_file(f"./usr/{name}", content) for name, content in files_of(folder).items()),
    ]  # fmt: skip
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = tmp_path / f"linux-6.1-{form}{suffix}"
        path.write_bytes(pack(tarred(members, form)))
        build = kernel_build(path, cache=tmp_path / "cache")
        assert (build.name, build.release) == (f"linux-6.1-{form}", RELEASE)
        assert {one.name for one in select_modules(build, ["virtio_net", "dummy"])} >= {"virtio_net", "dummy"}


@needs_dpkg
@pytest.mark.parametrize("compression", ["none", "gzip", "xz", "zstd"])
def test_a_package_by_whatever_dpkg_deb_packs_it(tmp_path: Path, compression: str) -> None:
    """It is read without dpkg-deb, and holds what dpkg-deb has put into it."""
    folder = modules_folder(tmp_path / "root" / MODULES)
    (tmp_path / "root/DEBIAN").mkdir()
    (tmp_path / "root/DEBIAN/control").write_text(
        "Package: linux-image-x\nVersion: 1:2-3\nArchitecture: amd64\nMaintainer: a <a@b.c>\nDescription: x\n"
    )
    (tmp_path / "root/boot").mkdir()
    (tmp_path / f"root/boot/vmlinuz-{RELEASE}").write_bytes(image())
    (tmp_path / "root/usr/share").mkdir(parents=True)
    (tmp_path / "root/usr/share/doc").write_text("no part of a kernel")
    (tmp_path / "root/DEBIAN").chmod(0o755)  # whatever the umask
    package = tmp_path / "a.deb"
    done = subprocess.run(
        ("dpkg-deb", f"-Z{compression}", "--build", tmp_path / "root", package), capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this dpkg-deb does not pack by {compression}")
    if compression == "zstd" and shutil.which("zstd") is None:
        pytest.skip("needs zstd")
    build = kernel_build(package, cache=tmp_path / "cache")
    assert (build.name, build.modules and build.modules.name) == ("linux-image-x 1:2-3", RELEASE)
    place = tmp_path / "cache" / build.image.relative_to(tmp_path / "cache").parts[0]
    assert build.modules is not None
    assert files_of(build.modules) == files_of(folder)
    found = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert found == {*files_of(folder), f"boot/vmlinuz-{RELEASE}", "pdrgate.json"}
    # As they were written: what tells one build from another goes by it.
    order = build.modules / "modules.order"
    assert int(order.stat().st_mtime) == int((folder / "modules.order").stat().st_mtime)


# --- Modules that are elsewhere ---


@pytest.mark.parametrize("where", ["", "extra", "updates"])
def test_a_list_of_modules_is_a_hint_where_they_are_installed(tmp_path: Path, where: str) -> None:
    """Ubuntu, Fedora and openSUSE spread what it lists over packages, and have modules that it does not list."""
    folder = modules_folder(tmp_path / MODULES)
    with (folder / "modules.order").open("a") as file:
        file.write("kernel/drivers/net/wireless/ath/ath.ko\n")
    if where:
        (folder / where).mkdir()
        (folder / where / "virtio-net.ko").write_bytes(module("virtio_net", "virtio") + b"newer")
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/vmlinuz-{RELEASE}").write_bytes(image())
    build = kernel_build(tmp_path)
    with packed_modules(build) as archive:
        assert archive is not None
        with tarfile.open(archive) as tar:
            names = set(tar.getnames())
    assert {"modules.order", f"{where or 'kernel/drivers/net'}/virtio-net.ko"} <= names
    assert not any("ath" in name for name in names)
    found = {one.name: one for one in select_modules(build, ["virtio_net"])}
    assert found["virtio_net"].content.endswith(b"newer") == bool(where)
    with pytest.raises(BuildError, match=r"has no ath, neither .*, or name the package that has it"):
        select_modules(build, ["ath"])
    (folder / "modules.order").unlink()
    assert kernel_build(tmp_path).modules == folder


def test_modules_that_an_image_needs_and_has_not(tmp_path: Path) -> None:
    (tmp_path / "bzImage").write_bytes(image())
    (tmp_path / f"config-{RELEASE}").write_text("CONFIG_VIRTIO_NET=m\nCONFIG_VIRTIO_PCI=y\n")
    build = kernel_build(tmp_path / "bzImage")
    assert select_modules(build, ["virtio_pci"]) == ()
    with pytest.raises(BuildError, match="has virtio_net as a module, and no modules were handed over; name them too"):
        select_modules(build, ["virtio_net"])


@pytest.mark.parametrize(("suffix", "program"), [(".zst", "zstd"), (".lz4", "lz4")])
def test_a_module_that_nothing_unpacks_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, program: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"packs by {program}")
    modules_folder(tmp_path / MODULES, pack=by(program, "-q"), suffix=suffix)
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/vmlinuz-{RELEASE}").write_bytes(image())
    package = archive_deb(tmp_path / "a.deb", [tar_file(f"boot/vmlinuz-{RELEASE}", image())], suffix, by(program, "-q"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for take in (
        lambda: select_modules(kernel_build(tmp_path), ["virtio_net"]),
        lambda: kernel_build(package, cache=tmp_path / "cache"),
    ):
        with pytest.raises(
            MissingToolError, match=f"unpacking it takes {program}, which is not installed: apt-get install {program}$"
        ):
            take()


# --- What was reported ---


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reported cases are not here")
def test_reported_modules_over_several_packages(tmp_path: Path) -> None:
    release = "6.8.0-31-generic"
    shutil.copytree(SHARED / "split-modules/lib", tmp_path / "lib")
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/vmlinuz-{release}").write_bytes(image(release))
    with packed_modules(kernel_build(tmp_path)) as archive:
        assert archive is not None
        with tarfile.open(archive) as tar:
            assert "kernel/drivers/net/virtio_net.ko.zst" in tar.getnames()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reported cases are not here")
def test_reported_layout_of_fedora(tmp_path: Path) -> None:
    release = "6.14.0-63.fc42.x86_64"
    for line in (SHARED / "kernel-beside-modules/layout.txt").read_text().split():
        path = tmp_path / line
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image(release) if path.name == "vmlinuz" else lzma.compress(module("virtio_net", "", release)))
    (tmp_path / f"lib/modules/{release}/modules.order").write_text("kernel/drivers/net/virtio_net.ko\n")
    build = kernel_build(tmp_path)
    assert (build.release, build.config and build.config.name) == (release, "config")
    assert [one.name for one in select_modules(build, ["virtio_net"])] == ["virtio_net"]


@needs_dpkg
@pytest.mark.skipif(not SHARED.is_dir(), reason="the reported cases are not here")
@pytest.mark.parametrize("case", ["ubuntu-meta-comma", "image-deb-without-modules"])
def test_reported_control_files(tmp_path: Path, case: str) -> None:
    root = tmp_path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    shutil.copy(SHARED / case / "control", root / "DEBIAN/control")
    (root / "boot").mkdir()
    if case.startswith("image"):
        (root / f"boot/vmlinuz-{RELEASE}").write_bytes(image())
    package = tmp_path / "a.deb"
    (root / "DEBIAN").chmod(0o755)  # whatever the umask
    subprocess.run(("dpkg-deb", "--build", root, package), check=True, capture_output=True)
    with pytest.raises(BuildError) as error:
        kernel_build(package, cache=tmp_path / "cache")
    needed = "linux-modules-6.8.0-31-generic" if case.startswith("image") else "linux-image-6.8.0-31-generic: name that"
    assert needed in str(error.value)
