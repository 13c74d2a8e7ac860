"""Kernel builds: what a kernel engineer hands over, found and checked, ready to be booted in a guest.

A build is a package or several, a folder of them, a bzImage, a kernel build tree, an unpacked package of any
distribution, or the name of a distribution package. What a build is, its image says: the release comes from the image
itself, and so does the configuration where no file has it. What is in it is a stranger's, and is opened as
`pdrgate.builds.handed_over` says.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from pdrgate.builds.architecture import ARCHITECTURES, X86_64, Architecture
from pdrgate.builds.bz_image import LARGEST_IMAGE
from pdrgate.builds.handed_over import BuildError as BuildError  # what kernel_build raises
from pdrgate.builds.handed_over import content, opened_build_file, real_file, real_folder
from pdrgate.builds.image_config import LARGEST_CONFIG, image_config
from pdrgate.builds.image_facts import image_facts
from pdrgate.builds.packages.apt_archive import named_package
from pdrgate.builds.packages.kernel_packages import UnpackedPackages, holds_package, packages_in, unpacked_packages
from pdrgate.builds.packages.package_fields import PackageRole, role_of
from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.printable import printable

_TREE_IMAGES = tuple(one.tree_image for one in ARCHITECTURES)
_IN_A_TREE = frozenset(Path(one).parts for one in _TREE_IMAGES)
LARGEST_SYMBOLS = 256 << 20
_LARGEST_VMLINUX = 8 << 30
_EXAMPLES = (
    "a .deb, a bzImage or Image, an .rpm, a kernel build tree or the name of a package such as linux-image-amd64 or "
    "SUITE/linux-image-amd64"
)


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """One kernel that can be booted. Its paths are real ones: no link leads to what they name."""

    name: str
    """The build for people and results: the package with its version, or the file."""
    source: str
    """Path, package or revision that names the build."""
    image: Path
    """A bzImage, or an Image of arm64."""
    release: str
    """The release, as ``uname -r`` will say it, read from the image."""
    version: str
    """The version, as ``uname -v`` will say it: build number and date."""
    modules: Path | None = None
    """The folder ``lib/modules/RELEASE``, or a build tree; None for a kernel with all it needs built in."""
    config: Path | None = None
    config_sha256: str | None = None
    vmlinux: Path | None = None
    """The image with symbols, for decoding addresses of a crash."""
    note: str = ""
    """Why it is another one than was asked for."""
    symbols: Path | None = None
    """System.map."""
    folder: Path | None = None
    """The folder that its modules may not leave; None: their own."""
    architecture: Architecture = X86_64
    page_size: int = 4096
    """Bytes of a page."""

    @property
    def label(self) -> str:
        """The build's name in results."""
        return f"{self.name} ({self.release})"

    def open(self, path: Path, largest: int) -> FileIO:
        """One of the build's files, unbuffered; the caller closes it.

        Raises:
            BuildError: it is not what it was when it was looked at: gone, a link out of the build, no regular file.
        """
        of_modules = self.modules is not None and path not in (self.image, self.config, self.symbols, self.vmlinux)
        return opened_build_file(path, (self.folder or self.modules or path) if of_modules else path, largest)

    def open_image(self) -> FileIO:
        """The image, as `open` does."""
        return self.open(self.image, LARGEST_IMAGE)

    def config_text(self) -> str | None:
        """The build's .config, where it has one. Raises BuildError as `open` does."""
        if self.config is None:
            return None
        return content(self.config, self.config, LARGEST_CONFIG).decode(errors="replace")


