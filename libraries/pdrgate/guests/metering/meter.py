"""The memory that is shared with the plugin: what the guest's CPU has executed, and how fast it may."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

LATENESS_BOUND = 0.030
"""Seconds of arrears that are made good: stalls of a shared machine are shorter for the most part. What a CPU makes up
for it does at the machine's full speed, so that more of it would show in a trial."""

_MAGIC = 0x34726574656D7076
_CAPACITY = 1 << 18
_HEAD = struct.Struct("<19Q")
_CHAINS, _STEPS, _GAPS = 1 << 16, 1 << 18, 1 << 8
_BLOCK = np.dtype([("address", "<u8"), ("length", "<u8"), ("executions", "<u8")])
_CHAIN = np.dtype([("address", "<u8"), ("caller", "<u4"), ("from", "<u4")])
_STEP = np.dtype([("chain", "<u4"), ("block", "<u4"), ("executions", "<u8")])
_GAP = np.dtype([("begin", "<u8"), ("end", "<u8")])
_CHAINS_AT = _HEAD.size + _CAPACITY * _BLOCK.itemsize
_STEPS_AT = _CHAINS_AT + _CHAINS * _CHAIN.itemsize
_GAPS_AT = _STEPS_AT + _STEPS * _STEP.itemsize
_SPEED_AT, _BOUND_AT, _TRACED_AT, _COUNTING_AT = 8, 16, 80, 120
_TRACING, _CHAINS_TAKEN, _COUNTING, _HALTED_SINCE, _GAPS_TAKEN, _NEXT_BEAT = 11, 12, 15, 16, 17, 18
"""Fields of the head."""
_WANTED, _COUNTS = 1, 2
"""Whether it counts: what it is told, and what it says when it does."""
_NOTICED = 0.002
"""Seconds for which QEMU may wait for a CPU before that is told, as the plugin has it."""
_RESTS = 0.002
"""Seconds in which a CPU would have gone on, had there been anything left to do."""
_HEEDED = 0.1
"""Seconds in which a CPU that has anything to do heeds what it is told."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What has happened since counting began; times are seconds."""

    instructions: int
    halted: float
    """In which the CPU had nothing to do."""
    halts: int
    held: float
    """In which it waited, to be no faster than its speed."""
    lost: float
    """In which it should have run and did not, beyond what is made good."""
    arrears: float
    """By which it is behind now; it will make up for that at full speed."""
    time: float
    """When these counts were read, on this machine's monotonic clock."""


@dataclass(frozen=True, slots=True)
class Executed:
    """Blocks of code, each once: three arrays of one length. What programs executed is at address 0."""

    address: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint64]
    """Instructions in the block."""
    executions: npt.NDArray[np.uint64]

    def since(self, earlier: Executed) -> Executed:
        """What was executed after ``earlier``: those blocks only. Blocks are only ever added at the end."""
        executions = self.executions.copy()
        executions[: len(earlier.executions)] -= earlier.executions
        ran = executions > 0
        return Executed(self.address[ran], self.length[ran], executions[ran])


@dataclass(frozen=True, slots=True)
class Followed:
    """Calls that were followed: chains of callers, and what ran in each.

    A chain is a function that was called by a block of another chain; the first is nobody's.
    """

    address: npt.NDArray[np.uint64]
    """By chain, what was called, or where one was first seen whose caller nobody knows."""
    caller: npt.NDArray[np.int64]
    """By chain, the one before it."""
    called_from: npt.NDArray[np.int64]
    """By chain, the block of that one that made the call."""
    chain: npt.NDArray[np.int64]
    """By step, in which chain a block ran."""
    block: npt.NDArray[np.int64]
    executions: npt.NDArray[np.uint64]
    blocks: Executed
    """What the blocks are; their own executions are since counting began."""


