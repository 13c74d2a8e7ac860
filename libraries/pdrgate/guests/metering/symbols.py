"""Names for a kernel's addresses: its own functions by its image, its modules' and BPF programs' by /proc/kallsyms.

Symbols that a kernel shows itself name its own run, and are not kept for another one. A symbol has no length: an
address belongs to the last symbol at or before it. Several symbols that the compiler made of one function
(``f.isra.0``, ``f.part.0``, ``f.cold``) are one function here, and so are functions of one name in several files: a
comparison of two builds distinguishes names only.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import numpy.typing as npt

from pdrgate.builds.boot_image import linked_image
from pdrgate.builds.image_symbols import CODE_TYPES, TypedSymbol, image_symbols, typed_symbols
from pdrgate.guests.metering.meter import Executed
from pdrgate.guests.metering.static_data import DATA, FOUND_BY_NAME, StaticData
from pdrgate.hosts.host import Host
from pdrgate.observers.function_names import PROGRAM, UNNAMED, function_name
from pdrgate.record.stretch import USER_SPACE
from pdrgate.this_process.cache import appearing, cache_folder
from pdrgate.values.errors import StorageError, TestbedError
from pdrgate.values.printable import printable_name

CODE_BEGIN = "_text"
"""Symbol at the begin of the kernel's code."""
CODE_BEGINS_LATER = "_stext"
"""Symbol at the begin of the code that is not thrown away; a kernel shows it where it does not show the other one."""
_FORM = f"2-{hashlib.sha256(','.join(FOUND_BY_NAME).encode()).hexdigest()[:8]}"
"""The form of the files of symbols, and what is made of an image's own: another one, or with other marks, has another
name."""
_DATA_BEGIN, _DATA_END = "_sdata", "_edata"
"""Symbols at the begin and the end of the kernel's variables that have a value from the start."""
KERNEL_READ_TIMEOUT = 60.0
"""Seconds that an emulated kernel may take to print all that it has of a kind, such as /proc/kallsyms."""
_LATER = 8000
"""Lines at the end of /proc/kallsyms that are read first; modules and BPF programs have most of them for the most
part."""
_MARK = re.compile(r"_(?:start|begin|end|array)$|^_[se]?text$")
LARGEST_FUNCTION = np.uint64(1 << 16)
"""Largest size of a function in bytes. Code further behind the last symbol is not its own, but a classic BPF program's
for one, which the kernel gives no name."""
_NO_ENTRY = re.compile(r"\.(?:part|cold)\b")
"""Symbols that are parts of functions: to go there is no call."""


@dataclass(frozen=True, slots=True, order=True)
class KernelSymbol:
    """A symbol is the address where a piece of code begins, and the kernel's name for it."""

    address: int
    name: str