def kernel_build(
    source: str | Path, *, modules: Path | None = None, vmlinux: Path | None = None, cache: Path | None = None,
    further: Sequence[str | Path] = (),
) -> KernelBuild:  # fmt: skip
    """The build that ``source`` names.

    Args:
        source: path of a package, a bzImage, a kernel build tree or an unpacked package; else a package's name.
        modules: the modules of a bzImage or of a build tree: ``lib/modules/RELEASE``, or what ``make modules_install``
            was given as INSTALL_MOD_PATH.
        cache: where packages are unpacked; by default in `cache_folder`.
        further: more packages of the same kernel.

    Raises:
        BuildError: there is no such thing, no guest runs it, or image and modules are of different builds.
        StorageError: the cache cannot be written.
        MissingToolError: what unpacks it is not installed.
    """
    text = ",".join(map(str, (source, *further)))
    cache = cache or cache_folder() / "builds"
    for one in (source, *further, modules, vmlinux):
        if str(one) != str(one).encode(errors="replace").decode():
            raise BuildError(f"{one}: has a name that is not UTF-8, which no result could hold; rename it")
    packages = [str(one) for one in (source, *further)]
    if further or not Path(source).exists():
        for one in packages:
            _check_package(one)
    elif Path(source).is_dir():
        path = Path(source)
        if _images(path) or not (packages := packages_in(path, cache)):
            return _from_folder(path, text, path.resolve().name, modules, vmlinux, cache)
    elif not holds_package(Path(source)):
        return _from_image(Path(source), text, modules, vmlinux, cache)
    return _from_packages(packages, text, modules, vmlinux, cache)


def absolute(text: str) -> str:
    """Name of a build with its paths made absolute; the name of a package stays as it is."""

    def one(word: str) -> str:
        name, equals, path = word.rpartition("=")
        if equals and name in PARTS_OF_A_KERNEL:
            return f"{name}={Path(path).resolve()}"
        if word and Path(word).exists():
            return str(Path(word).resolve())
        file, colon, program = word.rpartition(":")  # of an eBPF object
        return f"{Path(file).resolve()}:{program}" if colon and Path(file).is_file() else word

    return ",".join(map(one, text.split(",")))


PARTS_OF_A_KERNEL = ("modules", "vmlinux", "config")
"""Parts that may follow an image or a revision, as NAME=PATH."""


def _from_image(
    image: Path, source: str, modules: Path | None, vmlinux: Path | None, cache: Path
) -> KernelBuild:  # fmt: skip
    release = image_facts(image).release
    found = None if modules is None else _modules_folder(modules, release)
    if modules is None and image.name == "vmlinuz" and _holds_modules(image.parent):
        modules = found = image.parent
    folder = image.parent.resolve()
    tree = image.resolve().parents[3] if image.resolve().parts[-4:] in _IN_A_TREE else folder
    return _build(
        _Found(
            image, image.resolve(), found,
            ((image.with_name(f"config-{release}"), folder), *_of_modules(found, modules, "config")),
            ((image.with_name(f"System.map-{release}"), folder), (tree / "System.map", tree),
             *_of_modules(found, modules, "System.map")),
        ),
        image.name, source, modules and modules.resolve(), vmlinux, cache,
    )  # fmt: skip


def _from_folder(
    folder: Path, source: str, name: str, modules: Path | None, vmlinux: Path | None, cache: Path
) -> KernelBuild:  # fmt: skip
    """A kernel build tree, or a folder with a kernel where packages have it: in boot, or beside its modules."""
    root = folder.resolve()
    image = _image_in(folder, source)
    facts = image_facts(real_file(image, root, LARGEST_IMAGE))
    release = facts.release
    if image == folder / facts.architecture.tree_image:
        found = _modules_folder(modules, release) if modules else root if _listed(root) else None
        own = folder / "vmlinux"
        return _build(
            _Found(image, root, found, ((folder / ".config", root),), ((folder / "System.map", root),)),
            name, source, modules.resolve() if modules else root,
            vmlinux or (real_file(own, root, _LARGEST_VMLINUX) if os.path.lexists(own) else None), cache,
        )  # fmt: skip
    found = _modules_folder(modules or folder, release, required=modules is not None)
    return _build(
        _Found(
            image, root, found,
            ((folder / f"boot/config-{release}", root), *_of_modules(found, modules or folder, "config")),
            ((folder / f"boot/System.map-{release}", root), *_of_modules(found, modules or folder, "System.map")),
        ),
        name, source, (modules or folder).resolve(), vmlinux, cache,
    )  # fmt: skip


