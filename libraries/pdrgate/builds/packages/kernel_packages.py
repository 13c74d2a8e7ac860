"""Packages of one kernel, put together: from files or from the distribution's archive.

A kernel may be spread over several packages: image, modules, what both share. Unpacked they are one folder. What one of
them lacks is looked for where it came from: beside the file, or in the archive.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.handed_over import BuildError, files_below, new_place, opened_build_file
from pdrgate.builds.packages.kernel_archives import is_package, package_fields
from pdrgate.builds.packages.package_fields import PackageFields, role_of
from pdrgate.builds.packages.unpacked_package import (
    FIELDS,
    LARGEST_PACKAGE,
    InArchive,
    UnpackedPackage,
    keep,
    temporary,
    unpacked,
    unpacked_file,
)
from pdrgate.values.errors import StorageError


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
    """Short form of the endings of their files' names."""


def holds_package(path: Path) -> bool:
    """Whether a file begins like a package. Raises BuildError when it cannot be read."""
    with opened_build_file(path, path.resolve(), LARGEST_PACKAGE) as file:
        return is_package(file.read(512))


def unpacked_packages(sources: Sequence[str], cache: Path) -> UnpackedPackages:
    """The packages, unpacked in the cache: files, or names of packages that apt downloads; with what they need.

    Raises:
        BuildError: one is no package, or of no kernel; or there is none of that name.
        StorageError: the cache cannot be written.
        MissingToolError: what unpacks one is not installed.
    """
    packages = [unpacked(source, cache) for source in sources]
    _complete(packages, cache)
    for package in packages:
        os.utime(package.folder)
    with_image = next((one for one in packages if "image" in one.roles), packages[0])
    lacking = _lacking(packages)
    if gone := [name for name, package in lacking if isinstance(package.origin, InArchive)]:
        raise BuildError(
            f"{sources[0]}: needs {', '.join(gone)}, which the archive has no more; name the .deb files of that "
            "kernel, from where they are kept: those that lie beside a named one are found"
        )
    return UnpackedPackages(
        _joined(packages, with_image, cache), with_image.fields.label, tuple(name for name, _ in lacking),
        "-….rpm" if sources[0].endswith(".rpm") else "_….deb",
    )  # fmt: skip


def packages_in(folder: Path, cache: Path) -> list[str]:
    """The packages of the one kernel that lie in a folder as .deb or .rpm files; none if there are no packages.

    Raises:
        BuildError: they are of several kernels, or lead out of the folder.
    """
    known: dict[Path, PackageFields] = {}
    for path in sorted((*folder.glob("*.deb"), *folder.glob("*.rpm"))):
        with opened_build_file(path, folder.resolve(), LARGEST_PACKAGE) as file:
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
        return bool(unpacked_file(path, path.parent.resolve(), cache).roles)
    except BuildError:
        return False


def _complete(packages: list[UnpackedPackage], cache: Path) -> None:
    """Add what the packages lack, as far as it is where they came from."""
    sought: set[str] = set()
    while further := [(name, one) for name, one in _lacking(packages) if name not in sought]:
        name, package = further[0]
        sought.add(name)
        if (found := package.origin.found(name, package.fields.version, cache)) is not None:
            packages.append(found)


def _lacking(packages: Sequence[UnpackedPackage]) -> list[tuple[str, UnpackedPackage]]:
    """The packages with other parts of the kernel that are not among these, each with one that needs it."""
    names = {package.fields.name for package in packages}
    # Another package may hold the same: linux-image-unsigned-R is an image, and that of Debian's 6.18 a whole kernel.
    held = {role for package in packages for role in package.roles}
    # A package of modules may depend on another one with more of them.
    whole = {role for package in packages if role_of(package.fields.name) != "modules" for role in package.roles}
    lacking: dict[str, UnpackedPackage] = {}
    for package in packages:
        for name in package.fields.parts:
            if name not in names and role_of(name) not in (whole if name in package.fields.needs else held):
                lacking.setdefault(name, package)
    return list(lacking.items())


def _joined(packages: Sequence[UnpackedPackage], with_image: UnpackedPackage, cache: Path) -> Path:
    """One folder with what all of them hold, by hard links."""
    if len(packages) == 1:
        return packages[0].folder
    digests = "\n".join(sorted({package.digest for package in packages}))
    folder = cache / hashlib.sha256(digests.encode()).hexdigest()
    if not folder.exists():
        with temporary(cache) as place:
            made = place / "unpacked"
            made.mkdir()
            for package in {package.digest: package for package in packages}.values():
                _link(package, made)
            (made / FIELDS).write_text((with_image.folder / FIELDS).read_text())
            keep(made, folder)
    os.utime(folder)
    return folder


def _link(package: UnpackedPackage, made: Path) -> None:
    for path in files_below(package.folder):
        name = str(path.relative_to(package.folder))
        if name == FIELDS:
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
