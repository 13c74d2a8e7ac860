"""The programs that run on hardware and in the model. Those of a family differ by one thing, the least first."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SOURCES = Path(__file__).parent / "sources"
_KIB = 1024
_ELEMENT = 64
"""Bytes of an element of the maps."""


@dataclass(frozen=True)
class Program:
    """A program of a source, with what it is compiled with."""

    family: str
    name: str
    source: str
    defines: Mapping[str, str | int] = field(default_factory=dict)
    length: int = 64
    """Bytes of its packet."""
    elements: int = 0
    """How many runs fill its maps; 0: nothing has to be filled."""
    runs: int = 2048
    """Runs that a memory trial counts; of packets it has as many in a gate."""
    steps: int = 200_000
    """The most steps of its trace."""

    @property
    def title(self) -> str:
        """What tells it from all others."""
        return f"{self.family} {self.name}"

    def compiled(self, folder: Path) -> Path:
        """Its object."""
        output = folder / f"{self.title.replace(' ', '-').replace(',', '')}.bpf.o"
        if not output.exists():
            words = [f"-D{name}={value}" for name, value in self.defines.items()]
            subprocess.run(
                ("clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-I/usr/include/x86_64-linux-gnu", *words,
                 "-c", str(SOURCES / f"{self.source}.bpf.c"), "-o", str(output)),
                check=True,
            )  # fmt: skip
        return output


def _sized(size: int) -> str:
    return f"{size // _KIB} KiB" if size < _KIB * _KIB else f"{size // _KIB**2} MiB"


def _lookups() -> Iterator[Program]:
    """Random elements of each kind of map; hashes take twice the room of their elements."""
    for size in (4 * _KIB, 64 * _KIB, 512 * _KIB, 4 << 20, 16 << 20, 64 << 20):
        defines: dict[str, str | int] = {"KIND": "BPF_MAP_TYPE_ARRAY", "ELEMENTS": size // _ELEMENT}
        yield Program("array", _sized(size), "lookup", defines)
    for size in (4 * _KIB, 256 * _KIB):
        defines = {"KIND": "BPF_MAP_TYPE_PERCPU_ARRAY", "ELEMENTS": size // _ELEMENT}
        yield Program("per-CPU array", _sized(size), "lookup", defines)
    for kind, word, rooms in (("hash", "HASH", 1), ("LRU hash", "LRU_HASH", 2)):
        for count in (64, 2048, 16384, 1 << 18):
            defines = {"KIND": f"BPF_MAP_TYPE_{word}", "ELEMENTS": count, "ROOM": count * rooms, "EMPTY": 1}
            yield Program(kind, f"{count} elements", "lookup", defines, elements=count)
    for count in (64, 4096, 65536):
        yield Program("prefixes", f"{count}", "prefixes", {"ELEMENTS": count}, elements=count)
    for size in (16 * _KIB, 256 * _KIB, 2 << 20, 16 << 20, 64 << 20, 256 << 20):
        count = size // _ELEMENT
        yield Program("chase", _sized(size), "chase", {"ELEMENTS": count}, elements=count)


def _work() -> Iterator[Program]:
    """What is more or less of the same work."""
    yield Program("atomics", "none", "atomics")
    for times in (1, 4, 16):
        yield Program("atomics", f"{times}", "atomics", {"ADD": 1, "TIMES": times})
    yield Program("atomics", "8 exchanges", "atomics", {"EXCHANGE": 1})
    for helper in ("RANDOM", "CHECKSUM", "STORE", "UPDATE", "REPLACE", "LOCK"):
        yield Program("helpers", helper.lower(), "helpers", {helper: 1})
    for length in (64, 128, 256, 512, 1024, 1500):
        yield Program("copies by the kernel", f"{length} B", "copies", {"LENGTH": length, "HELPER": 1}, length=1514)
    for length in (64, 256, 1024, 1496):
        yield Program("copies by words", f"{length} B", "copies", {"LENGTH": length}, length=1514)
    for times in (8, 32):
        for name, mask in (("foreseen", 0), ("unforeseen", -1)):
            defines = {"TIMES": times, "MASK": mask}
            yield Program("branches", f"{times} {name}", "branches", defines)
    for times in (1, 4, 16, 32):
        yield Program("tail calls", f"{times}", "tail", {"TIMES": times})
    for kind in ("HASH", "HEADERS", "SUM"):
        for length in (64, 256, 1024):
            defines = {"LENGTH": length, kind: 1}
            yield Program(f"packet's {kind.lower()}", f"{length} B", "reading", defines, length=1514)


PROGRAMS = (*_lookups(), *_work())
"""All; every other one makes the weights, and the rest tells what they are worth."""
