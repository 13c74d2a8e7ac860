"""Packages of suites that the machine's sources do not name: apt's own work, on an archive in a folder."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from local_archive import LocalArchive
from made_kernels import RELEASE, deb, flat_image, image, module, needs_dpkg, split_kernel

from pdrgate.builds.architecture import ARM64
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.found_builds import builds_at
from pdrgate.builds.kernel_build import BuildError
from pdrgate.builds.named_build import look_at, named_build
from pdrgate.builds.packages.apt_archive import NamedPackage, named_package, named_pattern
from pdrgate.builds.packages.apt_sources import AptSource, machine_sources, sources_of_suite
from pdrgate.guests import guest_programs as programs
from pdrgate.values.errors import TestbedError

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get")
pytestmark = [needs_dpkg, needs_apt]

NEW = "7.3.4+deb13-cloud-amd64"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Writes a file of the machine's sources, which apt then has in place of its own."""
    folder = tmp_path / "etc"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "state/lists/partial").mkdir(parents=True)
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "{folder}/parts";\n'
        f'Dir::State::lists "{tmp_path}/state/lists";\nDir::Cache "{tmp_path}/state";\n'
        'APT::Default-Release "old";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(folder / "apt.conf"))
    return lambda name, text: (folder / "parts" / name).write_text(text) and None  # type: ignore[func-returns-value]


@pytest.fixture
def archive(tmp_path: Path, sources: Callable[[str, str], None]) -> LocalArchive:
    """An archive that the machine trusts, of whose suites it names only ``old``."""
    made = LocalArchive(tmp_path / "debian")
    sources("made.list", f"deb [trusted=yes] {made.address} old main\n")
    return made