class VcpuMeter:
    """The memory of one guest's plugin, which dies with it. Reading costs the guest nothing.

    The guest comes up without being counted, for that would slow its boot down.
    """

    def __init__(self) -> None:
        self.fd = os.memfd_create("pdrgate-vcpu-meter", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        size = _GAPS_AT + _GAPS * _GAP.itemsize
        os.ftruncate(self.fd, size)
        # Whoever made it shorter while we read would end us by SIGBUS.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.fd, size)
        self._memory[:8] = _MAGIC.to_bytes(8, "little")
        self._put(_BOUND_AT, round(LATENESS_BOUND * 1e9))

    def begin(self) -> None:
        """Count from when the CPU has nothing to do for the next time, see `counting`."""
        if not self.counting:
            self._put(_COUNTING_AT, _WANTED)

    @property
    def counting(self) -> bool:
        """Whether the plugin counts, and can hold the CPU."""
        return self._head[_COUNTING] == _COUNTS

    @property
    def speed(self) -> int:
        """Instructions/s at which the CPU is held; 0 when it is as fast as it can."""
        return int.from_bytes(self._memory[_SPEED_AT : _SPEED_AT + 8], "little")

    def hold(self, speed: int) -> None:
        """Hold the CPU at so many instructions/s from now on; 0 lets it run as fast as it can."""
        self._put(_SPEED_AT, speed)

    def counts(self) -> Counts:
        """The sums now."""
        now = time.monotonic()
        _, _, _, instructions, halted, halts, held, lost, arrears, *_, since, _, _ = self._head
        if since:  # it has nothing to do at this moment
            halted += max(0, round(now * 1e9) - since)
        return Counts(instructions, halted / 1e9, halts, held / 1e9, lost / 1e9, arrears / 1e9, now)

    def starved(self, since: float) -> tuple[tuple[float, float], ...]:
        """When, from ``since`` on, QEMU wanted to run and for 2 ms or more had no CPU: from and to, in order.

        Seconds of this machine's monotonic clock; at most the last 256 times, and the one that lasts still.
        """
        now, head = time.monotonic(), self._head
        gaps = np.frombuffer(self._memory, _GAP, min(head[_GAPS_TAKEN], _GAPS), _GAPS_AT).copy()
        times = {(int(begin) / 1e9, int(end) / 1e9) for begin, end in gaps}
        if head[_NEXT_BEAT] and now - head[_NEXT_BEAT] / 1e9 > _NOTICED:
            times.add((head[_NEXT_BEAT] / 1e9, now))
        return tuple(sorted(one for one in times if one[1] > since))

    def rest(self, patience: float) -> None:
        """Wait until the CPU has nothing to do, for so many seconds at most."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            since = self._head[_HALTED_SINCE]
            if since and time.monotonic() - since / 1e9 > _RESTS:
                return
            time.sleep(0.001)

    def executed(self) -> Executed:
        """What each block was executed now."""
        blocks = min(self._head[9], _CAPACITY)  # QEMU wrote it, in which a guest may have got
        found = np.frombuffer(self._memory, _BLOCK, blocks, _HEAD.size).copy()
        return Executed(found["address"], found["length"], found["executions"])

    def follow(self, calls: bool) -> None:
        """Follow calls and returns from now on, which begins anew, or no longer; it makes the CPU slower."""
        self._put(_TRACED_AT, calls)
        deadline = time.monotonic() + _HEEDED
        while (head := self._head)[_TRACING] != calls and not head[_HALTED_SINCE] and time.monotonic() < deadline:
            time.sleep(0.001)  # a CPU that halts heeds it when it goes on

    def followed(self) -> Followed:
        """The calls that were followed last."""
        # A CPU that halted when it was told to follow no longer may go on meanwhile: each step's chain and block are
        # there before the step is, and so they are read after it.
        steps = np.frombuffer(self._memory, _STEP, _STEPS, _STEPS_AT).copy()
        steps = steps[steps["executions"] > 0]
        chains = np.frombuffer(self._memory, _CHAIN, min(self._head[_CHAINS_TAKEN], _CHAINS), _CHAINS_AT).copy()
        return Followed(
            chains["address"], chains["caller"].astype(np.int64), chains["from"].astype(np.int64),
            steps["chain"].astype(np.int64), steps["block"].astype(np.int64), steps["executions"], self.executed(),
        )  # fmt: skip

    @property
    def _head(self) -> tuple[int, ...]:
        return _HEAD.unpack(self._memory[: _HEAD.size])

    def close(self) -> None:
        """Let go of it; may be called twice."""
        if self.fd >= 0:
            self._memory.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _put(self, at: int, value: int) -> None:
        self._memory[at : at + 8] = value.to_bytes(8, "little")
