"""The parts of a trial: whose it is, why and when it was made, and what observers saw of it.

A line on disk is flat: the fields of these parts stand in it beside the trial's own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from pdrgate.record.cause import Cause
from pdrgate.record.parts import FlatPart, flattened, parts_of
from pdrgate.record.phase import Phase
from pdrgate.values.errors import without_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Readings = Mapping[str, Mapping[str, int]]
"""Counters by place and name: ``{"in0": {"rx_dropped": 12}}``."""

Functions = Mapping[str, tuple[int, int]]
"""Instructions and calls by function: ``{"ip6_forward": (1_730_000, 10_000)}``."""

Stacks = Mapping[str, tuple[int, int]]
"""Instructions and calls by function and the chain of its callers: ``{"net_rx_action;virtnet_poll": (1_730_000,
10_000)}``."""

CALLER = ";"
"""Stands between a function and its caller, which comes first: as tools for flame graphs have it."""

Callers = Mapping[str, tuple[str, ...]]
"""Callers of each function: those that call it, or jump to its begin."""

USER_SPACE = "user space"
"""What programs executed stands under this name among the functions, and is no part of a packet's path."""


@dataclass(frozen=True, slots=True)
class Belonging(FlatPart):
    """Whom a trial belongs to: what was asked, under which conditions, and which boot of which build answered."""

    scenario: str = ""
    """Name of the scenario, goal included: everything that was asked."""
    test: str = ""
    """Long name of the test that asked for it; empty where no test did."""
    fingerprint: str = ""
    """Digest of all that made it: scenario, profile, testbed, generator, kernel and its settings."""
    boot: str = ""
    """Identifier of one start of the SUT; no two boots have one in common."""
    side: str = ""
    """``baseline`` or ``candidate`` where builds are compared."""
    build: str = ""
    """The build as a person named it, where builds are compared."""
    pair: int = 0
    """Number of the pair of boots, from 1; 0 where there are no pairs."""

    def __post_init__(self) -> None:
        no_negative_counts(self, "pair")


@dataclass(frozen=True, slots=True)
class Occasion(FlatPart):
    """Why a trial was made, and when."""

    repeat: int = 0
    """Number of the repeat within its boot, from 1; 0 for what is no repeat."""
    goal: str = ""
    """The search goal that a trial served, such as ``PDR``."""
    phase: Phase = Phase.NONE
    """Why it was made; of a closed loop `Phase.REST`, `Phase.CURVE` or `Phase.REPEAT`."""
    started: float = 0.0
    """Start, seconds since the epoch."""

    def __post_init__(self) -> None:
        no_negative_times(self, "started")
        no_negative_counts(self, "repeat")


@dataclass(frozen=True, slots=True)
class Latency:
    """One-way latency of the probe stream, all in seconds, over ``count`` probes that came back."""

    p50: float
    p90: float
    p99: float
    max: float
    count: int
    within: tuple[float, ...] = ()
    """Bounds of how much lower each of the four percentiles may be, where the generator counts latencies in buckets.

    Empty where the generator measures each latency exactly.
    """


LINES_OF_PAGE = 64
"""Cache lines of a page."""


class MemoryCounts(NamedTuple):
    """What a function did with memory, in all windows that count; see `MemorySeen`."""

    instructions: int = 0
    loads: int = 0
    stores: int = 0
    lines: int = 0
    """Cache lines of data that it was the first to touch in a window."""
    code_lines: int = 0
    """Cache lines of code that it was the first to touch in a window."""
    missed_l1: int = 0
    """Lines of data that a model of a server's first level did not have."""
    missed_l1_code: int = 0
    missed_l2: int = 0
    missed_last: int = 0
    """Lines, of data or code, that no level had."""
    atomics: int = 0
    """Atomic instructions, also those that a kernel on one CPU has made simple ones."""
    indirect: int = 0
    """Indirect jumps and calls, also by thunks."""
    returns: int = 0
    """Returns of functions, but for those of thunks, which count as indirect."""
    stack_lines: int = 0
    """Part of `lines` that lies on stacks.

    In a trial on several CPUs the part of `shared`, as for the next five fields.
    """
    cpu_lines: int = 0
    """Part of `lines` in memory that each CPU has for itself."""
    symbol_lines: int = 0
    """Part of `lines` in variables of the kernel or of modules."""
    direct_lines: int = 0
    """Part of `lines` in the map of all memory: slabs, pages, and the packet's data."""
    vmalloc_lines: int = 0
    """Part of `lines` in memory from vmalloc."""
    page_lines: int = 0
    """Part of `lines` in the kernel's array of page descriptors."""
    program_lines: int = 0
    """Part of `lines` in the memory of programs. The region of lines that are in none of these parts is unknown."""
    shared: int = 0
    """Lines that another CPU touched shortly before, one of the two writing.

    Counted only in a trial on several CPUs.
    """
    falsely_shared: int = 0
    """Part of `shared` in which the two CPUs touched different bytes: false sharing."""
    ipis: int = 0
    """Interprocessor interrupts that were taken. Counted only in a trial on several CPUs."""
    wakeups: int = 0
    """Tasks that were woken. Counted only in a trial on several CPUs."""
    waited: int = 0
    """Instructions of CPUs that waited for a lock. Counted only in a trial on several CPUs."""
    filled_pages: int = 0
    """Pages of memory that it stored to from begin to end, reading next to nothing, as to clear them takes."""

    @property
    def fills_pages(self) -> bool:
        """Whether most of its lines of data, or of those that CPUs share, can be of pages that it filled."""
        return 2 * LINES_OF_PAGE * self.filled_pages > max(self.lines, self.shared)


