"""What a kernel engineer may hand over, and what is said of what is no kernel. All kernels here are made up."""

import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from made_kernels import RELEASE, VERSION, deb, image, module, modules_folder, needs_dpkg, tree

from pdrgate.builds.architecture import X86_64
from pdrgate.builds.image_facts import ImageFacts, image_facts
from pdrgate.builds.kernel_build import BuildError, absolute, kernel_build
from pdrgate.builds.kernel_modules import module_info, select_modules
from pdrgate.builds.named_build import named_build
from pdrgate.guests.initramfs import INIT, ArchiveEntry, cpio, initramfs


def test_an_image_tells_its_release(tmp_path):
    (tmp_path / "bzImage").write_bytes(image())
    (tmp_path / f"config-{RELEASE}").write_text("CONFIG_X86_64=y\n")
    assert image_facts(tmp_path / "bzImage") == ImageFacts(X86_64, RELEASE, VERSION)
    build = kernel_build(tmp_path / "bzImage")
    assert (build.name, build.release, build.version, build.modules) == ("bzImage", RELEASE, VERSION, None)
    assert build.config_sha256 == hashlib.sha256(b"CONFIG_X86_64=y\n").hexdigest()
    assert kernel_build(str(tmp_path / "bzImage")).source == str(tmp_path / "bzImage")


@pytest.mark.parametrize("below", ["lib/modules/" + RELEASE, "usr/lib/modules/" + RELEASE, RELEASE, ""])
def test_modules_are_found_where_people_have_them(tmp_path, below):
    (tmp_path / "bzImage").write_bytes(image())
    folder = modules_folder(tmp_path / "place" / below)
    assert kernel_build(tmp_path / "bzImage", modules=tmp_path / "place").modules == folder


