"""The build that a person names in a word or two: with parts, as a package, or as the kernel that runs here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from pdrgate.builds.architecture import ARCHITECTURES, Architecture, named_architecture, this_machines
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.git_tree.making import Report
from pdrgate.builds.git_tree.revision import Revision, merge_base, named_revision, revision
from pdrgate.builds.git_tree.tree_build import built
from pdrgate.builds.kernel_build import PARTS_OF_A_KERNEL, BuildError, KernelBuild, kernel_build
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.builds.packages.apt_archive import named_package
from pdrgate.values.errors import StorageError

RUNNING = "running"
"""Names the running kernel's build."""

GUEST_MODULES = ("virtio_pci", "virtio_console", "virtio_net")
"""A guest needs these modules: there is neither a way into it nor a way through it without them."""

_DISTRIBUTION = {"ubuntu": "linux-image-virtual"}
"""Small kernels for guests, of other distributions than Debian: a tenth of the download of the full ones."""


def named_build(text: str, cache: Path | None = None, report: Report | None = None) -> KernelBuild:
    """The build that a person names.

    The name is ``SOURCE[,PACKAGE…][,modules=FOLDER][,vmlinux=FILE]``, see `kernel_build`;
    ``TREE@REV[,config=FILE]``, which is compiled if that was not done yet; or ``running``. ``,arch=NAME`` says for
    which architecture it is compiled, or that it is for no other one.

    Args:
        report: gets sentences of how far a build is that is compiled.

    Raises:
        BuildError: as `kernel_build`, what follows a comma is neither, or a revision does not compile.
    """
    if text == RUNNING:
        return running_kernel(cache)
    named = _words(text)
    parts = named.parts
    if named_revision(named.source) is not None:
        return _compiled(text, revision(named.source), named, cache, report)
    if "config" in parts:
        raise BuildError(f"{text}: is built already; config=FILE goes with a revision of a tree, as in ~/linux@main")
    found = kernel_build(
        named.source, modules=parts.get("modules"), vmlinux=parts.get("vmlinux"), cache=cache, further=named.further
    )
    if named.architecture not in (None, found.architecture):
        raise BuildError(f"{text}: is built already, for {found.architecture.name}; leave arch= out, or name another")
    return found


def _compiled(
    text: str, named: Revision, words: _Words, cache: Path | None, report: Report | None
) -> KernelBuild:  # fmt: skip
    if words.parts.keys() - {"config"}:
        raise BuildError(f"{text}: is compiled from its tree; of parts it takes config=FILE and arch=NAME only")
    folder = built(named, words.parts.get("config"), cache, report, words.architecture)
    found = kernel_build(folder, modules=None, vmlinux=folder / "vmlinux", cache=cache)
    return replace(found, name=named.name, source=text)


def pinned(text: str) -> str:
    """Name of a build with a revision's present commit: a branch goes on while a run is under way.

    Raises:
        BuildError: the tree knows no such revision.
    """
    source, comma, rest = text.partition(",")
    return text if named_revision(source) is None else f"{revision(source).text}{comma}{rest}"


def came_from(text: str) -> str | None:
    """The build to compare a revision with if nobody names one: the commit at which its branch began, with the same
    .config; None for what is no revision.

    Raises:
        BuildError: the tree does not show it.
    """
    source, comma, rest = text.partition(",")
    return None if named_revision(source) is None else f"{merge_base(revision(source)).text}{comma}{rest}"


def look_at(text: str, report: Report | None = None) -> KernelBuild | None:
    """Raise BuildError where a file that is named is not there, or is no build; a package may still have to come.

    A .deb is unpacked into the cache, and a revision of a tree is compiled; `named_build` takes them from there.

    Returns:
        The build; None if that is not known yet.
    """
    if text == RUNNING:
        return None
    named = _words(text)
    for name, path in named.parts.items():
        if not path.exists():
            raise BuildError(f"{text}: {path}, its {name}, is not there")
    if named_revision(named.source) or named_package(named.source) is None:
        return named_build(text, report=report)
    return None


def check_one_architecture(builds: Iterable[KernelBuild]) -> None:
    """Raise BuildError where builds that are compared are for different architectures."""
    for first, other in pairwise(builds):
        if other.architecture != first.architecture:
            raise BuildError(
                f"{first.name} is a kernel for {first.architecture.name}, and {other.name} one for "
                f"{other.architecture.name}; name two of one architecture"
            )