def _images(folder: Path) -> list[Path]:
    """The images in a folder, one for each kernel."""
    if trees := [one for one in ARCHITECTURES if os.path.lexists(folder / one.tree_image)]:
        # A tree that was compiled for several has the configuration of the last.
        config = _config_of_tree(folder) if len(trees) > 1 else b""
        last = [one for one in trees if f"\nCONFIG_{one.name.upper()}=y\n".encode() in config]
        return [folder / one.tree_image for one in last or trees]
    beside = [path for top in ("", "usr/") for path in sorted(folder.glob(f"{top}lib/modules/*/vmlinuz"))]
    if os.path.lexists(folder / "vmlinuz") and _holds_modules(folder):
        beside.append(folder / "vmlinuz")
    images = {path.name.removeprefix("vmlinuz-"): path for path in sorted((folder / "boot").glob("vmlinuz-*"))}
    for path in beside:
        # A package that is installed has its image in both places, and one of them may be a link to the other.
        if not (known := images.get(path.parent.name)) or known.is_symlink():
            images[path.parent.name] = path
    return list(images.values())


def _config_of_tree(folder: Path) -> bytes:
    try:
        return b"\n" + content(folder / ".config", folder.resolve(), LARGEST_CONFIG)
    except BuildError:
        return b""


def _image_in(folder: Path, source: str) -> Path:
    images = _images(folder)
    if not images and (branch := branch_of(folder)):
        raise BuildError(
            f"{source}: is a git tree that is not built; name {str(folder).rstrip('/')}@{branch}, and it is compiled"
        )
    if not images:
        raise BuildError(
            f"{source}: holds neither {' nor '.join(_TREE_IMAGES)} nor boot/vmlinuz-… nor lib/modules/…/vmlinuz; has "
            "the kernel been built there, or are packages of it (.deb, .rpm) elsewhere?"
        )
    if len(images) > 1:
        raise BuildError(f"{source}: holds {len(images)} kernels; name one of {', '.join(map(str, images))}")
    return images[0]


def branch_of(folder: Path) -> str:
    """The branch that is checked out in a git tree; HEAD where its name is not plain, empty where it is no git tree."""
    git = folder / ".git"
    if not git.exists():
        return ""
    try:
        named = _BRANCH.fullmatch(read_no_follow(git / "HEAD", _LARGEST_HEAD).decode(errors="replace").strip())
    except OSError:  # of a worktree it is a file
        named = None
    return named[1] if named else "HEAD"


_BRANCH = re.compile(r"ref: refs/heads/([A-Za-z0-9][A-Za-z0-9._/-]*)", re.ASCII)
_LARGEST_HEAD = 4096
"""Bytes of the file that names the branch."""
_Place = tuple[Path, Path]
"""A file that a build may have, and the folder that it may not leave."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Paths of the parts of a build."""

    image: Path
    within: Path
    modules: Path | None
    configs: Sequence[_Place]
    symbols: Sequence[_Place]


def _build(
    found: _Found, name: str, source: str, folder: Path | None, vmlinux: Path | None, cache: Path
) -> KernelBuild:  # fmt: skip
    image = real_file(found.image, found.within, LARGEST_IMAGE)
    facts = image_facts(image)
    if vmlinux is not None and not vmlinux.exists():
        raise BuildError(f"{vmlinux}: there is no such file; name the vmlinux of {name} or leave it out")
    config = _first(found.configs, LARGEST_CONFIG) or image_config(image, cache / "configs")
    return KernelBuild(
        name=printable(name), source=source, image=image, release=facts.release, version=facts.version,
        modules=found.modules,
        config=config,
        config_sha256=None if config is None else hashlib.sha256(content(config, config, LARGEST_CONFIG)).hexdigest(),
        vmlinux=vmlinux and real_file(vmlinux, vmlinux.resolve(), _LARGEST_VMLINUX),
        symbols=_first(found.symbols, LARGEST_SYMBOLS), folder=folder if found.modules else None,
        architecture=facts.architecture, page_size=facts.page_size,
    )  # fmt: skip


