"""A build is a stranger's file, taken by root: nothing of the host gets into it, nothing of it gets out of its folder,
and none takes the memory of this machine."""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import gzip
import lzma
import os
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_kernels import (
    RELEASE,
    Members,
    archive_deb,
    by,
    image,
    module,
    modules_folder,
    tar_file,
    tar_link,
    tarred,
    tree,
)

from pdrgate.bare_metal.host_files import packed_modules
from pdrgate.builds import bpf_build as bpf_builds
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.identity import build_identity
from pdrgate.builds.image_facts import image_facts
from pdrgate.builds.kernel_build import KernelBuild, kernel_build
from pdrgate.builds.kernel_modules import module_files, module_info, select_modules
from pdrgate.builds.named_build import named_build
from pdrgate.values.errors import StorageError

SECRET = "s3cret of the host"
MODULES = f"lib/modules/{RELEASE}"
NET = "kernel/drivers/net/virtio-net.ko"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file, and a folder, of the host."""
    (tmp_path / "host/modules/net").mkdir(parents=True)
    for name in ("secret", f"modules/config-{RELEASE}", "modules/config", "modules/net/virtio-net.ko"):
        (tmp_path / "host" / name).write_text(SECRET)
    return tmp_path / "host/secret"


def unpacked(folder: Path) -> Path:
    """An unpacked package."""
    modules_folder(folder / MODULES)
    (folder / "boot").mkdir()
    (folder / f"boot/vmlinuz-{RELEASE}").write_bytes(image())
    (folder / f"boot/config-{RELEASE}").write_text("CONFIG_SMP=y\n")
    (folder / f"boot/System.map-{RELEASE}").write_text("0 A start\n")
    return folder


def beside(folder: Path) -> Path:
    """A package that keeps the image beside its modules."""
    modules = modules_folder(folder / MODULES)
    (modules / "vmlinuz").write_bytes(image())
    (modules / "config").write_text("CONFIG_SMP=y\n")
    (modules / "System.map").write_text("0 A start\n")
    return folder


def build_tree(folder: Path) -> Path:
    tree(folder)
    (folder / "System.map").write_text("0 A start\n")
    (folder / "vmlinux").write_bytes(b"\x7fELF")
    return folder


LAYOUTS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "unpacked": (unpacked, (
        f"boot/vmlinuz-{RELEASE}", f"boot/config-{RELEASE}", f"boot/System.map-{RELEASE}", f"{MODULES}/{NET}",
        f"{MODULES}/modules.order", f"{MODULES}/modules.builtin", "boot", f"{MODULES}/kernel/drivers/net",
    )),
    "beside": (beside, (f"{MODULES}/vmlinuz", f"{MODULES}/config", f"{MODULES}/System.map", MODULES, "lib")),
    "tree": (build_tree, (
        "arch/x86/boot/bzImage", ".config", "System.map", "vmlinux", "drivers/virtio/virtio_pci.ko", "modules.order",
        "modules.builtin", "arch/x86/boot", "drivers",
    )),
}  # fmt: skip
TAKEN = [(layout, path) for layout, (_, paths) in LAYOUTS.items() for path in paths]


def take_all(build: KernelBuild) -> bytes:
    """All that is ever taken of a build: into a guest, onto a SUT, and what tells it from others."""
    taken = b"".join(one.content for one in select_modules(build, ("virtio_pci", "virtio_net")))
    taken += (build.config_text() or "").encode() + build_identity(build).encode()
    for path in filter(None, (build.image, build.config, build.symbols, build.vmlinux)):
        with build.open(path, 1 << 30) as file:
            taken += file.read()
    with packed_modules(build) as archive:
        return taken + (archive.read_bytes() if archive else b"")


def refused(take: Callable[[], object]) -> str:
    """The one line by which a build is refused."""
    with pytest.raises(BuildError) as error:
        take()
    told = str(error.value)
    assert told.isprintable()
    assert SECRET not in told
    return told


# --- Links ---


@pytest.mark.parametrize(("layout", "path"), TAKEN)
@pytest.mark.parametrize("way", ["absolute", "relative", "chained"])
def test_no_file_of_the_host_is_taken_for_one_of_a_build(
    tmp_path: Path, secret: Path, layout: str, path: str, way: str
) -> None:
    folder = LAYOUTS[layout][0](tmp_path / "build")
    assert SECRET.encode() not in take_all(kernel_build(folder))
    place = folder / path
    target = secret
    if place.is_dir():
        target = secret.parent / "copy"
        shutil.move(place, target)  # all is there, and not in the build any more
    else:
        place.unlink()
        if place.name in ("bzImage", "vmlinux") or place.name.startswith("vmlinuz"):
            target.write_bytes(image())
        elif place.suffix == ".ko":
            target.write_bytes(module(place.stem.replace("-", "_")))
    if way == "chained":
        (folder / "way").symlink_to(target)
        target = folder / "way"
    place.symlink_to(os.path.relpath(target, place.parent) if way == "relative" else target)
    told = refused(lambda: take_all(kernel_build(folder)))
    assert f"{secret.parent}/" in told, told  # where it points
    assert place.name in told or path in told or place.is_dir(), told


_TARGETS = ("secret", "modules", "modules/net", ".", "..")
"""Below the host's folder."""