def snapshot(folder: Path) -> dict[str, float]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def aged(cache: Path, suite: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(cache / "suites" / suite / "suite.sources", (then, then))


def test_a_kernel_of_another_suite_is_taken_whole_and_the_machines_lists_stay(
    tmp_path: Path, archive: LocalArchive
) -> None:
    archive.publish("new-backports", *split_kernel(tmp_path / "debs", NEW))
    before = snapshot(tmp_path / "etc"), snapshot(tmp_path / "state/lists")
    cache = tmp_path / "cache"
    # A binary package needs only its base, so that its modules must be known to belong to it.
    for name in ("linux-image-cloud-amd64", f"linux-image-{NEW}=1.2-3", f"linux-binary-{NEW}", f"linux-modules-{NEW}"):
        build = named_build(f"new-backports/{name}", cache)
        assert (build.name, build.release) == (f"linux-binary-{NEW} 1.2-3", NEW)
        assert build.config_text() == "CONFIG_VIRTIO_NET=m\n"
        assert build.modules is not None and (build.modules / "kernel/drivers/net/virtio-net.ko").exists()
        assert build.source == f"new-backports/{name}"
    assert (snapshot(tmp_path / "etc"), snapshot(tmp_path / "state/lists")) == before


def test_a_pattern_names_the_kernels_of_another_suite(tmp_path: Path, archive: LocalArchive) -> None:
    old = split_kernel(tmp_path / "b", "7.10.0-amd64", beside=False)[1:]
    archive.publish("new", *split_kernel(tmp_path / "a", "7.9.2-amd64"), *old)
    found = builds_at("new/linux-image-7*-amd64", tmp_path / "cache")
    assert [one.source for one in found] == ["new/linux-image-7.9.2-amd64", "new/linux-image-7.10.0-amd64"]
    with pytest.raises(BuildError, match=r"new/linux-image-8\*: apt knows no such package"):
        builds_at("new/linux-image-8*", tmp_path / "cache")


def test_lists_are_fetched_anew_after_a_day_or_for_an_unknown_name(tmp_path: Path, archive: LocalArchive) -> None:
    cache = tmp_path / "cache"
    archive.publish("new", *split_kernel(tmp_path / "first", "7.1.0-amd64"))
    assert named_build("new/linux-image-cloud-amd64", cache).release == "7.1.0-amd64"
    archive.publish("new", *split_kernel(tmp_path / "second", "7.2.0-amd64"))
    assert named_build("new/linux-image-cloud-amd64", cache).release == "7.1.0-amd64"
    aged(cache, "new", 90_000)
    assert named_build("new/linux-image-cloud-amd64", cache).release == "7.2.0-amd64"
    archive.publish("new", *split_kernel(tmp_path / "third", "7.3.0-amd64"))
    assert named_build("new/linux-image-7.3.0-amd64", cache).release == "7.3.0-amd64"


def test_what_was_fetched_serves_without_the_archive(tmp_path: Path, archive: LocalArchive) -> None:
    cache = tmp_path / "cache"
    archive.publish("new", *split_kernel(tmp_path / "debs", NEW))
    build = named_build("new/linux-image-cloud-amd64", cache)
    archive.folder.rename(tmp_path / "out of reach")
    aged(cache, "new", 90_000)
    assert named_build("new/linux-image-cloud-amd64", cache) == build
    with pytest.raises(BuildError, match=r"^new/linux-image-9: there is no such file, and apt-get says of new: Unable"):
        named_build("new/linux-image-9", cache)
    with pytest.raises(BuildError, match=r"^newer/…: there is no such folder, and apt-get cannot fetch .*; name a"):
        named_build("newer/linux-image-cloud-amd64", cache)


def test_a_download_that_fails_is_one_line(tmp_path: Path, archive: LocalArchive) -> None:
    packages = split_kernel(tmp_path / "debs", NEW)
    archive.publish("new", *packages)
    shutil.rmtree(archive.folder / "pool")
    with pytest.raises(BuildError) as error:
        named_build("new/linux-image-cloud-amd64", tmp_path / "cache")
    assert str(error.value).startswith("new/linux-image-cloud-amd64: apt-get download failed: ")
    assert str(error.value).endswith("; is the archive in reach? .deb files can be named instead")
    assert "\n" not in str(error.value)


def test_a_kernel_of_which_the_archive_has_only_a_part_names_the_rest(tmp_path: Path, archive: LocalArchive) -> None:
    packages = split_kernel(tmp_path / "debs", NEW, beside=False)
    archive.publish("new", *packages, gone=(f"linux-base-{NEW}", f"linux-modules-{NEW}"))
    with pytest.raises(BuildError) as error:
        named_build(f"new/linux-image-{NEW}", tmp_path / "cache")
    assert str(error.value) == (
        f"new/linux-image-{NEW}: needs linux-base-{NEW}, linux-modules-{NEW}, which the archive has no more; name the "
        ".deb files of that kernel, from where they are kept: those that lie beside a named one are found"
    )


def test_a_package_that_holds_the_whole_kernel_needs_no_other_whatever_it_depends_on(
    tmp_path: Path, archive: LocalArchive
) -> None:
    """Debian's linux-image of 6.18 depends on a linux-base that holds nothing of the kernel, and soon was gone."""
    whole = {
        f"boot/vmlinuz-{NEW}": image(NEW), f"usr/lib/modules/{NEW}/modules.builtin": b"",
        f"usr/lib/modules/{NEW}/kernel/virtio_net.ko": module("virtio_net", release=NEW),
    }  # fmt: skip
    (tmp_path / "debs").mkdir()
    package = deb(tmp_path / "debs", f"linux-image-{NEW}", whole, f"Depends: linux-base-{NEW}, linux-modules-{NEW}\n")
    archive.publish("new", package)
    for named in (f"new/linux-image-{NEW}", str(package)):
        assert named_build(named, tmp_path / "cache").release == NEW


@pytest.mark.skipif(shutil.which("gpg") is None, reason="needs gpg")
def test_signatures_are_checked_with_the_keyring_of_the_machines_source(
    tmp_path: Path, sources: Callable[[str, str], None]
) -> None:
    archive = LocalArchive(tmp_path / "debian", tmp_path / "k")
    archive.publish("new", *split_kernel(tmp_path / "debs", NEW))
    key = archive.key(tmp_path / "key.gpg")
    stanza = "Types: deb deb-src\nURIs: {}\nSuites: old old-updates\nComponents: main contrib\nSigned-By: {}\n"
    sources("made.sources", stanza.format(archive.address, key))
    assert named_build("new/linux-image-cloud-amd64", tmp_path / "cache").release == NEW
    other = LocalArchive(tmp_path / "other", tmp_path / "o")
    other.publish("x")
    sources("made.sources", stanza.format(archive.address, other.key(tmp_path / "other.gpg")))
    with pytest.raises(BuildError, match=r"cannot fetch the lists of a suite new: .*(NO_PUBKEY|not signed|GPG|sqv)"):
        named_build("new/linux-image-cloud-amd64", tmp_path / "cache")


def test_a_file_or_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "trixie/linux-image-6.12"
    assert named_package(name) == NamedPackage("linux-image-6.12", "trixie")
    (tmp_path / name).mkdir(parents=True)
    assert named_package(name) is None
    with pytest.raises(BuildError, match="holds neither arch/x86/boot/bzImage"):
        look_at(name)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("linux-image-amd64", NamedPackage("linux-image-amd64")),
        ("linux-image-amd64=6.1.1-1", NamedPackage("linux-image-amd64=6.1.1-1")),
        ("sid/linux-image-amd64=7.3.4-1~x+1", NamedPackage("linux-image-amd64=7.3.4-1~x+1", "sid")),
        ("trixie-backports/linux-image-7.3.4+deb13-amd64",
         NamedPackage("linux-image-7.3.4+deb13-amd64", "trixie-backports")),
        *((text, None) for text in (
            "/no/linux-image", "../linux-image", "./linux-image", "a/b/linux-image", "builds/vmlinuz", "x/linux.deb",
            "x/linux-image-1.rpm", "linux.deb", "trixie/", "/linux-image", "", "Trixie/linux-image", "a b/linux-image",
        )),
    ],
)  # fmt: skip
def test_what_names_a_package(text: str, found: NamedPackage | None) -> None:
    assert named_package(text) == found


