"""A build's kernel modules: found by name, with what they need, and read without help from the machine's own kernel.

Names and dependencies come from the modules themselves (their .modinfo section, Documentation of modinfo(8)), not from
modules.dep: packages make that file only when they are installed, and build trees have none. In a build tree
modules.order says which modules there are, and all of them must be there: others are leftovers. Where modules are
installed or packed it is a hint, for distributions spread what it lists over packages.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from pdrgate.builds.boot_image import built_into
from pdrgate.builds.decompression import MissingToolError, decompressed, most_unpacked
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.handed_over import BuildError, files_below, read_at_most, real_folder
from pdrgate.builds.kernel_build import KernelBuild

LARGEST_MODULE = 1 << 30
"""Bytes of a file; with its debug information the largest has some 500 MB."""
_LARGEST_UNPACKED = 192 << 20
"""Largest size in bytes of one module, and of all modules of a guest, whose memory has to hold them."""
_LARGEST_LIST = 16 << 20
_LARGEST_INFO = 4 << 20

OF_THE_NETWORK = re.compile(
    r"(^|/)(net|crypto|arch/\w+/crypto|lib/crypto|drivers/net/([^/]+\.ko|(vxlan|wireguard|bonding|team|ipvlan|geneve|ovpn)/))"
)
"""Folders of the modules that a path of packets may need; no guest needs those of network cards."""

_FILE = re.compile(r"(.+)\.ko(\.xz|\.zst|\.gz|\.bz2|\.lz4)?", re.DOTALL)
_PLACE = re.compile(r"[\w.+,@%=~-]+(/[\w.+,@%=~-]+)*", re.ASCII)
"""The path of a module, as kernels have them."""
_BUILT_IN = "modules.builtin"
_LISTS = ("modules.order", _BUILT_IN, "modules.builtin.modinfo")
_PACKAGES = "kernel-modules-core (Fedora) or linux-modules-RELEASE (Debian, Ubuntu)"
"""Packages in which distributions have the modules that a guest needs."""
_INSTALLED = ("kernel", "extra", "updates")
"""Folders of installed modules; of two with one name depmod takes the one from the last."""


@dataclass(frozen=True, slots=True)
class Module:
    """A kernel module, decompressed."""

    name: str
    content: bytes
    depends: tuple[str, ...]
    aliases: tuple[str, ...]


def select_modules(build: KernelBuild, required: Iterable[str], optional: Iterable[str] = ()) -> tuple[Module, ...]:
    """The modules of these names with all they depend on, each after those that it depends on.

    What is built into the kernel is no module and left out.

    Raises:
        BuildError: a required one is neither a module nor built in, a module belongs to another kernel, or modules
            depend on one another in a circle.
        MissingToolError: what unpacks a module is not installed.
    """
    if build.modules is None:
        _check_built_in(build, required)
        return ()
    paths = _paths(build)
    chosen: dict[str, Module] = {}
    for name in required:
        if name not in paths and not _is_built_in(build, name):
            raise BuildError(_lacks(build, name, any_there=bool(paths)))
        _take(build, name, paths, chosen)
    for name in optional:
        _take(build, name, paths, chosen)
    return tuple(chosen.values())


def module_places(build: KernelBuild) -> dict[str, str]:
    """Path of each module of a build below its folder of modules, by name."""
    if build.modules is None:
        return {}
    return {name: str(path.relative_to(build.modules)) for name, path in _paths(build).items()}


def module_content(build: KernelBuild, name: str) -> bytes:
    """A module of a build, decompressed.

    Raises:
        BuildError: there is none of that name, or it cannot be read.
        MissingToolError: what unpacks it is not installed.
    """
    place = _paths(build).get(name) if build.modules is not None else None
    if place is None:
        raise BuildError(f"{build.name} has no module {name}")
    return _load(build, name, place).content


def packed_module(build: KernelBuild, name: str) -> bytes:
    """A module of a build as its file has it. Raises BuildError where it cannot be read."""
    assert build.modules is not None
    path = _paths(build)[name]
    try:
        with build.open(path, LARGEST_MODULE) as file:
            return read_at_most(file, LARGEST_MODULE, path)
    except OSError as error:
        raise BuildError(f"{path}: cannot be read: {error.strerror}") from error


def module_files(build: KernelBuild) -> Iterator[tuple[str, Path]]:
    """All modules of a build and the lists that depmod needs, each with its path below ``lib/modules/RELEASE``."""
    if build.modules is None:
        return
    for name in _LISTS:
        if (build.modules / name).is_file():
            yield name, build.modules / name
    for path in _paths(build).values():
        inside = path.relative_to(build.modules)
        yield str(inside if inside.parts[0] in _INSTALLED else "kernel" / inside), path


def modules_asked_for(build: KernelBuild) -> int:
    """Number of parts of the kernel that its configuration wants as modules, as far as it is known."""
    return len(re.findall(r"^CONFIG_\w+=m$", build.config_text() or "", re.MULTILINE))


def in_tree(build: KernelBuild) -> bool:
    """Whether the modules are those of a build tree, which depmod and strip have not seen."""
    if build.modules is None:
        return False
    return build.image == build.modules / build.architecture.tree_image or (build.modules / "Makefile").exists()


def module_info(content: bytes) -> dict[str, list[str]]:
    """The .modinfo section of a module: values by key. Raises ValueError when it is no module."""
    elf = ElfFile(io.BytesIO(content))
    section = elf.section(".modinfo")
    if section is None:
        raise ValueError("it has no section .modinfo")
    info: dict[str, list[str]] = {}
    for entry in elf.content(section, _LARGEST_INFO).split(b"\0"):
        key, equals, value = entry.decode(errors="replace").partition("=")
        if equals:
            info.setdefault(key, []).append(value)
    return info


def _take(build: KernelBuild, wanted: str, paths: Mapping[str, Path], chosen: dict[str, Module]) -> None:
    """Add a module to the chosen ones, after all that it needs."""
    under_way: dict[str, tuple[Module, Iterator[str]]] = {}
    name: str | None = wanted
    while name is not None or under_way:
        if name is not None:
            if name in under_way:
                circle = [*list(under_way)[list(under_way).index(name) :], name]
                raise BuildError(f"{build.name}: its modules depend on one another in a circle: {' -> '.join(circle)}")
            if name not in chosen and name in paths:
                module = _load(build, name, paths[name])
                under_way[name] = (module, iter(module.depends))
        if not under_way:
            return
        last, (module, needs) = next(reversed(under_way.items()))
        name = next(needs, None)
        if name is None:
            chosen[last] = module
            del under_way[last]
            if sum(len(one.content) for one in chosen.values()) > _LARGEST_UNPACKED:
                raise BuildError(
                    f"{build.name}: the modules that a guest needs have more than {_LARGEST_UNPACKED >> 20} MiB; strip "
                    "them: make modules_install INSTALL_MOD_STRIP=1"
                )


def _lacks(build: KernelBuild, name: str, *, any_there: bool) -> str:
    """Advice on a missing module."""
    if any_there or in_tree(build):
        return (
            f"{build.name} has no {name}, neither as a module nor built in; build the kernel with "
            f"CONFIG_{name.upper()}, or name the package that has it, such as {_PACKAGES}"
        )
    return (
        f"{build.name} has none of its modules, and {name} is not built in; name the package with them too, such as "
        f"{_PACKAGES}, or unpack it into the same folder"
    )


def _check_built_in(build: KernelBuild, required: Iterable[str]) -> None:
    """Whether a kernel without modules can do without them, as far as its configuration or its image shows."""
    config = build.config_text()
    for name in required:
        if re.search(rf"^CONFIG_{name.upper()}=m$", config or "", re.MULTILINE):
            why = f"has {name} as a module"
        elif config is None and built_into(build.image, name) is False:
            why = f"has no {name} built in"
        else:
            continue
        raise BuildError(
            f"{build.name} {why}, and no modules were handed over; name them too, as "
            f"{build.source},modules=lib/modules/{build.release}, or the package that has them, such as {_PACKAGES}"
        )


def _paths(build: KernelBuild) -> Mapping[str, Path]:
    """The files of the modules, by name. Raises BuildError for one whose name no kernel would give it."""
    assert build.modules is not None
    folders = (build.modules, *(build.modules / name for name in ("modules.order", *_INSTALLED)))
    return _found(build, tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in folders))


@lru_cache(maxsize=4)  # each boot of a build wants them again, and to look through its folders takes 0.1 s
def _found(build: KernelBuild, changed: tuple[int, ...]) -> Mapping[str, Path]:
    return dict(_listed(build) if in_tree(build) else _installed(build))


def _listed(build: KernelBuild) -> Iterator[tuple[str, Path]]:
    assert build.modules is not None
    for number, line in enumerate(_lines(build, "modules.order"), 1):
        # net/x.ko before Linux 6.3, net/x.o since; kernel/net/x.ko where it was installed from such a tree.
        stem = re.sub(r"\.k?o(\.\w+)?$", "", line.strip())
        if not stem:
            continue
        if ".." in PurePosixPath(stem).parts or not _PLACE.fullmatch(stem):
            raise BuildError(
                f"{build.modules / 'modules.order'}, line {number}: lists {line.strip()!a}, which is no module below "
                "that folder; run make modules"
            )
        yield _name(stem), build.modules / f"{stem}.ko"


def _installed(build: KernelBuild) -> Iterator[tuple[str, Path]]:
    assert build.modules is not None
    root = build.folder or build.modules
    for top in (*_INSTALLED, ""):
        folder = build.modules / top
        # Without such folders, all modules lie in one.
        if not folder.is_dir() or (not top and any((build.modules / one).is_dir() for one in _INSTALLED)):
            continue
        for path in files_below(folder):
            match = _FILE.fullmatch(path.name)
            if top and path.is_dir():
                real_folder(path, root)  # one within the build is taken where it lies, if at all
            if match is None or path.is_dir():
                continue
            place = str(path.relative_to(root) if path.is_relative_to(root) else path.relative_to(build.modules))
            if not _PLACE.fullmatch(place):
                raise BuildError(f"{build.name}: holds a module {place!a}, as no kernel's is called; is it damaged?")
            yield _name(match[1]), path


def _is_built_in(build: KernelBuild, name: str) -> bool:
    """Whether a module is built in, by the list beside the modules, or by the image where there is no list."""
    assert build.modules is not None
    if (build.modules / _BUILT_IN).exists():
        lines = _lines(build, _BUILT_IN)
        return name in {_name(re.sub(r"\.k?o(\.\w+)?$", "", line.strip())) for line in lines}
    return bool(built_into(build.image, name))


def _lines(build: KernelBuild, name: str) -> list[str]:
    """The lines of one of the lists of modules; none if it is not there."""
    assert build.modules is not None
    path = build.modules / name
    if not path.exists():
        return []
    with build.open(path, _LARGEST_LIST) as file:
        return read_at_most(file, _LARGEST_LIST, path).decode(errors="replace").splitlines()


def _name(stem: str) -> str:
    return PurePosixPath(stem).name.replace("-", "_")


def _load(build: KernelBuild, name: str, path: Path) -> Module:
    if in_tree(build) and not path.exists():
        raise BuildError(f"{build.name}: {path} is listed in modules.order and not there; run make modules")
    try:
        content, info = _read(build, path, path.stat().st_mtime_ns)
    except MissingToolError as error:
        raise MissingToolError(f"{path}: {error}") from error
    except (OSError, ValueError) as error:
        raise BuildError(f"{path}: is no kernel module that can be read ({error}); is the file damaged?") from error
    magic = " ".join(info.get("vermagic", ())).partition(" ")[0]
    if magic and magic != build.release:
        raise BuildError(
            f"{path}: is a module of {magic}, and the image is {build.release}; name the modules of the image"
        )
    depends = [one.replace("-", "_") for one in ",".join(info.get("depends", ())).split(",") if one]
    return Module(name, content, tuple(depends), tuple(info.get("alias", ())))


@lru_cache(maxsize=64)  # each boot of a build wants them again, and to read them takes half a second
def _read(build: KernelBuild, path: Path, changed: int) -> tuple[bytes, Mapping[str, list[str]]]:
    with build.open(path, LARGEST_MODULE) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"".join(decompressed(file, min(most_unpacked(size), _LARGEST_UNPACKED)))
    return content, module_info(content)
