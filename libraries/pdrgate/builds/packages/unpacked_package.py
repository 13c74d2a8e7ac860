"""One package, unpacked into the cache from a file or from the distribution's archive, and never installed.

What it holds of a kernel is kept by its content, so that the same package is unpacked once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from pdrgate.builds.handed_over import BuildError, opened_build_file
from pdrgate.builds.packages.apt_archive import ArchivePackage, NamedPackage, named_package
from pdrgate.builds.packages.kernel_archives import unpack_kernel
from pdrgate.builds.packages.package_fields import PackageFields, PackageRole
from pdrgate.this_process.cache import alone, forget
from pdrgate.values.errors import StorageError

LARGEST_PACKAGE = 16 << 30
"""Bytes that the file of a package may have."""
_KEPT = 16
"""Unpacked packages that stay in the cache, each of about 400 MB, though more were not used for a day."""
FIELDS = "pdrgate.json"
"""Path of an unpacked package's fields."""
_IMAGES = ("boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz")
_PLACES: Mapping[PackageRole, Sequence[str]] = {
    "image": _IMAGES,
    "base": ("lib/modules/*/modules.builtin", "usr/lib/modules/*/modules.builtin"),
    "modules": ("lib/modules/*/kernel/*", "usr/lib/modules/*/kernel/*"),
}
"""Places of a kernel's parts in packages."""
_FILES = {".deb": "{}_{}_*.deb", ".rpm": "{}-{}.*.rpm"}
"""File names of a package in archives, by its name and version."""
_PARTS = (*_IMAGES, "lib/modules/*", "usr/lib/modules/*")


@dataclass(frozen=True, slots=True)
class UnpackedPackage:
    """One package in the cache."""

    digest: str
    """The SHA-256 of its file."""
    folder: Path
    """All that it holds of a kernel."""
    fields: PackageFields
    origin: _Beside | InArchive
    """The place that it came from."""

    @property
    def roles(self) -> frozenset[PackageRole]:
        """Parts of a kernel that the package holds."""
        return frozenset(role for role, patterns in _PLACES.items() if _holds(self.folder, patterns))


@dataclass(frozen=True, slots=True)
class _Beside:
    """The folder of a package that is a file."""

    folder: Path
    form: str
    """Pattern of the names of packages there, see `_FILES`."""

    def found(self, name: str, version: str, cache: Path) -> UnpackedPackage | None:
        """Another package of the same kernel, unpacked; None if it is not there."""
        pattern = self.form.format(name, version.rpartition(":")[2])
        candidates = list(self.folder.glob(pattern)) if version and pattern else []
        return unpacked_file(candidates[0], self.folder.resolve(), cache) if len(candidates) == 1 else None


@dataclass(frozen=True, slots=True)
class InArchive:
    """The distribution's archive, or one of its suites."""

    wanted: NamedPackage
    """Package that was named there."""

    def found(self, name: str, version: str, cache: Path) -> UnpackedPackage | None:
        """Another package of the same kernel, unpacked; None if the archive does not have it."""
        entry = self.wanted.archive(cache).find(name)
        return None if entry is None else self.downloaded(name, entry, cache)

    def downloaded(self, name: str, entry: ArchivePackage, cache: Path) -> UnpackedPackage:
        """A package of the archive, from the cache or put there."""
        folder = cache / entry.digest
        if not folder.exists():
            with temporary(cache) as place:
                self.wanted.archive(cache).download(name, place)
                with opened_build_file(place / entry.filename, place.resolve(), LARGEST_PACKAGE) as file:
                    _unpack(file, place / entry.filename, folder)
        return _known(entry.digest, folder, self)


def unpacked(source: str, cache: Path) -> UnpackedPackage:
    """The package that a person names: a file, or a package that apt downloads.

    Raises:
        BuildError: it is no package, or there is none of that name.
        StorageError: the cache cannot be written.
        MissingToolError: what unpacks it is not installed.
    """
    named = named_package(source)
    if named is None:
        return unpacked_file(Path(source), Path(source).resolve(), cache)
    return InArchive(named).downloaded(named.name, named.archive(cache).entry(named.name), cache)


def unpacked_file(path: Path, within: Path, cache: Path) -> UnpackedPackage:
    """The package in a file, which must lie within a folder or be that file. Raises as `unpacked` does."""
    with opened_build_file(path, within, LARGEST_PACKAGE) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        folder = cache / digest
        if not folder.exists():
            file.seek(0)
            _unpack(file, path, folder)
    return _known(digest, folder, _Beside(path.absolute().parent, _FILES.get(path.suffix, "")))


def _known(digest: str, folder: Path, origin: _Beside | InArchive) -> UnpackedPackage:
    fields = json.loads((folder / FIELDS).read_text())
    return UnpackedPackage(
        digest, folder, PackageFields(fields["name"], fields["version"], tuple(fields["needs"])), origin
    )


def _unpack(package: FileIO, path: Path, folder: Path) -> None:
    """Unpack a package into ``folder``, which appears only when it is complete."""
    with temporary(folder.parent) as place:
        made = place / "unpacked"
        fields = unpack_kernel(package, path, made)
        if not fields.needs and not _holds(made, _PARTS):
            raise BuildError(f"{path}: is the package {fields.label}, which holds no kernel (no boot/vmlinuz-…)")
        (made / FIELDS).write_text(json.dumps(dataclasses.asdict(fields)))
        keep(made, folder)


def _holds(folder: Path, patterns: Sequence[str]) -> bool:
    return any(any(folder.glob(pattern)) for pattern in patterns)


def keep(made: Path, folder: Path) -> None:
    """Move what was made into the cache, unless another process did, and drop from there what is long unused."""
    with alone(folder.parent):
        if not folder.exists():
            made.rename(folder)
        forget((path for path in folder.parent.iterdir() if any(path.glob("pdrgate.*"))), _KEPT)


@contextlib.contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """A folder in the cache for as long as something is made there. Raises StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = tempfile.TemporaryDirectory(dir=folder, prefix="part-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; make room there, or set XDG_CACHE_HOME"
        ) from error
    with place:
        yield Path(place.name)
