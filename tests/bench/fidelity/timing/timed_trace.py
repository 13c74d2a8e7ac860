"""How long a CPU takes for a trace, by cpu_model.c: cycles and branches that it does not foresee, by function."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from pdrgate.guests.metering.memory.memory_meter import BLOCK, REGION, STEP_SHIFT, Traced
from pdrgate.guests.metering.plugin import MEMORY_TRIAL
from pdrgate.this_process.compiled import compile_to
from timing.instructions import INSN, SLOW, Flag, describe

_HERE = Path(__file__).parent
_BLOCK = np.dtype([("first", "<u4"), ("length", "<u4")])
_WINDOW, _BLOCK_BEGINS = 1 << STEP_SHIFT, 2 << STEP_SHIFT
_FUSES = ("cmp", "test", "add", "sub", "and", "inc", "dec")
"""Instructions that a CPU makes one with the branch behind them."""
_WARM = 1 / 3
"""Share of the windows of a trace that only fill the model."""
_FEW = 5
"""Columns of `struct timed`."""


@dataclass(frozen=True)
class Cpu:
    """A CPU, in cycles but for what says otherwise; `struct cpu` of cpu_model.c has the same order."""

    fetched: float
    entered: float
    left: float
    window: float
    stores: float
    misses: float
    first: float
    second: float
    last: float
    memory: float
    pages: float
    more_pages: float
    second_page: float
    walk: float
    second_size: float
    last_size: float
    redirect: float
    lock: float
    repeat: float
    repeated: float
    ports: Sequence[float]
    slow: Mapping[str, float]

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """All of it, as the model has it."""
        plain = [getattr(self, one.name) for one in fields(self)[:-2]]
        slow = [self.slow.get(name, 0.0) for name in SLOW] + [0.0] * (32 - len(SLOW))
        return np.array([*plain, *self.ports, *slow], np.float64)


def cpu_named(name: str, architecture: str = "x86_64") -> Cpu:
    """A CPU that the model knows. Raises ValueError where it does not."""
    known = sorted(one.stem for one in (_HERE / "cpus").glob("*.yaml"))
    if architecture != "x86_64":
        raise ValueError(f"there is no model of a CPU of {architecture}; those of x86_64 are {', '.join(known)}")
    if name not in known:
        raise ValueError(f"no model of a CPU is called {name!r}; there are {', '.join(known)}")
    return Cpu(**yaml.safe_load((_HERE / "cpus" / f"{name}.yaml").read_text(encoding="utf-8")))


def variants(cpu: Cpu) -> dict[str, Cpu]:
    """The CPU, and what it would be without each part of its model."""
    return {
        "all": cpu, "all branches foreseen": replace(cpu, redirect=0.0), "pages always known": replace(cpu, walk=0.0),
        "atomic instructions as others": replace(cpu, lock=1.0), "one miss at a time": replace(cpu, misses=1.0),
        "a window of 8 instructions": replace(cpu, window=8.0),
        "slow instructions as others": replace(cpu, slow={}),
        "latencies of memory as published": replace(cpu, last=70.0, memory=330.0, walk=25.0),
    }  # fmt: skip


@dataclass(frozen=True)
class Executed:
    """What a trace executed, as the model takes it."""

    insns: npt.NDArray[np.void]
    blocks: npt.NDArray[np.void]
    """Of each place that is a block, where in `insns` it begins, and how many of them it has."""
    footprint: npt.NDArray[np.float64]
    """Bytes that each place reads, about."""
    functions: Sequence[str]
    steps: npt.NDArray[np.void]

    @property
    def windows(self) -> int:
        """Windows that begin in the trace."""
        return int(np.count_nonzero(self.steps["what"] & np.uint64(_WINDOW)))


@dataclass(frozen=True)
class Timed:
    """What a CPU takes for a window."""

    cycles: float
    mispredicted: float
    instructions: float
    walks: float
    """Walks of the page tables."""
    cycles_of: Mapping[str, float]
    mispredicted_of: Mapping[str, float]


def executed(places: npt.NDArray[np.void], traced: Traced, names: Sequence[str]) -> Executed:
    """What a trace executed.

    Args:
        names: functions of the places.
    """
    steps = traced.steps
    begun = steps["what"][steps["what"] & np.uint64(_BLOCK_BEGINS) > 0] & np.uint64((1 << STEP_SHIFT) - 1)
    at_address = {
        int(places["address"][one]): int(one)
        for one in np.nonzero((places["kind"] != BLOCK) & (traced.code["size"] > 0))[0]
    }
    functions = sorted(set(names))
    number = {name: at for at, name in enumerate(functions)}
    described: dict[int, tuple[npt.NDArray[np.void], str]] = {}
    rows: list[npt.NDArray[np.void]] = []
    blocks = np.zeros(len(places), _BLOCK)

    def described_at(address: int) -> tuple[npt.NDArray[np.void], str] | None:
        place = at_address.get(address)
        if place is None or place in described:
            return described.get(place) if place is not None else None
        row, code = np.zeros(1, INSN)[0], traced.code[place]
        name = describe(bytes(code["bytes"][: code["size"]]), address, row, int(places["traits"][place]))
        row["place"], row["function"] = place, number[names[place]]
        row["flags"] |= int(_thunk(names[place]))
        described[place] = (row, name)
        return described[place]

    for block in np.unique(begun).astype(int):
        address, first, before = int(places["address"][block]), len(rows), ""
        for _ in range(int(places["length"][block])):
            found = described_at(address)
            if found is None:
                break
            row, name = found[0].copy(), found[1]
            if int(row["flags"]) & Flag.IF and before in _FUSES:
                row["flags"] |= int(Flag.FUSED)
            rows.append(row)
            address, before = int(row["next"]), name
        blocks[block] = (first, len(rows) - first)
    return Executed(
        np.array(rows, INSN), blocks, places["regions"].astype(np.float64) * REGION, functions, steps
    )  # fmt: skip


def _thunk(function: str) -> Flag:
    """What a thunk stands for; a CPU that needs none of them executes that by itself."""
    if "indirect" in function and "thunk" in function:
        return Flag.INDIRECT_THUNK
    return Flag.RETURN_THUNK if "return_thunk" in function or "safe_ret" in function else Flag(0)


class Model:
    """The compiled model.

    Args:
        folder: it is compiled there.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "cpu_model.so"
        headers = MEMORY_TRIAL.main.parent
        compile_to(library, ("gcc", "-O2", "-Wall", "-shared", "-fPIC", f"-I{headers}", str(_HERE / "cpu_model.c")))
        self._run = ctypes.CDLL(str(library)).timed_trace

    def timed(self, cpu: Cpu, what: Executed) -> Timed:
        """What the CPU takes for a window of a trace: the mean of those behind the first third."""
        warm = max(1, int(what.windows * _WARM))
        cycles, mispredicted = np.zeros(len(what.functions)), np.zeros(len(what.functions))
        found, numbers = np.zeros(_FEW), cpu.numbers
        arrays = (numbers, what.insns, what.blocks, what.footprint, what.steps)
        kept = [np.ascontiguousarray(one) for one in arrays]
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in (*kept, cycles, mispredicted, found)]
        count = (ctypes.c_uint64(len(what.steps)), ctypes.c_uint64(warm))
        self._run(*pointers[:5], *count, *pointers[5:])
        windows = max(found[1], 1.0)
        by_function = (
            {name: float(one) for name, one in zip(what.functions, each / windows, strict=True) if one}
            for each in (cycles, mispredicted)
        )
        return Timed(*(found[[0, 2, 3, 4]] / windows).tolist(), *itertools.islice(by_function, 2))