ARCHITECTURE_PLACE = "{arch}"
"""What stands for Debian's name of an architecture in the name of a build."""


def for_architecture(text: str, architecture: Architecture, *, alone: bool) -> str:
    """The name of a build for an architecture.

    A revision of a git tree is compiled for it. Any other name has `ARCHITECTURE_PLACE` where the builds differ.

    Args:
        alone: whether no other architecture is asked for. A build that is there is then one for this architecture.

    Raises:
        BuildError: it names the same build for each architecture.
    """
    source, comma, rest = text.partition(",")
    if ARCHITECTURE_PLACE not in text and text != RUNNING and (alone or named_revision(source) is not None):
        return f"{source},arch={architecture.debian}{comma}{rest}"
    if ARCHITECTURE_PLACE not in text:
        raise BuildError(
            f"{text}: is one build for each architecture; name a revision of a git tree, or write {ARCHITECTURE_PLACE} "
            f"where the names differ, as in linux-image-cloud-{ARCHITECTURE_PLACE}"
        )
    return text.replace(ARCHITECTURE_PLACE, architecture.debian)


def known_architecture(name: str) -> Architecture:
    """The architecture of a name such as arm64 or aarch64. Raises BuildError of any other."""
    found = named_architecture(name)
    if found is None:
        known = ", ".join(one.debian for one in ARCHITECTURES)
        raise BuildError(f"{name!r} is no architecture of guests; name one of {known}")
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """What a name of a build consists of."""

    source: str
    further: list[str] = field(default_factory=list)
    """Further packages."""
    parts: dict[str, Path] = field(default_factory=dict)
    architecture: Architecture | None = None


def _words(text: str) -> _Words:
    """The parts of a build's name. Raises BuildError."""
    source, *words = text.split(",")
    parts: dict[str, Path] = {}
    further: list[str] = []
    architecture = None
    for word in words:
        name, _, path = word.partition("=")
        if name in PARTS_OF_A_KERNEL and path:
            parts[name] = Path(path)
        elif name == "arch" and path:
            architecture = known_architecture(path)
        elif Path(word).is_file() or word.endswith((".deb", ".rpm")) or _names_kernel_package(word):
            further.append(word)
        else:
            raise BuildError(
                f"{text}: {word!r} says nothing of a build; write such as vmlinuz,modules=lib/modules/6.1.0,"
                "vmlinux=/path/to/vmlinux, or several packages of one kernel: image.deb,modules.deb"
            )
    return _Words(source, further, parts, architecture)


def _names_kernel_package(word: str) -> bool:
    named = named_package(word)
    return named is not None and named.name.startswith("linux-")


def running_kernel(cache: Path | None = None, root: Path = Path("/")) -> KernelBuild:
    """The running kernel's build where its image lies on this machine and can be booted in a guest.

    Else the distribution's kernel for guests, whose ``note`` says why.

    Raises:
        BuildError: neither can be had.
        StorageError: the cache cannot be written.
    """
    release = os.uname().release
    try:
        found = _installed(release, root)
        select_modules(found, GUEST_MODULES)
    except (BuildError, MissingToolError) as error:
        why = f"the running kernel {release} cannot be booted in a guest: {error}"
    else:
        return found
    try:
        return replace(kernel_build(_package(root), cache=cache), note=why)
    except (BuildError, StorageError) as error:
        raise type(error)(f"{why}; and {error}") from error


def _installed(release: str, root: Path) -> KernelBuild:
    modules = root / "lib/modules" / release
    images = (root / f"boot/vmlinuz-{release}", modules / "vmlinuz")
    for image in images:
        if os.access(image, os.R_OK):
            known = (modules / "modules.order").exists()
            return replace(
                kernel_build(image, modules=modules if known else None), name=f"the running kernel {release}"
            )
    raise BuildError(f"its image is not here ({images[0]})")


def _package(root: Path) -> str:
    try:
        release = platform.freedesktop_os_release() if root == Path("/") else {}
    except OSError:
        release = {}
    return _DISTRIBUTION.get(release.get("ID", ""), this_machines().kernel_package)