@given(st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_folder_holds(tmp_path: Path, secret: Path, data: st.DataObject) -> None:
    """Some of what is taken, and folders on the way to it, are replaced: by links of all kinds, to the host and within
    the build, by folders and FIFOs. What is taken never holds the secret, and what is refused is told in one line."""
    layout, (make, paths) = data.draw(st.sampled_from(list(LAYOUTS.items())))
    folder = tmp_path / "build"
    shutil.rmtree(folder, ignore_errors=True)
    make(folder)
    for name in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=4, unique=True), label=layout):
        place = folder / name
        inside = data.draw(st.sampled_from(paths))
        kind = data.draw(st.sampled_from(["host", "relative", "within", "dangling", "folder", "FIFO", "empty"]))
        if not place.parent.is_dir() or not place.parent.resolve().is_relative_to(folder):
            continue  # an earlier one has taken its folder away
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        host = secret.parent / data.draw(st.sampled_from(_TARGETS))
        match kind:
            case "host":
                place.symlink_to(host)
            case "relative":
                place.symlink_to(os.path.relpath(host, place.parent))
            case "within":
                place.symlink_to(os.path.relpath(folder / inside, place.parent))
            case "dangling":
                place.symlink_to("nowhere")
            case "folder":
                place.mkdir()
            case "FIFO":
                os.mkfifo(place)
            case "empty":
                place.write_bytes(b"")
    try:
        taken = take_all(kernel_build(folder))
    except BuildError as error:
        assert SECRET not in str(error)
        assert str(error).isprintable()
    else:
        assert SECRET.encode() not in taken
    assert secret.read_text() == SECRET


def test_the_gates_own_environment_does_not_get_into_a_guest(tmp_path: Path) -> None:
    """The sample that was reported: by a package, by a folder and beside a bzImage."""
    environ = "/proc/self/environ"
    package = archive_deb(
        tmp_path / "a.deb",
        [tar_file(f"./boot/vmlinuz-{RELEASE}", image()), tar_link(f"./boot/config-{RELEASE}", environ)],
    )
    folder = unpacked(tmp_path / "folder")
    for config in (folder / f"boot/config-{RELEASE}", tmp_path / f"config-{RELEASE}"):
        config.unlink(missing_ok=True)
        config.symlink_to(environ)
    (tmp_path / "bzImage").write_bytes(image())
    for build in (package, folder, tmp_path / "bzImage"):
        told = refused(lambda build=build: kernel_build(build, cache=tmp_path / "cache"))
        assert f"config-{RELEASE}: is, or lies behind, a link to /proc/" in told


