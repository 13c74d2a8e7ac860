"""Kernel builds: what a kernel engineer hands over, found and checked, ready to be booted in a guest.

A build is a package file, a bzImage, a kernel build tree, or the name of a distribution package. Packages are unpacked
into a cache folder and never installed. What a build is, its image says: the release comes from the bzImage itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.cache import cache_folder
from pdrgate.child_environment import PROXIES, child_environment
from pdrgate.errors import StorageError, SutError

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_NEEDED = re.compile(r"linux-(?:image|modules)-(?:unsigned-)?[0-9]\S*")
"""Dependencies that are part of the kernel: a meta package's image, or Ubuntu's modules."""
_KEPT = 16
"""Unpacked packages that stay in the cache, each of about 400 MB, though more were not used for a day."""
_DAY = 86_400.0
_TREE_IMAGE = "arch/x86/boot/bzImage"
_EXAMPLES = "a .deb, a bzImage, a kernel build tree or the name of a package such as linux-image-amd64"


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """One kernel that can be booted."""

    name: str
    """For people and results: the package with its version, or the file."""
    source: str
    """What was handed over."""
    image: Path
    """A bzImage."""
    release: str
    """As ``uname -r`` will say, read from the image."""
    version: str
    """As ``uname -v`` will say: build number and date."""
    modules: Path | None = None
    """The folder ``lib/modules/RELEASE``, or a build tree; None for a kernel with all it needs built in."""
    config: Path | None = None
    config_sha256: str | None = None
    vmlinux: Path | None = None
    """The image with symbols, for decoding addresses of a crash."""
    note: str = ""
    """Why it is another one than was asked for."""

    @property
    def label(self) -> str:
        """What results call it."""
        return f"{self.name} ({self.release})"


class BuildError(SutError):
    """What was handed over is no kernel that could be booted."""


def kernel_build(
    source: str | Path, *, modules: Path | None = None, vmlinux: Path | None = None, cache: Path | None = None
) -> KernelBuild:
    """The build that ``source`` names.

    Args:
        source: path of a .deb, of a bzImage, of a kernel build tree or of an unpacked package; else a package's name.
        modules: the modules of a bzImage or of a build tree: ``lib/modules/RELEASE``, or what ``make modules_install``
            was given as INSTALL_MOD_PATH.
        cache: where packages are unpacked; by default in `cache_folder`.

    Raises:
        BuildError: there is no such thing, it is no x86 kernel, or image and modules are of different builds.
        StorageError: the cache cannot be written.
    """
    text = str(source)
    path = Path(source)
    folder = cache or cache_folder() / "builds"
    if path.is_dir():
        return _from_folder(path, text, path.resolve().name, modules, vmlinux)
    if path.is_file():
        if _begins(path, b"!<arch>\n"):
            return _from_packages((path,), text, folder, modules, vmlinux)
        return _from_image(path, text, path.name, modules, vmlinux)
    if "/" in text or text.endswith(".deb") or not _PACKAGE.fullmatch(text):
        raise BuildError(f"{text}: there is no such file; name {_EXAMPLES}")
    return _from_distribution(text, folder, modules, vmlinux)


def absolute(text: str) -> str:
    """What a person names, with its paths made absolute; the name of a package stays as it is."""
    words = [word.partition("=") for word in text.split(",")]
    source, *parts = words
    first = str(Path(source[0]).resolve()) if source[0] and Path(source[0]).exists() else source[0]
    return ",".join([first, *(f"{name}={Path(path).resolve()}" for name, _, path in parts)])


def read_version(image: Path) -> tuple[str, str]:
    """Release and version of a bzImage, as ``uname -r`` and ``uname -v`` will say them.

    They stand in its setup header (Documentation/arch/x86/boot.rst, field kernel_version).

    Raises:
        BuildError: the file is no bzImage.
    """
    try:
        with image.open("rb") as file:
            head = file.read(1 << 16)
    except OSError as error:
        raise BuildError(f"{image}: cannot read it: {error.strerror}") from error
    if head[0x202:0x206] != b"HdrS":
        what = "an uncompressed vmlinux" if head[:4] == b"\x7fELF" else "no x86 kernel image"
        raise BuildError(f"{image}: is {what}; name the bzImage (arch/x86/boot/bzImage of a build tree, vmlinuz-…)")
    at = struct.unpack_from("<H", head, 0x20E)[0] + 0x200
    words = head[at : head.find(b"\0", at)].decode(errors="replace")
    release, _, rest = words.partition(" ")
    if not re.fullmatch(r"\d[\w.+~-]*", release):
        raise BuildError(f"{image}: tells no kernel release in its header; is the file damaged?")
    return release, rest[rest.find("#") :] if "#" in rest else ""


def _from_image(image: Path, source: str, name: str, modules: Path | None, vmlinux: Path | None) -> KernelBuild:
    release, _ = read_version(image)
    beside = (image.parent / f"config-{release}",)
    found = None if modules is None else _modules_folder(modules, release)
    return _build(name, source, image, found, beside, vmlinux)


def _from_folder(folder: Path, source: str, name: str, modules: Path | None, vmlinux: Path | None) -> KernelBuild:
    """A kernel build tree, or a folder with boot/vmlinuz-RELEASE as packages have it."""
    tree_image = folder / _TREE_IMAGE
    if tree_image.exists():
        release, _ = read_version(tree_image)
        found = (
            _modules_folder(modules, release) if modules else folder if (folder / "modules.order").exists() else None
        )
        return _build(
            name, source, tree_image, found, (folder / ".config",),
            vmlinux or (folder / "vmlinux" if (folder / "vmlinux").exists() else None),
        )  # fmt: skip
    images = sorted((folder / "boot").glob("vmlinuz-*"))
    if not images:
        raise BuildError(f"{source}: holds neither {_TREE_IMAGE} nor boot/vmlinuz-…; has the kernel been built there?")
    if len(images) > 1:
        raise BuildError(f"{source}: holds {len(images)} kernels; name one of {', '.join(map(str, images))}")
    release, _ = read_version(images[0])
    return _build(
        name, source, images[0], _modules_folder(modules or folder, release, required=modules is not None),
        (folder / f"boot/config-{release}",), vmlinux,
    )  # fmt: skip


def _build(
    name: str, source: str, image: Path, modules: Path | None, configs: Iterable[Path], vmlinux: Path | None
) -> KernelBuild:
    release, version = read_version(image)
    config = next((path for path in configs if path.is_file()), None)
    if vmlinux is not None and not vmlinux.is_file():
        raise BuildError(f"{vmlinux}: there is no such file; name the vmlinux of {name} or leave it out")
    return KernelBuild(
        name=name, source=source, image=image.resolve(), release=release, version=version,
        modules=modules and modules.resolve(), config=config and config.resolve(),
        config_sha256=None if config is None else sha256_of(config), vmlinux=vmlinux and vmlinux.resolve(),
    )  # fmt: skip


def _modules_folder(folder: Path, release: str, required: bool = True) -> Path | None:
    """The modules of that release at or below ``folder``."""
    below = [folder / f"{top}{release}" for top in ("lib/modules/", "usr/lib/modules/", "modules/", "")]
    for candidate in (folder, *below):
        if (candidate / "modules.order").exists():
            if candidate == folder and candidate.parent.name == "modules" and candidate.name != release:
                raise BuildError(f"{folder}: holds the modules of {candidate.name}, and the image is {release}")
            return candidate
    others = sorted(
        path.parent.name for top in ("", "usr/") for path in folder.glob(f"{top}lib/modules/*/modules.order")
    )
    if others:
        raise BuildError(f"{folder}: holds the modules of {', '.join(others)}, and the image is {release}")
    if required:
        raise BuildError(f"{folder}: holds no modules of {release} (no modules.order); name lib/modules/{release}")
    return None


# --- Packages --------------------------------------------------------------------------------------------------------


def _from_distribution(package: str, cache: Path, modules: Path | None, vmlinux: Path | None) -> KernelBuild:
    found: list[Path] = []
    wanted, told = [package], {package}
    while wanted:
        name = wanted.pop(0)
        digest, filename = _archive_entry(name, cache)
        folder = cache / digest[:16]
        if not folder.exists():
            with _temporary(cache) as place:
                _run(("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name), f"downloading {name}", place)
                _unpack(place / filename, folder)
        found.append(folder)
        depends = (folder / "pdrgate.depends").read_text()
        for needed in _NEEDED.findall(depends):
            if needed not in told:
                told.add(needed)
                wanted.append(needed)
    return _from_unpacked(found, package, modules, vmlinux)


def _archive_entry(package: str, cache: Path) -> tuple[str, str]:
    """Content hash and file name of the package that apt would download."""
    if shutil.which("apt-get") is None:
        raise BuildError(
            f"{package}: there is no such file, and no apt-get here to download a package; name {_EXAMPLES}"
        )
    # Container images tell apt to keep no cache of its lists: then it reads all of them anew, for seconds.
    kept = f"Dir::Cache::pkgcache={cache.absolute() / 'pkgcache.bin'}"
    done = subprocess.run(
        ("apt-get", "-q", "-o", kept, "download", "--print-uris", package), capture_output=True, text=True,
        check=False, env=child_environment(*PROXIES), cwd="/",
    )  # fmt: skip
    match = re.search(r"^'\S+' (\S+) \d+ [A-Z0-9]+:([0-9a-f]{32,})", done.stdout, re.MULTILINE)
    if match is None:
        why = next((line[2:].strip() for line in done.stderr.splitlines() if line.startswith("E:")), "no such package")
        raise BuildError(
            f"{package}: there is no such file, and apt-get says: {why}; run apt-get update, or name another"
        )
    return match[2], match[1]


def _from_packages(
    packages: Sequence[Path], source: str, cache: Path, modules: Path | None, vmlinux: Path | None
) -> KernelBuild:
    folders = []
    for package in packages:
        folder = cache / sha256_of(package)[:16]
        if not folder.exists():
            _unpack(package, folder)
        folders.append(folder)
    return _from_unpacked(folders, source, modules, vmlinux)


def _from_unpacked(folders: Sequence[Path], source: str, modules: Path | None, vmlinux: Path | None) -> KernelBuild:
    names = [(folder / "pdrgate.name").read_text().strip() for folder in folders]
    for folder in folders:
        os.utime(folder)
    for folder, name in zip(folders, names, strict=True):
        if any((folder / "boot").glob("vmlinuz-*")):
            own = modules
            if own is None:
                release, _ = read_version(next((folder / "boot").glob("vmlinuz-*")))
                # Ubuntu keeps the modules in a package of their own.
                own = next((other for other in folders if _modules_folder(other, release, required=False)), None)
            return _from_folder(folder, source, name, own, vmlinux)
    needed = _NEEDED.findall((folders[0] / "pdrgate.depends").read_text())
    hint = f"; it needs {', '.join(needed)}: name that" if needed else ""
    raise BuildError(f"{source}: is the package {names[0]}, which holds no kernel (no boot/vmlinuz-…){hint}")


def _unpack(package: Path, folder: Path) -> None:
    """Unpack a package into ``folder``, which appears only when it is complete."""
    if shutil.which("dpkg-deb") is None:
        raise BuildError(f"{package}: unpacking takes dpkg-deb; install dpkg, or name a bzImage and its modules")
    fields = _run(
        ("dpkg-deb", "--show", "--showformat", "${Package} ${Version}\n${Pre-Depends}, ${Depends}\n", str(package)),
        f"reading {package.name}",
    )
    name, _, depends = fields.partition("\n")
    with _temporary(folder.parent) as place:
        unpacked = place / "unpacked"
        _run(("dpkg-deb", "--extract", str(package), str(unpacked)), f"unpacking {package.name}")
        holds = [part for part in ("boot/vmlinuz-*", "lib/modules/*", "usr/lib/modules/*") if any(unpacked.glob(part))]
        if not holds and not _NEEDED.search(depends):
            raise BuildError(f"{package}: is the package {name}, which holds no kernel (no boot/vmlinuz-…)")
        (unpacked / "pdrgate.name").write_text(name + "\n")
        (unpacked / "pdrgate.depends").write_text(depends)
        with (folder.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                unpacked.rename(folder)
            _forget(folder.parent)


def _forget(cache: Path) -> None:
    """Remove the builds that were not used for longest; those of the last day may be in use just now."""
    builds = sorted(
        (path for path in cache.iterdir() if (path / "pdrgate.name").exists()), key=lambda path: path.stat().st_mtime
    )
    for path in builds[:-_KEPT]:
        if time.time() - path.stat().st_mtime > _DAY:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(dir=folder, prefix="part-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; make room there, or set XDG_CACHE_HOME"
        ) from error
    with place:
        yield Path(place.name)


def _run(command: Sequence[str], what: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=child_environment(*PROXIES)
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("W:")] or ["no reason told"]
        error = StorageError if "No space left" in done.stderr else BuildError
        raise error(f"{what} failed: `{shlex.join(command[:3])}`: {lines[-1].strip()}")
    return done.stdout


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except OSError as error:
        raise BuildError(f"{path}: cannot read it: {error.strerror}") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
