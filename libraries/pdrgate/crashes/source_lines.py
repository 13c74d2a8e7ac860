"""Addresses of a fault to lines of the kernel's source, by the build's vmlinux and binutils."""

from __future__ import annotations

import dataclasses
import itertools
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from pdrgate.crashes.faults import Crash
from pdrgate.this_process.child_environment import bounded, child_environment

_FRAME = re.compile(r"([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)")

_ADDRESS = re.compile(r"[0-9a-f]{1,16}")
_LARGEST_OUTPUT = 64 << 20
"""Largest output, in bytes, of a tool that reads a vmlinux, which is a stranger's file; nm prints 10 MB for a large
one."""

_Symbols = Mapping[str, Sequence[tuple[int, int]]]
"""The start and size of functions, by name."""


class SourceLines:
    """The source lines of one build. Decoded faults are kept, for a fault stays on the console for good.

    Args:
        vmlinux: the image with symbols and DWARF lines; if it is None, frames stay as they are.
    """

    def __init__(self, vmlinux: Path | None) -> None:
        self._vmlinux = vmlinux
        self._decoded: dict[Crash, Crash] = {}

    def decode(self, crashes: Sequence[Crash]) -> tuple[Crash, ...]:
        """The crashes with ``function+0x1/0x2 (net/ipv6/ip6_output.c:123)`` in place of ``function+0x1/0x2``.

        Frames are left as they are where the vmlinux does not know them (modules, another build) or nm and addr2line
        are missing. A frame fits a symbol when name and size agree, as in the kernel's scripts/faddr2line.
        """
        if self._vmlinux is None:
            return tuple(crashes)
        if new := [crash for crash in crashes if crash not in self._decoded]:
            addresses = _addresses(new, _symbols(self._vmlinux, _functions(new)))
            lines = _source_lines(self._vmlinux, sorted({at for found in addresses for at in found.values()}))
            self._decoded |= {
                crash: _with_lines(crash, {frame: lines[at] for frame, at in found.items() if at in lines})
                for crash, found in zip(new, addresses, strict=True)
            }
        return tuple(self._decoded[crash] for crash in crashes)


def _frames(crash: Crash) -> tuple[str, ...]:
    return ((crash.rip,) if crash.rip else ()) + crash.trace


def _functions(crashes: Iterable[Crash]) -> set[str]:
    return {frame.partition("+")[0] for crash in crashes for frame in _frames(crash)}


def _addresses(crashes: Iterable[Crash], symbols: _Symbols) -> list[dict[str, int]]:
    """The addresses of those frames of each crash that fit exactly one symbol."""
    found = []
    for crash in crashes:
        addresses: dict[str, int] = {}
        for frame in _frames(crash):
            match = _FRAME.fullmatch(frame)
            if match is None:
                continue
            offset, size = int(match[2], 16), int(match[3], 16)
            fits = [start for start, length in symbols.get(match[1], ()) if length == size]
            if len(fits) == 1:
                # A trace holds return addresses: the call stands before them. RIP is the faulting instruction itself.
                addresses[frame] = fits[0] + offset - (0 if frame == crash.rip else 1)
        found.append(addresses)
    return found


def _with_lines(crash: Crash, lines: Mapping[str, str]) -> Crash:
    def with_line(frame: str) -> str:
        return f"{frame} ({lines[frame]})" if frame in lines else frame

    return dataclasses.replace(
        crash, rip=crash.rip and with_line(crash.rip), trace=tuple(with_line(frame) for frame in crash.trace)
    )


def _symbols(vmlinux: Path, names: Collection[str]) -> _Symbols:
    """The functions of these names. A size reaches to the next symbol, as kallsyms counts it.

    nm reads a kernel's 150 000 symbols in a moment. Names may be anything, lines of their own included.
    """
    found = []
    for line in _tool("nm", "-n", "--defined-only", str(vmlinux)).splitlines():
        parts = line.split()
        if len(parts) == 3 and _ADDRESS.fullmatch(parts[0]):
            found.append((int(parts[0], 16), parts[1], parts[2]))
    starts = sorted({address for address, _, _ in found})
    following = dict(itertools.pairwise(starts))
    symbols: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for address, kind, name in found:
        if kind in "tTwW" and name in names and address in following:
            symbols[name].append((address, following[address] - address))
    return symbols


def _source_lines(vmlinux: Path, addresses: Sequence[int]) -> dict[int, str]:
    if not addresses:
        return {}
    places = _tool("addr2line", "-e", str(vmlinux), *(f"{address:#x}" for address in addresses)).splitlines()
    if len(places) != len(addresses):
        return {}
    # Paths in the kernel's own tree, without where it was built.
    named = {
        address: re.sub(r" \(discriminator \d+\)$", "", line) for address, line in zip(addresses, places, strict=True)
    }
    return {
        address: re.sub(
            r"^.*/(?=(?:arch|block|crypto|drivers|fs|include|init|kernel|lib|mm|net|security|virt)/)", "", line
        )
        for address, line in named.items()
        if not line.startswith("?")
    }


def _tool(*command: str) -> str:
    try:
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            subprocess.run(
                bounded(*command, written=_LARGEST_OUTPUT), stdout=said, stderr=subprocess.DEVNULL, check=False,
                env=child_environment(),
            )  # fmt: skip
            said.seek(0)
            return said.read()
    except OSError:
        return ""