def test_links_within_a_build_are_followed(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "build")
    (folder / "usr").mkdir()
    shutil.move(folder / "lib", folder / "usr/lib")
    (folder / "lib").symlink_to("usr/lib")
    config, place = folder / f"boot/config-{RELEASE}", folder / "usr/lib/modules" / RELEASE
    shutil.move(config, place / "config")
    config.symlink_to(f"../lib/modules/{RELEASE}/config")
    shutil.move(place / NET, folder / "usr/elsewhere.ko")
    (place / NET).symlink_to("/".join([".."] * 6) + "/elsewhere.ko")
    (place / "build").symlink_to("/usr/src/nowhere")  # dangles, and is not taken
    build = kernel_build(folder)
    assert (build.config, build.modules) == (place / "config", place)
    assert {one.name for one in select_modules(build, ["virtio_net"])} == {"virtio_net", "virtio", "virtio_ring"}
    take_all(build)
    (tmp_path / "link").symlink_to(folder)  # a person names it by a link
    assert kernel_build(tmp_path / "link").modules == place


@pytest.mark.parametrize("path", [f"boot/config-{RELEASE}", f"boot/vmlinuz-{RELEASE}", f"{MODULES}/{NET}"])
def test_what_is_exchanged_after_it_was_looked_at_is_not_taken(tmp_path: Path, secret: Path, path: str) -> None:
    folder = unpacked(tmp_path / "build")
    build = kernel_build(folder)
    (folder / path).unlink()
    (folder / path).symlink_to(secret)
    assert str(secret) in refused(lambda: take_all(build))


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("a FIFO", os.mkfifo),
        ("a folder", os.mkdir),
        ("a socket", lambda path: socket.socket(socket.AF_UNIX).bind(str(path))),
        pytest.param("a device", lambda path: os.mknod(path, 0o20644, os.makedev(1, 5)), marks=needs_root),
    ],
)
@pytest.mark.parametrize("path", [f"boot/config-{RELEASE}", f"boot/vmlinuz-{RELEASE}", f"{MODULES}/{NET}"])
def test_what_is_no_file_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, make: Callable[[object], object], path: str
) -> None:
    folder = unpacked(tmp_path / "build")
    monkeypatch.chdir((folder / path).parent)  # the path of a socket is short
    (folder / path).unlink()
    make((folder / path).name)
    told = refused(lambda: take_all(kernel_build(folder)))
    assert f"{Path(path).name}: is {what} and no regular file" in told or (
        # A folder may be called so, and is then no module.
        (what, path) == ("a folder", f"{MODULES}/{NET}") and "has no virtio_net" in told
    )


@needs_root
def test_a_hard_link_to_somebody_elses_file_is_refused(tmp_path: Path, secret: Path) -> None:
    folder = unpacked(tmp_path / "build")
    config = folder / f"boot/config-{RELEASE}"
    config.unlink()
    config.hardlink_to(secret)
    kernel_build(folder)  # our own: trees of hard links are copied so
    for place in (folder, folder / "boot"):
        os.chown(place, 12345, 12345)
    assert "is a hard link to a file of user 0 in a build of user 12345" in refused(lambda: kernel_build(folder))


def test_a_configuration_has_a_size(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "build")
    os.truncate(folder / f"boot/config-{RELEASE}", 5 << 20)
    assert "has 5 MiB, and no such file of a kernel more than 4 MiB" in refused(lambda: kernel_build(folder))


# --- Names ---


