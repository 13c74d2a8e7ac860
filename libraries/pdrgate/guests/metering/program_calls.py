"""Instructions of BPF programs and all that they call in a guest, by function: by calls that the plugin has
followed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pdrgate.guests.metering.function_counts import code_reached
from pdrgate.guests.metering.meter import Executed, Followed
from pdrgate.guests.metering.symbols import KernelSymbols
from pdrgate.observers.function_names import PROGRAM
from pdrgate.observers.kernel_roles import BEGINS_UNCALLED, ENDS_UNCALLED
from pdrgate.observers.watching import Observation
from pdrgate.record.stretch import Functions


def observed_programs(followed: Followed, symbols: KernelSymbols) -> Observation:
    """The `program_calls` of a trial, and how much of the programs' code ran; the symbols are those of the guest with
    the programs loaded."""
    blocks, ran = followed.blocks, np.unique(followed.block)
    known = len(blocks.bytes) == len(blocks.address)
    executed = Executed(
        blocks.address[ran], blocks.length[ran], blocks.executions[ran],
        bytes=blocks.bytes[ran] if known else blocks.bytes[:0],
    )  # fmt: skip
    return Observation(*code_reached(symbols.reached(executed)), functions=program_calls(followed, symbols))


def program_calls(followed: Followed, symbols: KernelSymbols) -> Functions:
    """Instructions and calls by function, of programs and of what they call.

    What an interrupt does meanwhile is no part of it. To name each chain of callers takes a hundred times as long.
    """
    ran, at = np.unique(followed.block, return_inverse=True)
    of_block = symbols.names(followed.blocks.address[ran])
    within = _chains(followed, symbols)[followed.chain]
    own = np.array([name.startswith(PROGRAM) for name in of_block], dtype=np.bool_)
    foreign = np.array([_of_interrupt(name) for name in of_block], dtype=np.bool_)
    counted = (within | own[at]) & ~foreign[at]
    instructions = followed.executions * followed.blocks.length[followed.block]
    begins = symbols.begin(followed.blocks.address)[followed.block]
    found: dict[str, tuple[int, int]] = {}
    for step in np.flatnonzero(counted).tolist():
        name = of_block[at[step]]
        known = found.get(name, (0, 0))
        calls = int(followed.executions[step]) if begins[step] else 0
        found[name] = known[0] + int(instructions[step]), known[1] + calls
    return found


def _chains(followed: Followed, symbols: KernelSymbols) -> npt.NDArray[np.bool_]:
    """Whether each chain of callers has a program in it.

    What a program calls has a chain of its own. What it jumps to, as to the thunk by which it returns, does not count:
    the program may have been jumped to as well, and then that stands in its caller's chain.
    """
    of_chain = symbols.names(followed.address)
    called_from = symbols.names(followed.blocks.address[followed.called_from])
    callers = followed.caller.tolist()
    found = [False] * len(of_chain)
    for number in range(1, len(of_chain)):
        name, caller = of_chain[number], called_from[number]
        if not _of_interrupt(name) and not _of_interrupt(caller):
            found[number] = found[callers[number]] or caller.startswith(PROGRAM)
    return np.array(found, dtype=np.bool_)


def _of_interrupt(name: str) -> bool:
    """Whether it is code by which an interrupt comes, or goes: what it calls nobody has called who was interrupted."""
    return BEGINS_UNCALLED.match(name) is not None or ENDS_UNCALLED.match(name) is not None
