"""Packages of kernels, from files or from the distribution's archive, unpacked into the cache and never installed.

A kernel may be spread over several packages: image, modules, what both share. Unpacked they are one folder. What one of
them lacks is looked for where it came from: beside the file, or in the archive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Protocol

from pdrgate.builds.apt_archive import AptArchive, ArchivePackage, NamedPackage, named_package
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.handed_over import BuildError, files_below, new_place, opened_build_file
from pdrgate.builds.kernel_archives import is_package, package_fields, unpack_kernel
from pdrgate.builds.package_fields import PackageFields, PackageRole, role_of
from pdrgate.cache import forget
from pdrgate.errors import StorageError

_LARGEST = 16 << 30
_KEPT = 16
"""Unpacked packages that stay in the cache, each of about 400 MB, though more were not used for a day."""
_FIELDS = "pdrgate.json"
"""Where an unpacked package's fields are."""
_IMAGES = ("boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz")
_PLACES: Mapping[PackageRole, Sequence[str]] = {
    "image": _IMAGES,
    "base": ("lib/modules/*/modules.builtin", "usr/lib/modules/*/modules.builtin"),
    "modules": ("lib/modules/*/kernel/*", "usr/lib/modules/*/kernel/*"),
}
"""Where packages have the parts of a kernel."""
_FILES = {".deb": "{}_{}_*.deb", ".rpm": "{}-{}.*.rpm"}
"""What archives call the file of a package, by its name and version."""
_PARTS = (*_IMAGES, "lib/modules/*", "usr/lib/modules/*")


@dataclass(frozen=True, slots=True)
class UnpackedPackages:
    """Packages of one kernel."""

    folder: Path
    """All that they hold of it."""
    label: str
    """The package with the image, and its version."""
    lacking: tuple[str, ...]
    """Packages with parts of the kernel that they need, and that are not among them."""
    ending: str
    """How the names of their files go on, in short."""


class _Origin(Protocol):
    """Where a package came from."""

    def found(self, name: str, version: str, cache: Path) -> _Package | None:
        """Another package of the same kernel, unpacked; None where it is not there."""


@dataclass(frozen=True, slots=True)
class _Package:
    digest: str
    folder: Path
    fields: PackageFields
    origin: _Origin

    @property
    def holds_image(self) -> bool:
        return _holds(self.folder, _IMAGES)

    @property
    def holds(self) -> Iterator[PackageRole]:
        """What it holds of the kernel."""
        for role, patterns in _PLACES.items():
            if _holds(self.folder, patterns):
                yield role


@dataclass(frozen=True, slots=True)
class _Beside:
    """The folder of a package that is a file."""

    folder: Path
    form: str
    """What files of packages are called there, see `_FILES`."""

    def found(self, name: str, version: str, cache: Path) -> _Package | None:
        pattern = self.form.format(name, version.rpartition(":")[2])
        candidates = list(self.folder.glob(pattern)) if version and pattern else []
        return _from_file(candidates[0], self.folder.resolve(), cache) if len(candidates) == 1 else None


@dataclass(frozen=True, slots=True)
class _InArchive:
    """The distribution's archive, or one of its suites."""

    wanted: NamedPackage
    """What was named there."""

    def found(self, name: str, version: str, cache: Path) -> _Package | None:
        entry = AptArchive(self.wanted.suite, cache).find(name)
        return None if entry is None else self.downloaded(name, entry, cache)

    def downloaded(self, name: str, entry: ArchivePackage, cache: Path) -> _Package:
        """A package of the archive, from the cache or put there."""
        folder = cache / entry.digest
        if not folder.exists():
            with _temporary(cache) as place:
                AptArchive(self.wanted.suite, cache).download(name, place)
                with opened_build_file(place / entry.filename, place.resolve(), _LARGEST) as file:
                    _unpack(file, place / entry.filename, folder)
        return _known(entry.digest, folder, self)


def holds_package(path: Path) -> bool:
    """Whether a file begins like a package. Raises BuildError when it cannot be read."""
    with opened_build_file(path, path.resolve(), _LARGEST) as file:
        return is_package(file.read(512))


def unpacked_packages(sources: Sequence[str], cache: Path) -> UnpackedPackages:
    """The packages, unpacked in the cache: files, or names of packages that apt downloads; with what they need.

    Raises:
        BuildError: one is no package, or of no kernel; or there is none of that name.
        StorageError: the cache cannot be written.
        MissingToolError: what unpacks one is not installed.
    """
    packages = [_named(source, cache) for source in sources]
    _complete(packages, cache)
    for package in packages:
        os.utime(package.folder)
    with_image = next((one for one in packages if one.holds_image), packages[0])
    lacking = _lacking(packages)
    if gone := [name for name, package in lacking if isinstance(package.origin, _InArchive)]:
        raise BuildError(
            f"{sources[0]}: needs {', '.join(gone)}, which the archive has no more; name the .deb files of that "
            "kernel, from where they are kept: those that lie beside a named one are found"
        )
    return UnpackedPackages(
        _joined(packages, with_image, cache), with_image.fields.label, tuple(name for name, _ in lacking),
        "-….rpm" if sources[0].endswith(".rpm") else "_….deb",
    )  # fmt: skip