@pytest.mark.parametrize(
    "line",
    [
        "../../../etc/cron.d/job.ko",
        "/etc/cron.d/job.o",
        "a/../../b.ko",
        "a b.ko",
        "a\x1b[2J.ko",
        "-x/../../y.o",
        "a\0.ko",
    ],
)
def test_a_list_of_modules_names_none_outside_of_its_tree(tmp_path: Path, line: str) -> None:
    folder = build_tree(tmp_path / "build")
    (folder / "modules.order").write_text(f"drivers/virtio/virtio_pci.o\n{line}\n")
    told = refused(lambda: take_all(kernel_build(folder)))
    assert "modules.order, line 2: lists " in told


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30), max_size=6))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_tree_lists_stays_below_kernel(tmp_path: Path, lines: list[str]) -> None:
    folder = tmp_path / "build"
    if not folder.exists():
        build_tree(folder)
    (folder / "modules.order").write_text("\n".join(lines))
    with contextlib.suppress(BuildError):
        for name, path in module_files(kernel_build(folder)):
            assert os.path.normpath(name) == name
            assert not name.startswith(("/", ".."))
            assert name.isprintable()
            assert os.path.normpath(path).startswith(f"{folder}/")


@pytest.mark.parametrize("name", [b"caf\xe9.ko", b"a\nb.ko", b"a\x1b[31m.ko.xz"])
def test_a_module_of_no_proper_name_is_told_in_one_line(tmp_path: Path, name: bytes) -> None:
    folder = unpacked(tmp_path / "build")
    (folder / MODULES / "kernel" / os.fsdecode(name)).write_bytes(module("a"))
    told = refused(lambda: take_all(kernel_build(folder)))
    assert "as no kernel's is called" in told
    told.encode()


def test_a_build_of_no_proper_name_is_told_in_one_line(tmp_path: Path) -> None:
    """Results are JSON, which is UTF-8."""
    folder = build_tree(tmp_path / os.fsdecode(b"caf\xe9"))
    for take in (
        lambda: kernel_build(folder),
        lambda: kernel_build(folder / "arch/x86/boot/bzImage"),
        lambda: named_build(f"{build_tree(tmp_path / 'good')}/arch/x86/boot/bzImage,modules={folder}"),
    ):
        told = refused(take)
        assert "has a name that is not UTF-8, which no result could hold; rename it" in told
        assert told.encode()