@dataclass(frozen=True, slots=True)
class MemorySeen:
    """What was seen of memory in a trial of which each access was."""

    windows: int
    """Packets of whose time all is counted: a window lasts from when the kernel takes one up to when it does the next.
    """
    dropped: int
    """Windows that do not count, for the CPU had nothing to do meanwhile."""
    functions: Mapping[str, MemoryCounts]
    named: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Names of the counted lines, by function and field of `MemoryCounts`, each with its number of lines.

    A name is a BPF map, a slab cache, pages that belong to none, or a variable. Lines without a name are not in it.
    """
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Fields of a struct that a function touches, by function and by the name of its lines: ``net_bridge_fdb_entry.used
    written, .key read``. Present where it is certain which struct lies there."""
    writers: Mapping[str, str] = field(default_factory=dict)
    """Function that writes to the shared lines of a function, where that is another one.

    Recorded only in a trial on several CPUs.
    """
    cpus: int = 1
    """CPUs of the SUT."""
    missing: tuple[str, ...] = ()
    """What of the kernel's lines could have no names, or no fields, each with the reason."""


@dataclass(frozen=True, slots=True)
class Seen(FlatPart):
    """What was seen of a trial, by the generator's probes and by who watched it."""

    latency: Latency | None = None
    """Latency percentiles of the probes; None in a trial without probes."""
    counters_before: Readings = field(default_factory=dict)
    counters_after: Readings = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    """What the SUT's kernel executed meanwhile; empty where that is not counted, or not kept for this phase."""
    stacks: Stacks = field(default_factory=dict)
    """Instructions and calls by chain of callers, of a trial in which calls were followed."""
    memory: MemorySeen | None = None
    """What functions touched, of a trial in which each access to memory was seen."""
    callers: Callers = field(default_factory=dict)
    """Functions whose code calls a function, of a replicate's first trial at saturation."""
    counted: float = 0.0
    """Seconds for which functions were counted: the trial, and what the generator needs before and after it."""
    disturbed: tuple[Cause, ...] = ()
    """Disturbances by the machine, which keep the trial from showing anything of the SUT; empty for a sound trial."""

    def __post_init__(self) -> None:
        no_negative_times(self, "counted")

    @property
    def counter_changes(self) -> dict[str, dict[str, int]]:
        """What the counters gained meanwhile, by place and name, where both readings have it."""
        return changes(self.counters_before, self.counters_after)


_Kind = TypeVar("_Kind", bound="DataclassInstance")


def unflattened(record: Mapping[str, Any], kind: type[_Kind]) -> _Kind:
    """The inverse of `flattened` on a decoded line; unknown keys are ignored, so that newer files still load.

    Raises:
        ValueError: a key is missing, or a value has the wrong type or range.
    """
    try:
        parts = {name: msgspec.convert(record, part) for name, part in parts_of(kind).items()}
        return msgspec.convert({**record, **parts}, kind)
    except msgspec.ValidationError as error:
        raise ValueError(without_value(error)) from error


def line_of(trial: DataclassInstance, without: Collection[str] = ()) -> str:
    """The record that a file of trials holds, a line of JSON; ``without`` what this kind of trial never has."""
    record = {name: value for name, value in flattened(trial).items() if name not in without}
    return msgspec.json.encode(record).decode()


def no_negative_times(value: object, *names: str) -> None:
    """Raise ValueError where one of the named fields is negative, or not finite."""
    for name in names:
        found = getattr(value, name)
        if not (math.isfinite(found) and found >= 0):
            raise ValueError(f"{name} is {found!r}: it must be finite and not negative")


def no_negative_counts(value: object, *names: str) -> None:
    """Raise ValueError where one of the named fields is negative."""
    for name in names:
        found = getattr(value, name)
        if found < 0:
            raise ValueError(f"{name} is {found!r}: a count cannot be negative")


def changes(before: Readings, after: Readings) -> dict[str, dict[str, int]]:
    """What counters gained, by place and name, where both readings have it. One that was set back gained nothing."""
    found: dict[str, dict[str, int]] = {}
    for place, old in before.items():
        new = after.get(place, {})
        gained = {name: new[name] - value for name, value in old.items() if new.get(name, value) > value}
        if gained:
            found[place] = gained
    return found


def placed(counters: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counters named ``place.name`` by place and name; what has no place stands at an empty one."""
    found: dict[str, dict[str, int]] = {}
    for full, value in counters.items():
        place, _, name = full.rpartition(".")
        found.setdefault(place, {})[name] = value
    return found