def packages_in(folder: Path, cache: Path) -> list[str]:
    """The packages of the one kernel that lie in a folder as .deb or .rpm files; none where there are no packages.

    Raises:
        BuildError: they are of several kernels, or lead out of the folder.
    """
    known: dict[Path, PackageFields] = {}
    for path in sorted((*folder.glob("*.deb"), *folder.glob("*.rpm"))):
        with opened_build_file(path, folder.resolve(), _LARGEST) as file:
            try:
                fields = package_fields(file)
            except ValueError:
                continue  # it may still be being copied
            except MissingToolError as error:
                raise MissingToolError(f"{path}: {error}") from error
        if fields is not None:
            known[path] = fields
    parts = [path for path, fields in known.items() if fields.is_part] or [
        path for path in known if _holds_some(path, cache)
    ]
    kernels = {f"{known[path].kernel} {known[path].version}" for path in parts}
    if len(kernels) > 1:
        raise BuildError(
            f"{folder}: holds the packages of {len(kernels)} kernels; name one with an image: those that lie beside it "
            "are found"
        )
    return [str(path) for path in parts]


def _holds_some(path: Path, cache: Path) -> bool:
    """Whether a package whose name says nothing holds parts of a kernel."""
    try:
        return _holds(_from_file(path, path.parent.resolve(), cache).folder, _PARTS)
    except BuildError:
        return False


def _named(source: str, cache: Path) -> _Package:
    named = named_package(source)
    if named is None:
        return _from_file(Path(source), Path(source).resolve(), cache)
    return _InArchive(named).downloaded(named.name, AptArchive(named.suite, cache).entry(named.name), cache)


def _complete(packages: list[_Package], cache: Path) -> None:
    """Add what the packages lack, as far as it is where they came from."""
    sought: set[str] = set()
    while further := [(name, one) for name, one in _lacking(packages) if name not in sought]:
        name, package = further[0]
        sought.add(name)
        if (found := package.origin.found(name, package.fields.version, cache)) is not None:
            packages.append(found)


def _lacking(packages: Sequence[_Package]) -> list[tuple[str, _Package]]:
    """The packages with other parts of the kernel that are not among these, each with one that needs it."""
    names = {package.fields.name for package in packages}
    # Another package may hold the same: linux-image-unsigned-R is an image, and that of Debian's 6.18 a whole kernel.
    held = {role for package in packages for role in package.holds}
    # A package of modules may depend on another one with more of them.
    whole = {role for package in packages if role_of(package.fields.name) != "modules" for role in package.holds}
    lacking: dict[str, _Package] = {}
    for package in packages:
        for name in package.fields.parts:
            if name not in names and role_of(name) not in (whole if name in package.fields.needs else held):
                lacking.setdefault(name, package)
    return list(lacking.items())


def _from_file(path: Path, within: Path, cache: Path) -> _Package:
    with opened_build_file(path, within, _LARGEST) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        folder = cache / digest
        if not folder.exists():
            file.seek(0)
            _unpack(file, path, folder)
    return _known(
        digest, folder, _Beside(path.absolute().parent, "{}-{}.*.rpm" if path.suffix == ".rpm" else "{}_{}_*.deb")
    )


def _known(digest: str, folder: Path, origin: _Origin) -> _Package:
    told = json.loads((folder / _FIELDS).read_text())
    return _Package(digest, folder, PackageFields(told["name"], told["version"], tuple(told["needs"])), origin)


def _unpack(package: FileIO, path: Path, folder: Path) -> None:
    """Unpack a package into ``folder``, which appears only when it is complete."""
    with _temporary(folder.parent) as place:
        made = place / "unpacked"
        fields = unpack_kernel(package, path, made)
        if not fields.needs and not _holds(made, _PARTS):
            raise BuildError(f"{path}: is the package {fields.label}, which holds no kernel (no boot/vmlinuz-…)")
        (made / _FIELDS).write_text(json.dumps(dataclasses.asdict(fields)))
        _keep(made, folder)


def _joined(packages: Sequence[_Package], with_image: _Package, cache: Path) -> Path:
    """One folder with what all of them hold, by hard links."""
    if len(packages) == 1:
        return packages[0].folder
    told = "\n".join(sorted({package.digest for package in packages}))
    folder = cache / hashlib.sha256(told.encode()).hexdigest()
    if not folder.exists():
        with _temporary(cache) as place:
            made = place / "unpacked"
            made.mkdir()
            for package in {package.digest: package for package in packages}.values():
                _link(package, made)
            (made / _FIELDS).write_text((with_image.folder / _FIELDS).read_text())
            _keep(made, folder)
    os.utime(folder)
    return folder


def _link(package: _Package, made: Path) -> None:
    for path in files_below(package.folder):
        name = str(path.relative_to(package.folder))
        if name == _FIELDS:
            continue
        try:
            os.link(path, new_place(made, name), follow_symlinks=False)
        except ValueError as error:
            raise BuildError(
                f"{package.fields.label}: cannot be put together with the other packages: {error}; name those of one "
                "kernel"
            ) from error
        except OSError as error:
            raise StorageError(f"cannot write {made / name}: {error.strerror}; make room there") from error


def _holds(folder: Path, patterns: Sequence[str]) -> bool:
    return any(any(folder.glob(pattern)) for pattern in patterns)


def _keep(made: Path, folder: Path) -> None:
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made.rename(folder)
        forget((path for path in folder.parent.iterdir() if any(path.glob("pdrgate.*"))), _KEPT)


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