def test_modules_of_nothing_but_holes_do_not_fill_the_disk(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "build")
    free = shutil.disk_usage(tmp_path).free
    for number in range(free // (1 << 30) + 2):
        path = folder / MODULES / f"kernel/hole{number}.ko"
        path.touch()
        os.truncate(path, 1 << 30)
    with pytest.raises(StorageError, match=r"the modules of build have \d+ MiB, and .* has room for \d+ MiB"):
        take_all(kernel_build(folder))


# --- Packages ---


KERNEL = tar_file(f"./boot/vmlinuz-{RELEASE}", image())
HOSTILE: dict[str, Members] = {
    "..": [tar_file("./boot/../../../escaped")],
    "absolute": [tar_file("/escaped")],
    "a link, then a file behind it": [
        tar_link(f"./{MODULES}", "OUTSIDE"), tar_file(f"./{MODULES}/modules.order", b"escaped"),
    ],
    "a link to a folder, then a file behind it": [tar_link("./lib", "OUTSIDE"), tar_file(f"./{MODULES}/x.ko")],
    "a link, then a link behind it": [tar_link("./lib", "OUTSIDE"), tar_link(f"./{MODULES}/a.ko", "x")],
    "a link, then a hard link behind it": [
        tar_file(f"./boot/config-{RELEASE}"), tar_link("./lib", "OUTSIDE"),
        tar_link(f"./{MODULES}/a.ko", f"./boot/config-{RELEASE}", tarfile.LNKTYPE),
    ],
    "a hard link to a file of the host": [tar_link(f"./boot/config-{RELEASE}", "OUTSIDE/mine", tarfile.LNKTYPE)],
    "a hard link out of it": [tar_link(f"./boot/config-{RELEASE}", "../../mine", tarfile.LNKTYPE)],
    "a device": [tar_link(f"./boot/config-{RELEASE}", "", tarfile.CHRTYPE)],
    "a FIFO": [tar_link(f"./{MODULES}/modules.order", "", tarfile.FIFOTYPE)],
    "twice": [tar_link(f"./boot/config-{RELEASE}", "OUTSIDE/mine"), tar_file(f"./boot/config-{RELEASE}")],
    "a file as a folder": [tar_file(f"./{MODULES}/a"), tar_file(f"./{MODULES}/a/b")],
    "a name that controls a terminal": [tar_file(f"./{MODULES}/\x1b[2J.ko")],
    "a name of two lines": [tar_file(f"./{MODULES}/a\nb.ko")],
    "a name that is too long": [tar_file(f"./{MODULES}/{'a' * 300}.ko")],
    "a name that is far too long": [tar_file(f"./{MODULES}/{'a/' * 40000}.ko")],
}  # fmt: skip


def outside_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
        if "cache" not in path.relative_to(folder).parts
    }


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["GNU", "pax"])
@pytest.mark.parametrize("attack", HOSTILE)
def test_a_package_writes_nothing_outside_of_its_folder(tmp_path: Path, attack: str, form: int) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text(SECRET)
    members = [
        tar_link(one.name, one.linkname.replace("OUTSIDE", str(victim)), one.type) if one.linkname else (one, content)
        for one, content in HOSTILE[attack]
    ]
    (tmp_path / "a.tar").write_bytes(tarred([KERNEL, *members], form))
    package = archive_deb(tmp_path / "a.deb", [KERNEL, *members])
    before = outside_of(tmp_path)
    for path in (package, tmp_path / "a.tar"):
        told = refused(lambda path=path: take_all(kernel_build(path, cache=tmp_path / "cache")))
        assert str(path) in told or str(victim) in told
    assert outside_of(tmp_path) == before
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith("part-")]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("behind", ["file", "link"])
def test_several_packages_write_nothing_outside_of_their_folder(tmp_path: Path, behind: str, order: int) -> None:
    """One has a link where the other has a folder."""
    victim = tmp_path / "victim"
    victim.mkdir()
    place = f"./{MODULES}/kernel/a.ko"
    packages = [
        archive_deb(tmp_path / "a.deb", [KERNEL, tar_link("./lib", str(victim))]),
        archive_deb(tmp_path / "b.deb", [tar_file(place) if behind == "file" else tar_link(place, "x")]),
    ]
    before = outside_of(tmp_path)
    with pytest.raises(BuildError) as error:
        take_all(kernel_build(packages[::order][0], further=packages[::order][1:], cache=tmp_path / "cache"))
    assert "lies behind lib, which is no folder" in str(error.value) or "lib is there twice" in str(error.value)
    assert outside_of(tmp_path) == before


_PARTS = st.sampled_from(
    ["boot", "lib", "usr", "modules", RELEASE, "kernel", "..", ".", f"config-{RELEASE}", "a.ko", ""]
)
_NAMES = st.lists(_PARTS, min_size=1, max_size=6).map("/".join)
_PLACES = st.one_of(
    _NAMES,
    st.sampled_from(
        [
            "lib",
            "boot",
            "usr",
            "usr/lib",
            "lib/modules",
            MODULES,
            f"{MODULES}/a.ko",
            f"{MODULES}/kernel",
            f"boot/config-{RELEASE}",
        ]
    ),
)
_TARGETS_OF = st.one_of(_NAMES, st.sampled_from(["VICTIM", "../../../victim", "lib", MODULES]))
_MEMBERS = st.lists(
    st.tuples(
        _PLACES, st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE]), _TARGETS_OF
    ),
    max_size=8,
)


