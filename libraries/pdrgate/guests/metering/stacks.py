"""Call stacks of a guest's kernel: instructions by chain of callers, of calls that the plugin has followed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from pdrgate.guests.metering.meter import Followed, VcpuMeter
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.function_names import condensed_stacks, is_thunk, with_callees
from pdrgate.observers.kernel_roles import BEGINS_UNCALLED
from pdrgate.observers.watching import Observation
from pdrgate.record.stretch import CALLER, USER_SPACE, Stacks

LEAST_STACK = 1e-3
"""Share of all instructions, for a chain of callers to be kept by itself."""
_DEEPEST = 256
"""Callers in a row; the plugin follows half as many."""
_ROOM = 1 << 28
"""Largest number of characters in all chains: some 40 000 chains of 25 functions.

A kernel that is made to call in as many ways as it can would fill this machine's memory.
"""


class CallsObserver:
    """Observer that follows the calls of a guest's kernel during a trial. The CPU is slower for it.

    Args:
        observed: makes the observation of the calls, such as `observed_stacks`.
    """

    def __init__(
        self, meter: VcpuMeter, symbols: KernelSymbols, observed: Callable[[Followed, KernelSymbols], Observation]
    ) -> None:
        self._meter = meter
        self._symbols = symbols
        self._observed = observed

    def begin(self) -> None:
        self._meter.follow(True)

    def end(self) -> Observation:
        self._meter.follow(False)
        return self._observed(self._meter.followed(), self._symbols)


def observed_stacks(followed: Followed, symbols: KernelSymbols) -> Observation:
    """The `stacks` that are kept of a trial."""
    return Observation(stacks=condensed_stacks(stacks(followed, symbols), LEAST_STACK))


def stacks(followed: Followed, symbols: KernelSymbols) -> Stacks:
    """Instructions and calls by chain of functions, the caller first.

    A jump to another function's code, as compilers make it of a call at a function's end, counts as a call. An
    interrupt's work begins a chain of its own, and so does the work that it leaves: it is done by whatever thread comes
    along. A function that calls itself is listed once. If nobody knows the caller, as when another thread goes on, the
    most frequent caller is taken. Calls that there is no room for are listed without their callers.
    """
    room = _Room()
    of_block = symbols.names(followed.blocks.address)
    of_chain = symbols.names(followed.address)
    paths: list[tuple[str, ...]] = [()]
    for number in range(1, len(of_chain)):
        path, caller = paths[followed.caller[number]], of_block[followed.called_from[number]]
        if caller != USER_SPACE:  # as those whose caller is not known have it
            path = _extended(path, caller)
        paths.append(_extended(path, of_chain[number]))
    instructions = followed.executions * followed.blocks.length[followed.block]
    calls = np.where(symbols.begin(followed.blocks.address)[followed.block], followed.executions, np.uint64(0))
    # Most chains differ only in the block that calls, and most steps in the block of a function.
    stacks: dict[tuple[tuple[str, ...], str], str] = {}
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for chain, block, executed, called in zip(
        followed.chain.tolist(), followed.block.tolist(), instructions.tolist(), calls.tolist(), strict=True
    ):
        if (name := of_block[block]) != USER_SPACE:
            step = (paths[chain], name)
            if (stack := stacks.get(step)) is None:
                callers = [one for one in _extended(*step)[:-1] if not is_thunk(one)]
                stack = stacks[step] = room.kept(CALLER.join([*callers, name]), name)
            _add(found, stack, executed, called)
    return _rooted(found)


def _rooted(found: Stacks) -> Stacks:
    """Put each stack whose caller is not known to where the same function was called most."""
    inclusive = with_callees(found)
    most: dict[str, str] = {}
    for whole in sorted(inclusive, key=inclusive.__getitem__):
        most[whole.rpartition(CALLER)[2]] = whole
    rooted: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    room = _Room()
    for stack, (instructions, calls) in found.items():
        first, behind, rest = stack.partition(CALLER)
        _add(rooted, room.kept(most[first] + behind + rest, stack.rpartition(CALLER)[2]), instructions, calls)
    return dict(rooted)


def _add(found: dict[str, tuple[int, int]], stack: str, instructions: int, calls: int) -> None:
    known = found[stack]
    found[stack] = known[0] + instructions, known[1] + calls


def _extended(path: tuple[str, ...], name: str) -> tuple[str, ...]:
    if path and path[-1] == name:
        return path
    return (name,) if BEGINS_UNCALLED.match(name) or len(path) >= _DEEPEST else (*path, name)


class _Room:
    """Room that is left for chains."""

    def __init__(self) -> None:
        self._left = _ROOM

    def kept(self, stack: str, name: str) -> str:
        """The chain, or the function at its end where there is no more room."""
        needed = len(stack) * (stack.count(CALLER) + 1)
        if needed > self._left:
            return name
        self._left -= needed
        return stack