class KernelSymbols:
    """Addresses and names of the functions of a running kernel."""

    def __init__(self, symbols: Iterable[KernelSymbol]) -> None:
        chosen: dict[int, str] = {}
        for one in symbols:
            known, name = chosen.get(one.address), printable_name(one.name)
            if known is None or _rank(name) < _rank(known):
                chosen[one.address] = name
        at = sorted(chosen)
        self._address: npt.NDArray[np.uint64] = np.array([0, *at], dtype=np.uint64)
        self._number = {UNNAMED: 0, USER_SPACE: 1}
        """Number of each name, in the order of the numbers."""
        function = [self._numbered(function_name(chosen[address])) for address in at]
        entry = [_NO_ENTRY.search(chosen[address]) is None for address in at]
        self._function: npt.NDArray[np.int64] = np.array([0, *function], dtype=np.int64)
        self._entry: npt.NDArray[np.bool_] = np.array([False, *entry], dtype=np.bool_)
        self._names = list(self._number)
        self.data = StaticData({})
        """Variables of the kernel; empty if nobody has looked, or the kernel does not show them."""

    def _numbered(self, name: str) -> int:
        return self._number.setdefault(name, len(self._number))

    def with_more(self, symbols: Iterable[KernelSymbol]) -> Self:
        """The symbols and some more, at other addresses. That takes no time, and making a kernel's symbols takes 0.2
        s."""
        both, more = copy.copy(self), type(self)(symbols)
        both._number = dict(self._number)
        own = np.array([both._numbered(name) for name in more._names], dtype=np.int64)
        address = np.concatenate((self._address, more._address[1:]))
        order = np.argsort(address, kind="stable")
        both._address = address[order]
        both._function = np.concatenate((self._function, own[more._function[1:]]))[order]
        both._entry = np.concatenate((self._entry, more._entry[1:]))[order]
        both._names = list(both._number)
        return both

    def with_data(self, variables: Iterable[tuple[int, str]]) -> Self:
        """The symbols with more variables: addresses and names."""
        both = copy.copy(self)
        both.data = self.data.with_more(variables)
        return both

    @property
    def end(self) -> int:
        """The last address that has a name."""
        return int(self._address[-1])

    def save(self, file: BinaryIO, base: int) -> None:
        """Write them by their distance from ``base``, for `load`, which takes a tenth of the time that making does."""
        offset = self._address[1:] - np.uint64(base)
        names, variables = (
            np.frombuffer("\n".join(each).encode(), dtype=np.uint8) for each in (self._names, self.data.names)
        )
        marks = np.array([base, *(self.data.marks.get(name, 0) for name in FOUND_BY_NAME)], dtype=np.uint64)
        np.savez_compressed(
            file, offset=offset, function=self._function[1:], entry=self._entry[1:], names=names, variables=variables,
            data=self.data.addresses, marks=marks,
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path, base: int) -> Self:
        """Load the symbols that `save` wrote, for a kernel that begins at ``base``."""
        found = cls(())
        with np.load(path) as kept:
            found._address = np.concatenate((found._address, kept["offset"] + np.uint64(base)))
            found._function = np.concatenate((found._function, kept["function"]))
            found._entry = np.concatenate((found._entry, kept["entry"]))
            found._names = kept["names"].tobytes().decode().split("\n")
            variables = kept["variables"].tobytes().decode().split("\n")
            was, *marks = kept["marks"].tolist()
            known = {name: at for name, at in zip(FOUND_BY_NAME, marks, strict=True) if at}
            data = StaticData(dict(zip(kept["data"].tolist(), variables, strict=False)), known)
            by = base - was
            found.data = data.moved(by) if by else data
        found._number = {name: number for number, name in enumerate(found._names)}
        return found

    def __len__(self) -> int:
        """Number of places that have a name."""
        return len(self._address) - 1

    def function(self, address: int) -> str:
        """The function that an address is in."""
        return self.names(np.array([address], dtype=np.uint64))[0]

    def entries(self, name: str) -> list[int]:
        """The addresses at which functions of that name begin; none if there is no such function."""
        number = self._number.get(name)
        return [] if number is None else [int(one) for one in self._address[(self._function == number) & self._entry]]

    def code_before(self, address: int) -> int:
        """Begin of the last piece of code that begins at or before an address; 0 if none does."""
        return int(self._address[int(np.searchsorted(self._address, np.uint64(address), side="right")) - 1])

    def programs(self) -> list[int]:
        """The addresses at which BPF programs begin, and parts of them that are called."""
        return [at for name in self._names if name.startswith(PROGRAM) for at in self.entries(name)]

    def names(self, addresses: npt.NDArray[np.uint64]) -> list[str]:
        """The function that each address belongs to; 0 is a program's."""
        return [self._names[number] for number in self._numbers(addresses)]

    def begin(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Whether a function begins at each address, so that to go there is to call it."""
        at = np.searchsorted(self._address, addresses, side="right") - 1
        found: npt.NDArray[np.bool_] = (self._address[at] == addresses) & self._entry[at]
        return found

    def _numbers(self, addresses: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return for each address the number of its function's name."""
        at = np.searchsorted(self._address, addresses, side="right") - 1
        beyond = addresses - self._address[at] >= LARGEST_FUNCTION
        found: npt.NDArray[np.int64] = np.where(addresses == 0, 1, np.where(beyond, 0, self._function[at]))
        return found

    def callers(self, executed: Executed) -> dict[str, tuple[str, ...]]:
        """The functions whose executed code calls each function or jumps to its begin; calls by a pointer are left
        out."""
        shown = np.flatnonzero(executed.goes_to)
        goes_to = executed.goes_to[shown]
        begins = shown[self.begin(goes_to)]
        called, caller = self._numbers(executed.goes_to[begins]), self._numbers(executed.address[begins])
        pairs = np.unique(np.stack((called, caller))[:, called != caller], axis=1)
        found: dict[str, list[str]] = {}
        for one, other in pairs.T.tolist():
            found.setdefault(self._names[one], []).append(self._names[other])
        return {name: tuple(sorted(own)) for name, own in found.items()}

    def functions(self, executed: Executed) -> dict[str, tuple[int, int]]:
        """Instructions and calls by function. Calls are executions of the block of code that a function begins with."""
        function = self._numbers(executed.address)
        called = self.begin(executed.address)
        times = executed.executions.astype(np.float64)
        instructions = np.bincount(function, times * executed.length, len(self._names))
        calls = np.bincount(function, np.where(called, times, 0.0), len(self._names))
        return {
            self._names[number]: (int(instructions[number]), int(calls[number]))
            for number in np.flatnonzero(instructions)
        }

    def reached(self, executed: Executed) -> dict[str, int]:
        """Bytes of machine code that ran of each eBPF program, or part of one; each byte counts once."""
        if len(executed.bytes) != len(executed.address):
            return {}
        numbers = self._numbers(executed.address)
        found: dict[str, int] = {}
        for number in np.unique(numbers).tolist():
            if (name := self._names[number]).startswith(PROGRAM):
                own = numbers == number
                found[name] = _bytes_once(executed.address[own], executed.bytes[own])
        return found


def _bytes_once(begin: npt.NDArray[np.uint64], size: npt.NDArray[np.uint64]) -> int:
    """Bytes in pieces of code of which some may overlap: a jump into a piece begins another one."""
    order = np.argsort(begin, kind="stable")
    begins, ends = begin[order], (begin + size)[order]
    reached = np.maximum.accumulate(ends)
    before = np.concatenate((begins[:1], reached[:-1]))
    return int(np.sum(reached - np.maximum(begins, before)))


def parsed(lines: Iterable[str]) -> Iterator[tuple[KernelSymbol, str]]:
    """Text symbols of /proc/kallsyms, each with its module; ``bpf`` is that of BPF programs, the kernel itself none."""
    return ((KernelSymbol(one.address, one.name), one.module) for one in typed_symbols(lines) if one.kind in CODE_TYPES)


def parsed_data(lines: Iterable[str]) -> Iterator[tuple[tuple[int, str], str]]:
    """Variables of /proc/kallsyms, address and name, each with its module, which is empty for the kernel's own."""
    return (((one.address, one.name), one.module) for one in typed_symbols(lines) if one.kind in DATA)


def own_symbols(symbols: Iterable[TypedSymbol]) -> tuple[list[KernelSymbol], list[tuple[int, str]]]:
    """The functions and the variables of the kernel itself, without its modules.

    From Linux 6.16 on, an x86 kernel's .data has code for kexec in it (.data..relocate_kernel), so that all of its
    variables are of a type of text. What lies from ``_sdata`` to ``_edata`` is a variable, whatever its type.
    """
    own = [one for one in symbols if not one.module]
    marks = {one.name: one.address for one in own if one.name in (_DATA_BEGIN, _DATA_END)}
    data = range(marks.get(_DATA_BEGIN, 0), marks.get(_DATA_END, 0))
    code = [one for one in own if one.kind in CODE_TYPES]
    functions = [KernelSymbol(one.address, one.name) for one in code if one.address not in data]
    variables = [one for one in own if one.kind in DATA or one.name in FOUND_BY_NAME]
    variables += [one for one in code if one.address in data and one.name not in FOUND_BY_NAME]
    return functions, [(one.address, one.name) for one in variables]


def shows_symbols(guest: Host) -> bool:
    """Whether the kernel that runs there shows its functions' addresses (CONFIG_KALLSYMS). Raises TestbedError."""
    return _base(guest) > 0


def _base(guest: Host) -> int:
    """Address where the kernel's code begins; 0 if the kernel does not show it."""
    # Debian's kernels show root all of it as they are; others may not.
    guest.run("sh", "-c", "echo 0 >/proc/sys/kernel/kptr_restrict", check=False)
    wanted = f" T ({CODE_BEGIN}|{CODE_BEGINS_LATER})$"
    words = ("grep", "-E", "-m", "1", wanted, "/proc/kallsyms")
    line = guest.run(*words, timeout=KERNEL_READ_TIMEOUT, check=False).stdout.split()
    return int(line[0], 16) if line else 0


def read_symbols(guest: Host, image: Path, cache: Path | None = None) -> KernelSymbols:
    """The symbols of the kernel that runs in a guest, of its modules and its BPF programs as of now.

    The kernel's own are read in its image, once. Of an image that has none that are found they are read in the guest in
    each boot, which takes an emulated one 2.4 s (1 140 million instructions); modules' and BPF programs' are read there
    each time, which takes it 0.4 s (240 million).

    Args:
        image: the file that was booted.

    Raises:
        TestbedError: the guest does not answer, or its kernel has no /proc/kallsyms.
        StorageError: the cache cannot be written.
    """
    kernel, lines = kernel_symbols(guest, image, cache)[0], _lines_behind(guest, "")
    modules = kernel.with_more(symbol for symbol, module in parsed(lines) if module)
    return modules.with_data(variable for variable, module in parsed_data(lines) if module)


def kernel_symbols(guest: Host, image: Path, cache: Path | None = None) -> tuple[KernelSymbols, int]:
    """The symbols of the kernel's own code, and where it begins; BPF programs have names from then on.

    Raises as `read_symbols`.
    """
    guest.run("sh", "-c", "echo 1 >/proc/sys/net/core/bpf_jit_kallsyms", check=False)
    base = _base(guest)
    if not base:
        raise TestbedError(f"{guest.name} shows no addresses of its functions (CONFIG_KALLSYMS)")
    kept = _of_image(image, cache or cache_folder())
    return (_of_boot(guest, base) if kept is None else _kept(kept, base)), base


def _of_boot(guest: Host, base: int) -> KernelSymbols:
    """The kernel's own symbols as it shows them itself: for this boot, and for no other."""
    lines = guest.run(
        "grep", "-E", f" [{''.join(sorted(CODE_TYPES | DATA))}] ", "/proc/kallsyms", timeout=KERNEL_READ_TIMEOUT
    ).stdout.splitlines()
    return _from_symbols(typed_symbols(lines), base)


def _from_symbols(symbols: Iterable[TypedSymbol], base: int) -> KernelSymbols:
    functions, variables = own_symbols(symbols)
    found = KernelSymbols(one for one in functions if one.address >= base)
    found.data = StaticData.of(variables)
    return found


def _of_image(image: Path, cache: Path) -> Path | None:
    """The file of an image's symbols, by their distance from where its code begins; None if none are found in it."""
    about = image.stat()
    kept = cache / f"names-of-image-{_FORM}-{_digest(image, about.st_mtime_ns, about.st_size)}.npz"
    if kept.exists():
        return kept
    linked = linked_image(image, cache / "images")
    symbols = None if linked is None else image_symbols(linked)
    begins = [one.address for one in symbols or () if one.name in (CODE_BEGIN, CODE_BEGINS_LATER)]
    base = min(begins, default=0)
    if symbols is None or not base:
        return None
    try:
        with appearing(kept) as part, part.open("wb") as file:
            _from_symbols(symbols, base).save(file, base)
    except OSError as error:
        raise StorageError(f"cannot write {kept}: {error.strerror}; make room there and run again") from error
    return kept


@lru_cache(maxsize=8)
def _digest(image: Path, changed: int, size: int) -> str:
    """Return the digest of a file's content. ``changed`` and ``size`` make the cache forget a file that changed."""
    with image.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _kept(path: Path, base: int) -> KernelSymbols:
    return KernelSymbols.load(path, base)


def symbols_behind(guest: Host, module: str = "") -> list[KernelSymbol]:
    """The symbols of modules and BPF programs, which /proc/kallsyms has behind the kernel's own.

    Args:
        module: only those of one; ``bpf`` are the last ones, so that few lines are read for them.
    """
    return [symbol for symbol, name in parsed(_lines_behind(guest, module)) if name and module in ("", name)]


def _lines_behind(guest: Host, module: str) -> list[str]:
    """The end of /proc/kallsyms, from the first line of a module on, or of any."""
    count, before = _LATER, f"[{module}"
    while True:
        lines = guest.run("tail", "-n", str(count), "/proc/kallsyms", timeout=KERNEL_READ_TIMEOUT).stdout.splitlines()
        if len(lines) < count or before not in lines[0]:
            return lines
        count *= 2


def _rank(name: str) -> tuple[bool, int, int, str]:
    """Rank the names of one address: people use the lowest. Marks of the linker are no functions."""
    return _MARK.search(name) is not None, len(name) - len(name.lstrip("_")), len(name), name