@given(_MEMBERS)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_package_holds(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    """Names and links of all kinds, as many as may be: outside of the cache nothing changes."""
    victim = tmp_path / "victim"
    victim.mkdir(exist_ok=True)
    given_members = [
        tar_file(name) if kind == tarfile.REGTYPE else tar_link(name, target.replace("VICTIM", str(victim)), kind)
        for name, kind, target in members
    ]
    package = archive_deb(tmp_path / "a.deb", [KERNEL, *given_members])
    before = outside_of(tmp_path)
    with contextlib.suppress(BuildError):
        take_all(kernel_build(package, cache=tmp_path / "cache"))
    assert outside_of(tmp_path) == before
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


@given(st.integers(0, 3000), st.binary(min_size=1, max_size=24), st.booleans())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_damaged_package_is_told_in_one_line(tmp_path: Path, at: int, put: bytes, cut: bool) -> None:
    whole = archive_deb(tmp_path / "a.deb", [KERNEL, tar_file(f"{MODULES}/modules.order", b"")]).read_bytes()
    (tmp_path / "a.deb").write_bytes(whole[:at] if cut else whole[:at] + put + whole[at + len(put) :])
    with contextlib.suppress(BuildError):
        kernel_build(tmp_path / "a.deb", cache=tmp_path / "cache")


# --- Bombs ---

_CHILD = """\
import resource, sys
from pathlib import Path
{imports}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = ""
try:
    {take}
except {error} as error:
    told = str(error)
print(told)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def memory_of(imports: str, take: str, error: str = "ValueError") -> tuple[str, int]:
    """What a process of its own says of it, and the MiB that it took."""
    done = subprocess.run(
        (sys.executable, "-c", _CHILD.format(imports=imports, take=take, error=error)),
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    told, memory = done.stdout.splitlines()
    return told, int(memory)


def xz_of_a_large_dictionary(content: bytes) -> bytes:
    """Unpacking it takes 1 GiB before the first byte is there: its header says so."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    small = lzma.compress(content[: 1 << 20], filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}])
    header = bytearray(small[12:24])
    assert filters
    assert header[4] < 40  # the dictionary's size, as the format codes it
    header[4] = 36  # 1 GiB
    header[8:12] = struct.pack("<I", __import__("zlib").crc32(bytes(header[:8])))
    return small[:12] + bytes(header) + small[24:]


ZEROS = bytes(300 << 20)
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1),
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".bz2": lambda content: bz2.compress(content, 1),
    ".zst": by("zstd", "-q1"),
    ".lz4": by("lz4", "-q"),
}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """300 MiB of nothing by what it is packed with, packed once."""
    folder = tmp_path_factory.mktemp("bombs")

    def bomb(suffix: str) -> Path:
        if suffix in (".zst", ".lz4") and shutil.which({".zst": "zstd", ".lz4": "lz4"}[suffix]) is None:
            pytest.skip(f"packs by {suffix}")
        path = folder / f"bomb{suffix}"
        if not path.exists():
            path.write_bytes(BOMBS[suffix](ZEROS))
        return path

    yield bomb
    shutil.rmtree(folder)


@pytest.mark.parametrize("suffix", BOMBS)
def test_a_small_module_does_not_fill_the_memory(
    tmp_path: Path, bombs: Callable[[str], Path], suffix: str
) -> None:  # fmt: skip
    folder = unpacked(tmp_path / "build")
    place = folder / MODULES / NET
    place.unlink()
    shutil.copy(bombs(suffix), place.with_name(place.name + suffix))
    told, memory = memory_of(
        "from pdrgate.builds.kernel_modules import select_modules\n"
        "from pdrgate.builds.kernel_build import kernel_build, BuildError",
        f"select_modules(kernel_build({str(folder)!r}), ['virtio_net'])",
        "BuildError",
    )
    assert f"virtio-net.ko{suffix}: is no kernel module that can be read (it unpacks to more than 64 MiB)" in told
    assert memory < 120


