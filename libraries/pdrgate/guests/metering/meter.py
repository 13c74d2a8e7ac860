"""The memory that is shared with the plugin: what each of the guest's CPUs has executed, and how fast it may."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.plugin import PluginMemory, offset

LATENESS_BOUND = 0.030
"""Seconds of arrears that are made good: most stalls of a shared machine are shorter.

A CPU makes up for them at the machine's full speed, so that more of them would show in a trial.
"""

_MAGIC = 0x37726574656D7076
_CAPACITY, _CHAINS, _STEPS, _GAPS = 1 << 18, 1 << 16, 1 << 18, 1 << 8
_BLOCK = np.dtype([("address", "<u8"), ("length", "<u4"), ("bytes", "<u4"), ("executions", "<u8"), ("goes_to", "<u8")])
_CHAIN = np.dtype([("address", "<u8"), ("caller", "<u4"), ("from", "<u4")])
_STEP = np.dtype([("chain", "<u4"), ("block", "<u4"), ("executions", "<u8")])
_GAP = np.dtype([("begin", "<u8"), ("end", "<u8")])
_HEAD = np.dtype(
    [(name, "<u8") for name in ("magic", "cpus", "speed", "bound", "blocks", "traced", "counting", "gaps", "next_beat")]
    + [("unused", "<u8", 7), ("gap", _GAP, _GAPS)]
)
"""Head of the memory, which all CPUs have in common."""
_CPU_HEAD = np.dtype(
    [
        (name, "<u8")
        for name in (
            "instructions", "next_stop", "halted", "halts", "held", "lost", "arrears", "halted_since", "tracing",
            "chains", "steps", "no_room",
        )
    ]
    + [("unused", "<u8", 4)]
)  # fmt: skip
_CPU = np.dtype(
    [("head", _CPU_HEAD), ("block", _BLOCK, _CAPACITY), ("chain", _CHAIN, _CHAINS), ("step", _STEP, _STEPS)]
)
"""Part of the memory of one CPU. Each has the same blocks in the same order."""
NOWHERE = 1
"""The address of kernel code that is counted without its own."""
_WANTED, _COUNTS = 1, 2
"""Whether it counts: the value written to it, and the value that it writes when it does."""
_NOTICED = 0.002
"""Seconds for which QEMU may wait for a CPU before it notices that, as the plugin has it."""
_RESTS = 0.002
"""Seconds in which a CPU would have gone on, had there been anything left to do."""
_HEEDED = 0.1
"""Seconds in which a CPU that has anything to do heeds an order."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Events on one CPU since counting began; times are seconds."""

    instructions: int
    halted: float
    """Time in which the CPU had nothing to do."""
    halts: int
    held: float
    """Time in which the plugin kept the CPU waiting, so that it was no faster than its speed."""
    lost: float
    """Time in which the CPU should have run and did not, beyond what is made good."""
    arrears: float
    """Time by which the CPU is behind now. It makes up for that at full speed."""
    time: float
    """When these counts were read, on this machine's monotonic clock."""


@dataclass(frozen=True, slots=True)
class Executed:
    """Blocks of code, each once: arrays of one length.

    What programs executed is at address 0. At `NOWHERE` is what the kernel executed at addresses of programs, and all
    that is beyond the room for blocks.
    """

    address: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint64]
    """Instructions in the block."""
    executions: npt.NDArray[np.uint64]
    goes_to: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Address that each block calls or jumps to at its end, 0 if its code does not show it; empty if nobody knows
    any."""
    bytes: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Bytes of each block's code; empty if nobody knows any."""

    def since(self, earlier: Executed) -> Executed:
        """Blocks executed after ``earlier``, and no others. Blocks are only ever added at the end."""
        executions = self.executions.copy()
        executions[: len(earlier.executions)] -= earlier.executions
        ran = executions > 0
        known = (one[ran] if len(one) == len(ran) else one[:0] for one in (self.goes_to, self.bytes))
        return Executed(self.address[ran], self.length[ran], executions[ran], *known)


@dataclass(frozen=True, slots=True)
class Followed:
    """Calls that were followed: chains of callers, and what ran in each.

    A chain is a function that was called by a block of another chain; the first is nobody's.
    """

    address: npt.NDArray[np.uint64]
    """Address that each chain's call went to, or where a chain was first seen whose caller is not known."""
    caller: npt.NDArray[np.int64]
    """Number of each chain's calling chain."""
    called_from: npt.NDArray[np.int64]
    """Number of the block that made each chain's call."""
    chain: npt.NDArray[np.int64]
    """Number of the chain in which each step's block ran."""
    block: npt.NDArray[np.int64]
    executions: npt.NDArray[np.uint64]
    blocks: Executed
    """The blocks. Their own executions are since counting began."""


