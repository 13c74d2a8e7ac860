"""A build's kernel modules: found by name, with what they need, and read without help from the machine's own kernel.

Names and dependencies come from the modules themselves (their .modinfo section, Documentation of modinfo(8)), not from
modules.dep: packages make that file only when they are installed, and build trees have none.
"""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pdrgate.builds.elf_file import elf_file
from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.child_environment import child_environment

_SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")


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
        BuildError: a required one is neither a module nor built in, or a module belongs to another kernel.
    """
    if build.modules is None:
        return ()
    paths = _module_paths(build.modules)
    built_in = _built_in(build.modules)
    chosen: dict[str, Module] = {}

    def take(name: str) -> None:
        if name in chosen or name not in paths:
            return
        module = _load(build, name, paths[name])
        for needed in module.depends:
            take(needed)
        chosen[name] = module

    for name in required:
        if name not in paths and name not in built_in:
            raise BuildError(
                f"{build.name} has no {name}, neither as a module nor built in; build the kernel with "
                f"CONFIG_{name.upper()}"
            )
        take(name)
    for name in optional:
        take(name)
    return tuple(chosen.values())


def module_files(build: KernelBuild) -> Iterator[tuple[str, Path]]:
    """All modules of a build and the lists that depmod needs, each with its path below ``lib/modules/RELEASE``."""
    if build.modules is None:
        return
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        if name == "modules.order" or (build.modules / name).is_file():
            yield name, build.modules / name
    for stem in _module_paths(build.modules).values():
        path = _module_file(stem) or stem.with_name(stem.name + ".ko")
        inside = path.relative_to(build.modules)
        yield str(inside if inside.parts[0] == "kernel" else "kernel" / inside), path


def module_info(content: bytes) -> dict[str, list[str]]:
    """The .modinfo section of a module: values by key. Raises ValueError when it is no module."""
    with elf_file(content) as elf:
        section = elf.get_section_by_name(".modinfo")
        if section is None:
            raise ValueError("it has no section .modinfo")
        told = section.data()
    info: dict[str, list[str]] = {}
    for entry in told.split(b"\0"):
        key, equals, value = entry.decode(errors="replace").partition("=")
        if equals:
            info.setdefault(key, []).append(value)
    return info


def _module_paths(folder: Path) -> Mapping[str, Path]:
    """By name, the files of the modules that modules.order lists."""
    return _listed(folder, (folder / "modules.order").stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _listed(folder: Path, changed: int) -> Mapping[str, Path]:
    found = {}
    for line in (folder / "modules.order").read_text().splitlines():
        # Installed: kernel/net/x.ko, compressed on disk or not. In a tree: net/x.ko before Linux 6.3, net/x.o since.
        stem = _stem(line)
        if stem:
            found[Path(stem).name.replace("-", "_")] = folder / stem
    return found


def _built_in(folder: Path) -> set[str]:
    try:
        lines = (folder / "modules.builtin").read_text().splitlines()
    except OSError:
        return set()
    return {Path(_stem(line)).name.replace("-", "_") for line in lines}


def _stem(line: str) -> str:
    return re.sub(r"\.k?o(\.\w+)?$", "", line.strip())


def _module_file(stem: Path) -> Path | None:
    """The file of a module, compressed or not; None when there is none."""
    return next((found for suffix in _SUFFIXES if (found := stem.with_name(stem.name + suffix)).is_file()), None)


def _load(build: KernelBuild, name: str, stem: Path) -> Module:
    path = _module_file(stem)
    if path is None:
        raise BuildError(f"{build.name}: {stem}.ko is listed in modules.order and not there; run make modules")
    try:
        content, info = _read(path, path.stat().st_mtime_ns)
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise BuildError(f"{path}: is no kernel module that can be read ({error}); is the file damaged?") from error
    magic = " ".join(info.get("vermagic", ())).partition(" ")[0]
    if magic and magic != build.release:
        raise BuildError(
            f"{path}: is a module of {magic}, and the image is {build.release}; name the modules of the image"
        )
    depends = [one.replace("-", "_") for one in ",".join(info.get("depends", ())).split(",") if one]
    return Module(name, content, tuple(depends), tuple(info.get("alias", ())))


@lru_cache(maxsize=64)  # each boot of a build wants them again, and to read them takes half a second
def _read(path: Path, changed: int) -> tuple[bytes, Mapping[str, list[str]]]:
    content = _decompressed(path)
    return content, module_info(content)


def _decompressed(path: Path) -> bytes:
    match path.suffix:
        case ".xz":
            return lzma.decompress(path.read_bytes())
        case ".gz":
            return gzip.decompress(path.read_bytes())
        case ".zst":
            done = subprocess.run(
                ("zstd", "-dcq", str(path)), capture_output=True, check=False, env=child_environment()
            )
            if done.returncode:
                raise ValueError(done.stderr.decode(errors="replace").strip() or "zstd failed")
            return done.stdout
    return path.read_bytes()