def test_modules_of_another_kernel_are_refused(tmp_path):
    (tmp_path / "bzImage").write_bytes(image())
    for place in ("a/lib/modules/5.10.0", "modules/5.10.0"):
        folder = modules_folder(tmp_path / place, "5.10.0")
        given = tmp_path / "a" if place.startswith("a") else folder
        with pytest.raises(BuildError, match=f"holds the modules of 5.10.0, and the image is {RELEASE}"):
            kernel_build(tmp_path / "bzImage", modules=given)
    # A folder with a name that tells nothing: the modules themselves do.
    build = kernel_build(tmp_path / "bzImage", modules=modules_folder(tmp_path / "some", "5.10.0"))
    with pytest.raises(BuildError, match=f"is a module of 5.10.0, and the image is {RELEASE}"):
        select_modules(build, ["virtio_pci"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BuildError, match=r"holds no modules of .*; name lib/modules/"):
        kernel_build(tmp_path / "bzImage", modules=tmp_path / "empty")


def test_a_person_names_an_image_with_its_modules_and_symbols(tmp_path, monkeypatch):
    (tmp_path / "vmlinuz").write_bytes(image())
    (tmp_path / "vmlinux").write_bytes(b"symbols")
    modules_folder(tmp_path / "mods")
    monkeypatch.chdir(tmp_path)
    text = absolute("vmlinuz,modules=mods,vmlinux=vmlinux")
    monkeypatch.chdir("/")
    build = named_build(text)
    assert build.modules is not None and build.modules.is_relative_to(tmp_path / "mods")
    assert build.vmlinux == tmp_path / "vmlinux"
    with pytest.raises(BuildError, match="'initrd=x' says nothing of a build"):
        named_build(f"{tmp_path}/vmlinuz,initrd=x")
    assert absolute("linux-image-amd64") == "linux-image-amd64"


@pytest.mark.parametrize("modern", [True, False])
def test_a_build_tree(tmp_path, modern):
    folder = tree(tmp_path / "linux", modern)
    build = kernel_build(folder)
    assert (build.name, build.release, build.modules) == ("linux", RELEASE, folder)
    assert build.vmlinux is None
    assert [one.name for one in select_modules(build, ("virtio_pci", "virtio_console", "virtio_net"))] == ["virtio_pci"]
    (folder / "vmlinux").write_bytes(b"\x7fELF")
    assert kernel_build(folder).vmlinux == folder / "vmlinux"
    (folder / "drivers/virtio/virtio_pci.ko").unlink()
    with pytest.raises(BuildError, match=r"virtio_pci\.ko is listed in modules\.order and not there; run make modules"):
        select_modules(build, ["virtio_pci"])


def test_what_is_no_kernel_is_told_in_one_line(tmp_path):
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF" + bytes(2000))
    (tmp_path / "text").write_text("hello")
    (tmp_path / "broken").write_bytes(image(release="???"))
    for name, words in {
        "vmlinux": r"is an uncompressed vmlinux; name the bzImage",
        "text": r"is no kernel image; name the bzImage",
        "broken": r"has no kernel release in its header; is the file damaged\?",
        "none": r"there is no such file; name a \.deb, a bzImage",
        "none.deb": r"there is no such file; name a \.deb, a bzImage",
        "": "holds neither arch/x86/boot/bzImage nor arch/arm64/boot/Image nor boot/vmlinuz-… nor lib/modules/",
    }.items():
        with pytest.raises(BuildError, match=words) as error:
            kernel_build(tmp_path / name)
        assert "\n" not in str(error.value)
        assert error.value.exit_code == 2
    (tmp_path / "bzImage").write_bytes(image())
    with pytest.raises(
        BuildError, match=r"nowhere: there is no such file; name the vmlinux of bzImage or leave it out"
    ):
        kernel_build(tmp_path / "bzImage", vmlinux=tmp_path / "nowhere")


@needs_dpkg
def test_a_package(tmp_path):
    where = f"lib/modules/{RELEASE}"
    folder = modules_folder(tmp_path / "m")
    files = {f"{where}/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    package = deb(
        tmp_path, "linux-image-test",
        {f"boot/vmlinuz-{RELEASE}": image(), f"boot/config-{RELEASE}": b"CONFIG_SMP=y\n", **files},
    )  # fmt: skip
    cache = tmp_path / "cache"
    build = kernel_build(package, cache=cache)
    assert (build.name, build.release, build.source) == ("linux-image-test 1.2-3", RELEASE, str(package))
    assert build.modules.is_relative_to(cache)
    assert build.config_sha256 == hashlib.sha256(b"CONFIG_SMP=y\n").hexdigest()
    # Kept by its content: the same package is not unpacked again, and nothing half made is left beside it.
    package.rename(tmp_path / "other-name.deb")
    stamp = build.image.stat().st_ino
    assert kernel_build(tmp_path / "other-name.deb", cache=cache).image.stat().st_ino == stamp
    assert sorted(path.name for path in cache.iterdir()) == sorted(["lock", build.image.parents[1].name])


@needs_dpkg
def test_the_cache_forgets_what_nobody_used_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr("pdrgate.builds.packages.unpacked_package._KEPT", 2)
    cache, made = tmp_path / "cache", []
    for number in range(4):
        package = deb(tmp_path, f"linux-image-{number}", {f"boot/vmlinuz-{RELEASE}": image(version=f"#{number} x")})
        made.append(kernel_build(package, cache=cache).image.parents[1])
        for old, folder in enumerate(made):
            if folder.exists():
                os.utime(folder, (1e9 + old, 1e9 + old))
    assert [folder.exists() for folder in made] == [False, False, True, True]
    kernel_build(tmp_path / "linux-image-2.deb", cache=cache)  # used just now
    kernel_build(deb(tmp_path, "linux-image-4", {f"boot/vmlinuz-{RELEASE}": image(version="#4 x")}), cache=cache)
    assert [folder.exists() for folder in made] == [False, False, True, False]


@needs_dpkg
def test_a_package_that_is_no_kernel(tmp_path):
    cache = tmp_path / "cache"
    package = deb(tmp_path, "iproute3", {"usr/bin/ip": b"x"})
    with pytest.raises(BuildError, match=r"iproute3\.deb: is the package iproute3 1\.2-3, which holds no kernel"):
        kernel_build(package, cache=cache)
    package = deb(tmp_path, "linux-image-meta", {}, "Depends: linux-image-6.1.0-9-test\n")
    with pytest.raises(BuildError, match=r"holds no kernel .*; it needs linux-image-6\.1\.0-9-test: name that"):
        kernel_build(package, cache=cache)
    torn = tmp_path / "torn.deb"
    torn.write_bytes(package.read_bytes()[:100])
    with pytest.raises(BuildError, match=r"torn\.deb: cannot be unpacked: its members are damaged; is it whole\?"):
        kernel_build(torn, cache=cache)
    assert not [path for path in cache.iterdir() if path.name.startswith("part-")]


def test_a_name_that_no_archive_knows(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"linux-image-x: there is no such file, and no apt-get here"):
        kernel_build("linux-image-x", cache=tmp_path)


@pytest.mark.parametrize(
    ("pack", "suffix"),
    [(lambda c: c, ""), (lzma.compress, ".xz"), (gzip.compress, ".gz"),
     pytest.param(lambda c: subprocess.run(("zstd", "-q"), input=c, capture_output=True, check=True).stdout, ".zst",
                  marks=pytest.mark.skipif(shutil.which("zstd") is None, reason="needs zstd"))],
)  # fmt: skip
def test_modules_come_with_what_they_depend_on(tmp_path, pack, suffix):
    (tmp_path / "bzImage").write_bytes(image())
    modules = modules_folder(tmp_path / "m", pack=pack, suffix=suffix)
    build = kernel_build(tmp_path / "bzImage", modules=modules)
    found = select_modules(build, ("virtio_pci", "virtio_console", "virtio_net"), ("sch_ingress",))
    names = [one.name for one in found]
    assert sorted(names) == ["virtio", "virtio_net", "virtio_pci", "virtio_ring"]
    for one in found:
        assert all(names.index(needed) < names.index(one.name) for needed in one.depends)
    assert module_info(found[0].content)["vermagic"][0].startswith(RELEASE)
    with pytest.raises(BuildError, match="bzImage has no virtio_blk, neither as a module nor built in"):
        select_modules(build, ["virtio_blk"])
    (modules / f"kernel/drivers/virtio/virtio.ko{suffix}").write_bytes(b"garbage")
    with pytest.raises(BuildError, match="is no kernel module that can be read"):
        select_modules(build, ["virtio_pci"])


def test_a_module_that_ends_too_early_is_told_in_one_line(tmp_path):
    content = module("virtio_pci")
    modules = modules_folder(tmp_path / "modules")
    (tmp_path / "bzImage").write_bytes(image())
    build = kernel_build(tmp_path / "bzImage", modules=modules)
    for length in range(0, len(content), 7):
        (modules / "kernel/drivers/virtio/virtio_pci.ko").write_bytes(content[:length])
        with pytest.raises(BuildError, match=r"is no kernel module that can be read \(it .*\); is the file") as error:
            select_modules(build, ["virtio_pci"])
        assert "\n" not in str(error.value)


def unpack(archive):
    """Names, modes and contents of a "newc" archive, by its format's definition."""
    found, file = {}, io.BytesIO(archive)
    while True:
        head = file.read(110)
        assert head[:6] == b"070701"
        fields = [int(head[6 + 8 * n : 14 + 8 * n], 16) for n in range(13)]
        name = file.read(fields[11])[:-1].decode()
        file.read(-file.tell() % 4)
        content = file.read(fields[6])
        file.read(-file.tell() % 4)
        if name == "TRAILER!!!":
            return found
        found[name] = (fields[1], content, tuple(fields[9:11]))


def test_an_archive_is_what_the_kernel_expects():
    found = unpack(
        cpio({
            "a/b/c": ArchiveEntry(stat.S_IFREG | 0o644, b"12345"),
            "dev/null": ArchiveEntry(stat.S_IFCHR | 0o666, device=(1, 3)),
            "l": ArchiveEntry(stat.S_IFLNK | 0o777, b"a/b"),
        })
    )  # fmt: skip
    assert found["a/b/c"] == (stat.S_IFREG | 0o644, b"12345", (0, 0))
    assert found["dev/null"] == (stat.S_IFCHR | 0o666, b"", (1, 3))
    assert found["l"][1] == b"a/b"
    assert [name for name, (mode, _, _) in found.items() if stat.S_ISDIR(mode)] == ["a", "a/b", "dev"]
    assert list(found).index("a") < list(found).index("a/b") < list(found).index("a/b/c")


@pytest.mark.skipif(shutil.which("busybox") is None or shutil.which("ethtool") is None, reason="needs busybox, ethtool")
def test_an_initramfs_holds_what_a_guest_needs(tmp_path):
    (tmp_path / "bzImage").write_bytes(image())
    build = kernel_build(tmp_path / "bzImage", modules=modules_folder(tmp_path / "m"))
    found = unpack(initramfs(build))
    assert found["init"][1].decode() == INIT
    for program in ("sh", "ip", "ethtool", "busybox"):
        assert found[f"bin/{program}"][1][:4] == b"\x7fELF"
    assert any(name.startswith("lib64/ld-") for name in found)
    assert found["etc/modules"][1] == b"virtio_pci\nvirtio_net\n"  # virtio_console is built in
    folder = f"lib/modules/{RELEASE}"
    dependencies = found[f"{folder}/modules.dep"][1].decode().splitlines()
    # modprobe loads them from the last to the first.
    assert "virtio_pci.ko: virtio.ko virtio_ring.ko" in dependencies
    assert found[f"{folder}/modules.alias"][1] == b"alias pci:v1AF4d* virtio_pci\n"


def test_the_init_script_is_one():
    assert subprocess.run(("sh", "-n"), input=INIT.encode(), check=False).returncode == 0


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("ref: refs/heads/net/next\n", "net/next"),
        ("0123456789abcdef\n", "HEAD"),
        ("ref: refs/heads/$(id)\n", "HEAD"),
    ],
)
def test_a_git_tree_that_is_not_built_is_named_with_its_branch(tmp_path: Path, head: str, name: str) -> None:
    (tmp_path / "linux/.git").mkdir(parents=True)
    (tmp_path / "linux/.git/HEAD").write_text(head)
    with pytest.raises(BuildError, match=re.escape(f"is a git tree that is not built; name {tmp_path}/linux@{name}, ")):
        kernel_build(tmp_path / "linux", cache=tmp_path / "cache")