def test_what_is_a_pattern_of_packages() -> None:
    assert named_pattern("sid/linux-image-6.*-amd64") == NamedPackage("linux-image-6.*-amd64", "sid")
    assert named_pattern("linux-image-6.[12]") == NamedPackage("linux-image-6.[12]")
    for text in ("linux-image", "/srv/linux-*", "a/b/linux-*", "builds/*.deb"):
        assert named_pattern(text) is None


def test_sources_are_read_in_both_forms(sources: Callable[[str, str], None]) -> None:
    sources("a.list", (
        "# deb http://comment/ x main\ndeb-src http://source/debian x main\n"
        "deb [arch=amd64,i386 signed-by=/k.gpg] http://one/debian old main contrib # why\n"
        "deb http://flat/ ./\ncdrom is no source\n"
    ))  # fmt: skip
    sources("b.sources", (
        "# of the installer\nTypes: deb\nURIs: http://two/debian\nSuites: old old-updates\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n\n"
        "Enabled: no\nTypes: deb\nURIs: http://off/debian\nSuites: old\nComponents: main\n"
    ))  # fmt: skip
    sources("c.disabled", "deb http://three/debian old main\n")
    key = "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc"
    found = machine_sources()
    assert found == (
        AptSource(("http://one/debian",), ("old",), ("main", "contrib"), (("signed-by", "/k.gpg"),)),
        AptSource(("http://two/debian",), ("old", "old-updates"), ("main",), (("signed-by", key),)),
    )
    assert found[1].of_suite("new", "arm64") == (
        "Types: deb\nURIs: http://two/debian\nSuites: new\nComponents: main\nArchitectures: arm64\nTargets: Packages\n"
        f"PDiffs: no\nsigned-by: {key}\n"
    )


