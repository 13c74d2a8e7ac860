"""Kernel builds that others put somewhere: into a folder, or into the distribution's archive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pdrgate.builds.git_tree.revision import commits_between, named_revision
from pdrgate.builds.kernel_build import BuildError, KernelBuild, kernel_build
from pdrgate.builds.named_build import pinned
from pdrgate.builds.packages.apt_archive import NamedPackage, named_pattern
from pdrgate.builds.packages.package_fields import role_of
from pdrgate.this_process.cache import cache_folder

_PATTERN = re.compile(r"[*?[]")
"""Characters that make a name a pattern."""


def builds_at(place: str, cache: Path | None = None) -> list[KernelBuild]:
    """The builds at a place, as their names are counted: 6.9 before 6.10.

    What lies in a folder and is no kernel is passed over, a package that is still being copied too.

    Args:
        place: a folder of packages, images or build trees; a build itself; or packages of the distribution, by a
            pattern as a shell has them, such as ``linux-image-6.1.*-amd64``, of another suite
            ``SUITE/linux-image-6.1.*-amd64``.

    Raises:
        BuildError: there is nothing of the kind.
        StorageError: the cache cannot be written.
    """
    path = Path(place)
    if (pattern := named_pattern(place)) is not None:
        known = cache or cache_folder() / "builds"
        return [kernel_build(name, cache=cache) for name in _packages(pattern, known)]
    if not path.is_dir():
        return [kernel_build(place, cache=cache)]
    try:
        return [kernel_build(place, cache=cache)]
    except BuildError:
        return _once(build for child in sorted(path.iterdir(), key=_counted) if (build := _build(child, cache)))


def _once(builds: Iterable[KernelBuild]) -> list[KernelBuild]:
    """Each kernel once.

    Each of a kernel's packages leads to the whole kernel, and the image's package names it best.
    """
    found: dict[tuple[str, str, str], KernelBuild] = {}
    for build in builds:
        key = (build.name, build.release, build.version)
        if key not in found or role_of(Path(build.source).name.partition("_")[0]) == "image":
            found[key] = build
    return sorted(found.values(), key=lambda build: _counted(Path(build.source)))


def commits_named(texts: Sequence[str]) -> tuple[str, ...]:
    """Names of single builds: ``TREE@A..B`` becomes each commit from A to B, and a revision its present commit.

    Raises:
        BuildError: a tree knows no such commits.
    """
    found: list[str] = []
    for text in texts:
        source, comma, rest = text.partition(",")
        if named_revision(source) is not None and ".." in source:
            found += (f"{one.text}{comma}{rest}" for one in commits_between(source))
        else:
            found.append(pinned(text))
    return tuple(found)


def _build(path: Path, cache: Path | None) -> KernelBuild | None:
    try:
        return kernel_build(path, cache=cache)
    except BuildError:
        return None


def _packages(pattern: NamedPackage, cache: Path) -> list[str]:
    """Packages of the archive that a pattern names."""
    names = pattern.archive(cache).names(_PATTERN.split(pattern.name)[0])
    found = sorted((Path(name) for name in names if fnmatchcase(name, pattern.name)), key=_counted)
    if not found:
        raise BuildError(f"{pattern}: apt knows no such package; run apt-get update, or name another")
    return [str(replace(pattern, name=path.name)) for path in found]


def _counted(path: Path) -> list[tuple[int, str]]:
    """The file's name as a key to sort by: numbers count as such."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", path.name)]
