"""Names for the code and the variables of a guest that stays up, where modules and BPF programs come and go."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pdrgate.builds.elf_file import EXECUTABLE, ElfFile
from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.builds.kernel_modules import select_modules
from pdrgate.guests.metering.meter import NOWHERE, Executed
from pdrgate.guests.metering.symbols import (
    LARGEST_FUNCTION,
    KernelSymbol,
    KernelSymbols,
    kernel_symbols,
    symbols_behind,
)
from pdrgate.hosts.host import Host

_LABEL = re.compile(r"\.L|L0")
"""Labels of the assembler's own, which a kernel leaves out of /proc/kallsyms."""
_NAME = re.compile(r"\w+", re.ASCII)
_SECTION = re.compile(r"(\w+)/sections/([^/:]+):(0x[0-9a-f]+)", re.ASCII)
_SECTIONS = ("*text*", "data*", "bss*", "rodata*")
"""Names of sections, behind a dot, that have code or variables."""
_NO_SECTION = (".init", ".data..percpu")
"""Sections that lie elsewhere: what is of use at the start alone is thrown away then, and others come to lie there;
each CPU has its own of the other."""
_PROGRAMS = "bpf"
"""The module that /proc/kallsyms has BPF programs in."""


@dataclass(frozen=True, slots=True)
class _ModuleSection:
    """A section of a module, and which functions or variables begin at which of its bytes."""

    size: int
    is_code: bool
    names: tuple[tuple[str, int], ...]


class LoadedCode:
    """The names of a guest's code, read anew only as far as something else was executed.

    The files of modules and the addresses of their sections show where their functions and variables lie.
    /proc/kallsyms takes an emulated guest 0.25 s, whatever is looked for: it is read for BPF programs, and for modules
    that are none of the build's.

    Raises:
        TestbedError: the guest does not answer, or its kernel has no /proc/kallsyms.
        StorageError: the cache cannot be written.
    """

    def __init__(self, guest: Host, build: KernelBuild, cache: Path | None = None) -> None:
        self._guest = guest
        self._build = build
        self._kernel, base = kernel_symbols(guest, build.image, cache)
        self._own = base, self._kernel.end + int(LARGEST_FUNCTION)
        self._modules: frozenset[tuple[str, int]] = frozenset()
        """Names and addresses of those that are loaded."""
        self._are_the_builds = True
        """Whether files of all of them are known."""
        self._ranges = np.array([self._own], dtype=np.uint64)
        self._of_modules = self._symbols = self._kernel
        self._is_fresh = False
        self._look_at_modules()

    @property
    def loaded(self) -> KernelSymbols:
        """Symbols of the kernel and of the modules that are loaded."""
        return self._of_modules

    def begin(self) -> None:
        """BPF programs of before may be gone, and others lie there."""
        self._symbols = self._of_modules
        self._is_fresh = False

    def naming(self, executed: Executed) -> KernelSymbols:
        """Symbols that name what was executed. Raises TestbedError."""
        if not self._is_fresh and not self._has(executed):
            self._look_at_modules()
            if not self._has(executed):
                more = symbols_behind(self._guest, _PROGRAMS if self._are_the_builds else "")
                self._symbols = (self._of_modules if self._are_the_builds else self._kernel).with_more(more)
                self._is_fresh = True
        return self._symbols

    def _has(self, executed: Executed) -> bool:
        """Whether all of it is the kernel's or of a known module; what is counted without an address does no harm."""
        at = np.searchsorted(self._ranges[:, 0], executed.address, side="right") - 1
        inside = (at >= 0) & (executed.address < self._ranges[at, 1])
        return bool(np.all(inside | (executed.address <= NOWHERE)))

    def _look_at_modules(self) -> None:
        """See which ones are loaded, and where their code lies."""
        modules = self._guest.run("cat", "/proc/modules", check=False).stdout.splitlines()
        loaded = frozenset((words[0], int(words[5], 16)) for words in map(str.split, modules))
        if loaded == self._modules:
            return
        places = self._places([name for name, _ in loaded])
        ranges, symbols, variables = [self._own], list[KernelSymbol](), list[tuple[int, str]]()
        self._are_the_builds = set(places) == {name for name, _ in loaded}
        for name, sections in places.items():
            known = _sections_of(self._build, name)
            self._are_the_builds &= bool(known)
            for section, address in sections.items():
                if (own := known.get(section)) is None:
                    continue
                if own.is_code:
                    ranges.append((address, address + own.size))
                    symbols += [KernelSymbol(address + at, function) for function, at in own.names]
                else:
                    # What lies behind it, or in it before the first variable, is none of these.
                    variables += [(address, ""), (address + own.size, "")]
                    variables += [(address + at, variable) for variable, at in own.names]
        self._modules, self._ranges = loaded, np.array(sorted(ranges), dtype=np.uint64)
        self._of_modules = self._symbols = self._kernel.with_more(symbols).with_data(variables)

    def _places(self, modules: list[str]) -> Mapping[str, Mapping[str, int]]:
        """The address of each section of code or of variables, by module and by its name."""
        sound = (name for name in sorted(modules) if _NAME.fullmatch(name))
        files = " ".join(f"{name}/sections/.{section}" for name in sound for section in _SECTIONS)
        sections = self._guest.script(f"cd /sys/module && grep -H . {files} 2>/dev/null").stdout if files else ""
        found: dict[str, dict[str, int]] = {}
        for name, section, address in (
            match.groups() for match in map(_SECTION.fullmatch, sections.splitlines()) if match
        ):
            found.setdefault(name, {})[section] = int(address, 16)
        return found


@lru_cache(maxsize=256)
def _sections_of(build: KernelBuild, name: str) -> Mapping[str, _ModuleSection]:
    """The sections of a module by name; nothing if the build has no such module."""
    module = next((one for one in select_modules(build, (), (name,)) if one.name == name), None)
    return {} if module is None else dict(_sections_in(module.content))


def _sections_in(module: bytes) -> Iterator[tuple[str, _ModuleSection]]:
    elf = ElfFile(io.BytesIO(module))
    names: dict[tuple[int, bool], list[tuple[str, int]]] = {}
    for is_code, symbols in ((True, elf.code_symbols()), (False, elf.data_symbols())):
        for symbol in symbols:
            if not _LABEL.match(symbol.name):
                names.setdefault((symbol.section, is_code), []).append((symbol.name, symbol.value))
    for number, section in enumerate(elf.sections):
        if not section.name.startswith(_NO_SECTION):
            is_code = bool(section.flags & EXECUTABLE)
            own = tuple(names.get((number, is_code), ()))
            yield section.name, _ModuleSection(section.size, is_code, own)