def test_many_modules_do_not_fill_the_memory_together(tmp_path: Path) -> None:
    """Each of them is small enough."""
    folder = unpacked(tmp_path / "build")
    for number in range(6):
        content = module(f"m{number}", f"m{number + 1}") + bytes(40 << 20)
        (folder / MODULES / f"kernel/m{number}.ko.gz").write_bytes(gzip.compress(content, 1))
    told, memory = memory_of(
        "from pdrgate.builds.kernel_modules import select_modules\n"
        "from pdrgate.builds.kernel_build import kernel_build, BuildError",
        f"select_modules(kernel_build({str(folder)!r}), ['m0'])",
        "BuildError",
    )
    assert "the modules that a guest needs have more than 192 MiB" in told
    assert memory < 330


@pytest.mark.parametrize("told_size", [300 << 20, 1 << 20])
@pytest.mark.parametrize("suffix", BOMBS)
def test_a_small_image_does_not_fill_the_memory(
    tmp_path: Path, bombs: Callable[[str], Path], suffix: str, told_size: int
) -> None:
    """Whether it tells its size or lies."""
    payload = bombs(suffix).read_bytes()
    payload = payload[:-4] if suffix == ".gz" else payload
    payload += struct.pack("<I", told_size)
    head = bytearray(image().ljust(1024, b"\0"))
    struct.pack_into("<H", head, 0x206, 0x20F)
    struct.pack_into("<II", head, 0x248, len(head) - 512, len(payload))
    (tmp_path / "bzImage").write_bytes(bytes(head) + payload)
    told, memory = memory_of(
        "from pdrgate.builds.boot_image import elf_image",
        f"print(elf_image(Path({str(tmp_path / 'bzImage')!r}), Path({str(tmp_path / 'cache')!r})), end='')",
    )
    assert told == "None"
    assert memory < 60
    assert sum(path.stat().st_size for path in tmp_path.rglob("cache/*")) == 0


@pytest.mark.parametrize("suffix", BOMBS)
def test_a_small_package_fills_neither_memory_nor_disk(
    tmp_path: Path, bombs: Callable[[str], Path], suffix: str
) -> None:
    big, _ = tar_file(f"./{MODULES}/kernel/a.ko")
    big.size = len(ZEROS)
    whole = big.tobuf(tarfile.GNU_FORMAT) + ZEROS
    package = archive_deb(tmp_path / "a.deb", [KERNEL], suffix, lambda _: BOMBS[suffix](whole))
    told, memory = memory_of(
        "from pdrgate.builds.kernel_build import kernel_build, BuildError",
        f"kernel_build({str(package)!r}, cache=Path({str(tmp_path / 'cache')!r}))",
        "BuildError",
    )
    assert "a.deb: cannot be unpacked: it unpacks to more than 256 MiB" in told
    assert memory < 60
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_dictionary_of_a_gigabyte_is_not_allocated(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "build")
    place = folder / MODULES / NET
    place.unlink()
    place.with_name(place.name + ".xz").write_bytes(xz_of_a_large_dictionary(module("virtio_net")))
    told = refused(lambda: take_all(kernel_build(folder)))
    assert "Memory usage limit exceeded" in told


def test_a_header_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    """A pax header may be as long as it says, and is made of nothing."""
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, 1 << 32
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.USTAR_FORMAT) + bytes(4096))
    assert "a name or header of more than 64 KiB" in refused(lambda: kernel_build(tmp_path / "a.tar", cache=tmp_path))


# --- Damaged files ---