def _first(places: Iterable[_Place], largest: int) -> Path | None:
    """The first of the files that is there; what is a link comes last, for it may lead to where the build was made.

    Raises:
        BuildError: it leaves the build, or is no file.
    """
    there = sorted((place for place in places if os.path.lexists(place[0])), key=lambda place: place[0].is_symlink())
    return next((real_file(path, within, largest) for path, within in there), None)


def _of_modules(found: Path | None, handed_over: Path | None, name: str) -> tuple[_Place, ...]:
    """Places of a file beside installed modules."""
    return () if found is None or handed_over is None else ((found / name, handed_over.resolve()),)


def _modules_folder(folder: Path, release: str, required: bool = True) -> Path | None:
    """The modules of that release at or below ``folder``."""
    root = folder.resolve()
    below = [folder / f"{top}{release}" for top in ("lib/modules/", "usr/lib/modules/", "modules/", "")]
    for candidate in (folder, *below):
        if _holds_modules(candidate):
            if candidate == folder and candidate.parent.name == "modules" and candidate.name != release:
                raise BuildError(f"{folder}: holds the modules of {candidate.name}, and the image is {release}")
            return real_folder(candidate, root)
    others = sorted(
        {path.name for top in ("", "usr/") for path in folder.glob(f"{top}lib/modules/*") if _holds_modules(path)}
    )
    if others:
        raise BuildError(f"{folder}: holds the modules of {', '.join(others)}, and the image is {release}")
    if required:
        raise BuildError(f"{folder}: holds no modules of {release} (no modules.order); name lib/modules/{release}")
    return None


def _listed(folder: Path) -> bool:
    return os.path.lexists(folder / "modules.order")


def _holds_modules(folder: Path) -> bool:
    """Whether it is a release's folder of installed modules, or a build tree with modules; sources have kernel/ too."""
    return _listed(folder) or ((folder / "kernel").is_dir() and not (folder / "Makefile").exists())


# --- Packages --------------------------------------------------------------------------------------------------------


def _check_package(source: str) -> None:
    path = Path(source)
    if path.is_file() and holds_package(path):
        return
    if path.exists():
        raise BuildError(f"{source}: is no package; of one kernel several packages can be named, or one of {_EXAMPLES}")
    if named_package(source) is None:
        raise BuildError(f"{source}: there is no such file; name {_EXAMPLES}")


def _from_packages(
    packages: Sequence[str], source: str, modules: Path | None, vmlinux: Path | None, cache: Path
) -> KernelBuild:  # fmt: skip
    unpacked = unpacked_packages(packages, cache)
    lacking = ", ".join(unpacked.lacking)
    if not _images(unpacked.folder):
        hint = f"; it needs {lacking}: name {'those' if len(unpacked.lacking) > 1 else 'that'}" if lacking else ""
        raise BuildError(f"{source}: is the package {unpacked.label}, which holds no kernel (no boot/vmlinuz-…){hint}")
    build = _from_folder(unpacked.folder, source, unpacked.label, modules, vmlinux, cache)
    if unpacked.lacking and modules is None:
        raise BuildError(f"{source}: holds the kernel {build.release} without {_what_to_add(source, unpacked)}")
    return build


def _what_to_add(source: str, unpacked: UnpackedPackages) -> str:
    names = sorted(unpacked.lacking, key=lambda name: role_of(name) != "modules")
    without = ", and ".join(f"{_HELD[role_of(name)]} in {name}" for name in names)
    if Path(source).is_dir():
        return f"{without}; put the package there too"
    files = ",".join((source, *(f"{name}{unpacked.ending}" for name in names)))
    return f"{without}; name {'both' if len(names) == 1 else 'all'}, as {files}"


_HELD: Mapping[PackageRole | None, str] = {
    "modules": "its modules, which are", "base": "its configuration and lists of modules, which are",
    "image": "its image, which is",
}  # fmt: skip