def test_the_archive_of_a_suite_is_the_distributions_and_security_has_its_own() -> None:
    def source(uri: str, *suites: str) -> AptSource:
        return AptSource((uri,), suites, ("main",), ())

    main = source("http://deb.example/x/debian", "old", "old-updates")
    security = source("http://deb.example/x/debian-security", "old-security")
    others, backports = source("https://packages.example/y", "old"), source("http://b.example/y", "old-backports")
    known = (others, security, main, backports)
    assert sources_of_suite("new-security", known)[0] == security
    assert sources_of_suite("new-backports", known)[0] == backports
    assert set(sources_of_suite("new", known)) == {main, others}
    assert sources_of_suite("old-security", (security,)) == [security]
    assert sources_of_suite("new", (security,)) == []


def test_a_kernel_for_another_architecture_comes_from_lists_of_its_own(
    tmp_path: Path, archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the machine's own suite too, whose lists have none for it."""
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "own"})
    name, before = f"linux-image-{RELEASE}-arm64", snapshot(tmp_path / "state/lists")
    parts = {f"boot/vmlinuz-{RELEASE}": flat_image(), f"lib/modules/{RELEASE}/modules.order": b""}
    archive.publish("own", deb(tmp_path, name, parts, architecture="arm64"), architecture="arm64")
    for named in (name, f"own/{name}"):
        build = named_build(named, tmp_path / "cache")
        assert (build.architecture, build.release) == (ARM64, RELEASE)
    assert [path.name for path in (tmp_path / "cache/suites").iterdir()] == ["own.arm64"]
    assert snapshot(tmp_path / "state/lists") == before
    monkeypatch.setattr("platform.freedesktop_os_release", dict)
    with pytest.raises(BuildError, match=r"/etc/os-release names none .VERSION_CODENAME.; name one, as in SUITE/"):
        named_build(name, tmp_path / "cache")


def _program(folder: Path, name: str) -> bytes:
    """A program that needs a library and a loader, as a linker of this machine makes it."""
    (folder / "main.c").write_text("int main(void) { return 0; }")
    subprocess.run(("gcc", "main.c", "-o", name), cwd=folder, check=True)
    return (folder / name).read_bytes()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_programs_for_another_architecture_are_fetched_once_with_what_they_need(
    tmp_path: Path, archive: LocalArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "own"})
    monkeypatch.setattr(programs, "_PACKAGES", ("prog", "busybox-static"))
    program = _program(tmp_path, "prog")
    with io.BytesIO(program) as file:
        loader, *libraries = ElfFile(file).libraries()
    assert libraries == ["libc.so.6"]
    folder = f"usr/lib/{ARM64.triplet}"
    library = {f"{folder}/libc.so.6": b"\x7fELF\x02\x01".ljust(64, b"\0"), loader.lstrip("/"): b"loader"}
    busybox = {"bin/busybox": b"x\0[\0[[\0ar\0cat\0sh\0ash\0"}
    archive.publish(
        "own",
        deb(tmp_path, "prog", {"usr/bin/prog-nft": program}, "Depends: libx\n", "arm64"),
        deb(tmp_path, "libx", library, architecture="arm64"),
        deb(tmp_path, "busybox-static", busybox, architecture="arm64"),
        architecture="arm64",
    )
    for _ in range(2):  # the second time without the archive
        root = programs._unpacked(ARM64, tmp_path / "programs")
        archive.folder.rename(tmp_path / "gone") if archive.folder.exists() else None
    found = programs.ForeignPrograms(ARM64, root)
    assert found.find("prog") == (root / "usr/bin/prog-nft").resolve()
    assert found.find("sh") is None
    assert found.applets() == ["[", "[[", "ar", "cat", "sh"]
    assert found._library("libc.so.6") == root / folder / "libc.so.6"
    with pytest.raises(TestbedError, match=r"^the packages for guests of arm64 have no libz\.so\.1$"):
        found._library("libz.so.1")
    (root / "bin/out").symlink_to("../../../../../etc/passwd")
    (root / "bin/in").symlink_to("/bin/busybox")
    assert (found.find("out"), found.find("in")) == (None, root / "bin/busybox")