def test_an_image_that_ends_too_early_is_told_in_one_line(tmp_path: Path) -> None:
    whole = bytearray(image() + bytes(300))
    struct.pack_into("<H", whole, 0x206, 0x20F)
    struct.pack_into("<H", whole, 0x236, 1)
    struct.pack_into("<II", whole, 0x248, 512, len(whole) - 1024)
    path = tmp_path / "bzImage"
    path.write_bytes(whole)
    assert image_facts(path).release == RELEASE
    for length in (*range(0, len(whole), 5), 0x206, 0x20E, 0x20F, len(whole) - 1):
        path.write_bytes(whole[:length])
        told = refused(lambda: kernel_build(path))
        assert "is no kernel image" in told or "ends too early" in told or "no kernel release" in told


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_damaged_module_is_told_so(data: st.DataObject) -> None:
    content = bytearray(module("virtio_net", "virtio"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 8))
        content[at : at + 8] = data.draw(st.one_of(st.binary(min_size=8, max_size=8), st.sampled_from(
            [b"\xff" * 8, bytes(8), struct.pack("<Q", 1 << 62), struct.pack("<Q", 64)])))  # fmt: skip
    with contextlib.suppress(ValueError):
        assert isinstance(module_info(bytes(content)), dict)


def elf_of_sections(count: int, names: bytes) -> bytes:
    """Sections that all have the longest of these names."""
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 1, 247, 1, 0, 0, 64 + len(names), 0, 64, 0, 0, 64, count, 0
    )
    return head + names + struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0) * count


def test_names_of_sections_take_no_time_of_their_own(tmp_path: Path) -> None:
    """60 000 sections that share one name of 8 MB are half a terabyte to read."""
    path = tmp_path / "a.o"
    path.write_bytes(elf_of_sections(60_000, b"a" * (8 << 20) + b"\0"))
    with pytest.raises(BpfBuildError, match=r"is no eBPF object \(it is damaged\)"):
        bpf_build(path)


def test_an_object_that_was_exchanged_is_not_loaded(tmp_path: Path, secret: Path) -> None:
    elf = elf_of_sections(1, b"\0.shstrtab\0")
    (tmp_path / "a.o").write_bytes(elf)
    with pytest.raises(BpfBuildError, match="holds no program; put one into"):
        bpf_build(tmp_path / "a.o")
    build = dataclasses.replace(_build_of(tmp_path / "b.o"), path=tmp_path / "a.o")
    with pytest.raises(BpfBuildError, match="is another one than when it was looked at"):
        build.read()
    (tmp_path / "a.o").unlink()
    (tmp_path / "a.o").symlink_to(secret)
    with pytest.raises(BpfBuildError, match="a link to"):
        build.read()
    for kind in (os.mkfifo, os.mkdir):
        kind(tmp_path / f"is-{kind.__name__}")
        with pytest.raises(BpfBuildError, match="no regular file"):
            bpf_build(tmp_path / f"is-{kind.__name__}")


def _build_of(path: Path) -> bpf_builds.BpfBuild:
    path.write_bytes(b"b")
    return bpf_builds.BpfBuild(path.name, path, "0" * 64, "xdp", "xdp")


def test_modules_that_need_one_another(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "build")
    place = folder / MODULES / "kernel"
    for name, needs in (("a", "b"), ("b", "c,virtio"), ("c", "a")):
        (place / f"{name}.ko").write_bytes(module(name, needs))
    told = refused(lambda: select_modules(kernel_build(folder), ["a"]))
    assert told.endswith("its modules depend on one another in a circle: a -> b -> c -> a")
    (place / "a.ko").write_bytes(module("a", "a"))
    assert "in a circle: a -> a" in refused(lambda: select_modules(kernel_build(folder), ["a"]))


def test_a_long_way_of_modules(tmp_path: Path) -> None:
    """Longer than Python's stack; each after what it depends on."""
    folder = unpacked(tmp_path / "build")
    for number in range(1500):
        content = module(f"m{number}", f"m{number + 1}" if number < 1499 else "")
        (folder / MODULES / f"kernel/m{number}.ko").write_bytes(content)
    names = [one.name for one in select_modules(kernel_build(folder), ["m0"])]
    assert names == [f"m{number}" for number in reversed(range(1500))]


def test_keys_of_the_cache_are_whole_digests(tmp_path: Path) -> None:
    build = kernel_build(archive_deb(tmp_path / "a.deb", [KERNEL]), cache=tmp_path / "cache")
    assert len(build.image.parents[1].name) == 64