class VcpuMeter(PluginMemory):
    """The memory of one guest's plugin, which dies with it. Reading costs the guest nothing.

    The guest comes up without being counted, for that would slow its boot down.

    Args:
        cpus: how many virtual CPUs the guest has.
    """

    head: ClassVar[np.dtype[np.void]] = _HEAD

    def __init__(self, cpus: int = 1) -> None:
        super().__init__("pdrgate-vcpu-meter", _HEAD.itemsize + cpus * _CPU.itemsize)
        self.cpus = range(cpus)
        """The guest's CPUs by number."""
        self._put("magic", _MAGIC)
        self._put("cpus", cpus)
        self._put("bound", round(LATENESS_BOUND * 1e9))

    def begin(self) -> None:
        """Count from when a CPU has nothing to do for the next time, see `counting`."""
        if not self.counting:
            self._put("counting", _WANTED)

    @property
    def counting(self) -> bool:
        """Whether the plugin counts, and can hold the CPUs."""
        return self._get("counting") == _COUNTS

    @property
    def speed(self) -> int:
        """Instructions/s at which each CPU is held; 0 when it is as fast as it can."""
        return self._get("speed")

    def hold(self, speed: int) -> None:
        """Hold each CPU at ``speed`` instructions/s from now on; 0 lets it run as fast as it can."""
        self._put("speed", speed)

    def counts(self) -> tuple[Counts, ...]:
        """The sums now, by CPU."""
        now = time.monotonic()
        return tuple(self._counts(cpu, now) for cpu in self.cpus)

    def _counts(self, cpu: int, now: float) -> Counts:
        head = self._cpu_head(cpu)
        halted = head["halted"]
        if since := head["halted_since"]:  # it has nothing to do at this moment
            halted += max(0, round(now * 1e9) - since)
        return Counts(
            head["instructions"], halted / 1e9, head["halts"], head["held"] / 1e9, head["lost"] / 1e9,
            head["arrears"] / 1e9, now,
        )  # fmt: skip

    def starved(self, since: float) -> tuple[tuple[float, float], ...]:
        """When, from ``since`` on, QEMU wanted to run and for 2 ms or more had no CPU: from and to, in order.

        Seconds of this machine's monotonic clock; at most the last 256 times, and the one that lasts still.
        """
        now, beat = time.monotonic(), self._get("next_beat")
        gaps = self._table(offset(_HEAD, "gap"), _GAP, min(self._get("gaps"), _GAPS))
        times = {(int(begin) / 1e9, int(end) / 1e9) for begin, end in gaps}
        if beat and now - beat / 1e9 > _NOTICED:
            times.add((beat / 1e9, now))
        return tuple(sorted(one for one in times if one[1] > since))

    def rest(self, patience: float) -> None:
        """Wait until no CPU has anything to do, for so many seconds at most."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            halted = [self._cpu_head(cpu)["halted_since"] for cpu in self.cpus]
            if all(halted) and time.monotonic() - max(halted) / 1e9 > _RESTS:
                return
            time.sleep(0.001)

    @property
    def halts(self) -> int:
        """Number of halts of all CPUs together so far."""
        return sum(one.halts for one in self.counts())

    def executed(self) -> Executed:
        """Executions of each block until now, by all CPUs together."""
        of_each = [self.executed_by(cpu) for cpu in self.cpus]
        blocks = min(len(one.address) for one in of_each)  # a CPU may have had code translated meanwhile
        executions = of_each[0].executions[:blocks]
        for one in of_each[1:]:
            executions += one.executions[:blocks]
        first = of_each[0]
        known = (one[:blocks] for one in (first.goes_to, first.bytes))
        return Executed(first.address[:blocks], first.length[:blocks], executions, *known)

    def executed_by(self, cpu: int) -> Executed:
        """Executions of each block until now, by one CPU."""
        blocks = min(self._get("blocks"), _CAPACITY)  # QEMU wrote it, in which a guest may have got
        found = self._table_of(cpu, "block", _BLOCK, blocks)
        length, size = (found[name].astype(np.uint64) for name in ("length", "bytes"))
        return Executed(found["address"], length, found["executions"], found["goes_to"], size)

    def follow(self, calls: bool) -> None:
        """Follow calls and returns from now on, which begins anew, or no longer; it makes the CPUs slower."""
        wanted = self._get("traced")
        if calls or wanted % 2:  # an odd number follows calls, and each time has one of its own
            wanted = (wanted + 1 + (calls == wanted % 2)) % (1 << 64)
            self._put("traced", wanted)
        deadline = time.monotonic() + _HEEDED
        for cpu in self.cpus:
            while (head := self._cpu_head(cpu))["tracing"] != wanted and not head["halted_since"]:
                if time.monotonic() >= deadline:
                    return
                time.sleep(0.001)  # a CPU that halts heeds it when it goes on

    def followed(self) -> Followed:
        """The calls that were followed last, on all CPUs: their chains one CPU after the other."""
        chains, steps = [np.zeros(1, _CHAIN)], [np.zeros(0, _STEP)]
        taken, latest = 1, self._get("traced")
        for cpu in self.cpus:
            # A CPU that halted when it was to follow no longer may go on meanwhile: each step's chain and block are
            # there before the step is, and so they are read after it.
            ran = self._table_of(cpu, "step", _STEP, _STEPS)
            ran = ran[ran["executions"] > 0]
            head = self._cpu_head(cpu)
            if head["tracing"] not in (latest, latest - 1 + latest % 2):
                continue  # it slept all the time
            called = self._table_of(cpu, "chain", _CHAIN, min(head["chains"], _CHAINS))
            called = called[1:]  # the first chain is nobody's on each CPU
            for numbers in (called["caller"], ran["chain"]):
                numbers[numbers > 0] += taken - 1
            taken += len(called)
            chains.append(called)
            steps.append(ran)
        chain, step = np.concatenate(chains), np.concatenate(steps)
        return Followed(
            chain["address"], chain["caller"].astype(np.int64), chain["from"].astype(np.int64),
            step["chain"].astype(np.int64), step["block"].astype(np.int64), step["executions"], self.executed(),
        )  # fmt: skip

    def _cpu_head(self, cpu: int) -> dict[str, int]:
        (values,) = self._table(_HEAD.itemsize + cpu * _CPU.itemsize, _CPU_HEAD, 1)
        return dict(zip(_CPU_HEAD.names or (), values.tolist(), strict=True))

    def _table_of(self, cpu: int, name: str, kind: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
        return self._table(_HEAD.itemsize + cpu * _CPU.itemsize + offset(_CPU, name), kind, count)
