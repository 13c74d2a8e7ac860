"""Packages of kernels, from files or from the distribution's archive, unpacked into the cache and never installed.

A kernel may be spread over several packages: image, modules, what both share. Unpacked they are one folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from pdrgate.builds.handed_over import BuildError, files_below, new_place, opened_build_file
from pdrgate.builds.kernel_archives import PackageFields, is_package, unpack_kernel
from pdrgate.child_environment import PROXIES, child_environment
from pdrgate.errors import StorageError

PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_LARGEST = 16 << 30
_KEPT = 16
"""Unpacked packages that stay in the cache, each of about 400 MB, though more were not used for a day."""
_DAY = 86_400.0
_FIELDS = "pdrgate.json"
"""Where an unpacked package's fields are."""
_IMAGES = ("boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz")
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


@dataclass(frozen=True, slots=True)
class _Package:
    digest: str
    folder: Path
    fields: PackageFields


def holds_package(path: Path) -> bool:
    """Whether a file begins like a package. Raises BuildError when it cannot be read."""
    with opened_build_file(path, path.resolve(), _LARGEST) as file:
        return is_package(file.read(512))


def unpacked_packages(sources: Sequence[str], cache: Path) -> UnpackedPackages:
    """The packages, unpacked in the cache: files, or names of packages that apt downloads with what they need.

    Raises:
        BuildError: one is no package, or of no kernel; or there is none of that name.
        StorageError: the cache cannot be written.
        MissingToolError: what unpacks one is not installed.
    """
    packages: list[_Package] = []
    for source in sources:
        if Path(source).is_file():
            packages.append(_from_file(Path(source), cache))
        else:
            packages += _from_archive(source, cache, {package.fields.name for package in packages})
    packages += _beside(packages, [Path(source) for source in sources if Path(source).is_file()], cache)
    names = {package.fields.name for package in packages}
    lacking = tuple(need for package in packages for need in package.fields.needs if need not in names)
    for package in packages:
        os.utime(package.folder)
    with_image = next((one for one in packages if _holds(one.folder, _IMAGES)), packages[0])
    return UnpackedPackages(_joined(packages, with_image, cache), with_image.fields.label, lacking)


def _from_file(path: Path, cache: Path) -> _Package:
    with opened_build_file(path, path.resolve(), _LARGEST) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        folder = cache / digest
        if not folder.exists():
            file.seek(0)
            _unpack(file, path, folder)
    return _known(digest, folder)


def _beside(packages: Sequence[_Package], files: Sequence[Path], cache: Path) -> list[_Package]:
    """What the packages of files need and lies beside them, of the same version, by its name in archives."""
    found: dict[str, _Package] = {package.fields.name: package for package in packages}
    for package, path in zip(packages, files, strict=False):
        version = package.fields.version.rpartition(":")[2]
        for need in package.fields.needs:
            candidates = list(path.absolute().parent.glob(f"{need}_{version}_*.deb"))
            if need not in found and len(candidates) == 1:
                found[need] = _from_file(candidates[0], cache)
    return list(found.values())[len(packages) :]


def _from_archive(package: str, cache: Path, told: set[str]) -> list[_Package]:
    found: list[_Package] = []
    wanted, told = [package], {package, *told}
    while wanted:
        name = wanted.pop(0)
        digest, filename = _archive_entry(name, cache)
        folder = cache / digest
        if not folder.exists():
            with _temporary(cache) as place:
                _run(("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name), f"downloading {name}", place)
                with opened_build_file(place / filename, place.resolve(), _LARGEST) as file:
                    _unpack(file, place / filename, folder)
        found.append(_known(digest, folder))
        for needed in found[-1].fields.needs:
            if needed not in told:
                told.add(needed)
                wanted.append(needed)
    return found


def _archive_entry(package: str, cache: Path) -> tuple[str, str]:
    """Content hash and file name of the package that apt would download."""
    if shutil.which("apt-get") is None:
        raise BuildError(
            f"{package}: there is no such file, and no apt-get here to download a package; name the files of one"
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
    return match[2], Path(match[1]).name


def _known(digest: str, folder: Path) -> _Package:
    told = json.loads((folder / _FIELDS).read_text())
    return _Package(digest, folder, PackageFields(told["name"], told["version"], tuple(told["needs"])))


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
        _forget(folder.parent)


def _forget(cache: Path) -> None:
    """Remove the packages that were not used for longest; those of the last day may be in use just now."""
    packages = sorted(
        (path for path in cache.iterdir() if any(path.glob("pdrgate.*"))), key=lambda path: path.stat().st_mtime
    )
    for path in packages[:-_KEPT]:
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


def _run(command: Sequence[str], what: str, folder: Path) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=child_environment(*PROXIES)
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("W:")] or ["no reason told"]
        error = StorageError if "No space left" in done.stderr else BuildError
        raise error(f"{what} failed: `{shlex.join(command[:3])}`: {lines[-1].strip()}")
