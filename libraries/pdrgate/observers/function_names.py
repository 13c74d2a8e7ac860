"""Names of functions for reports: of the kernel, of its modules, of BPF programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pdrgate.record.stretch import CALLER, USER_SPACE, Stacks

OTHERS = "all others"
"""Functions that have hardly any instructions, reported as one."""

UNNAMED = "code without a name"
"""Kernel code that has no name."""
_NO_FUNCTION = frozenset((OTHERS, UNNAMED, USER_SPACE))

PROGRAM = "bpf:"
"""The name of a BPF program, or of a part of one, begins with it."""
_BPF = re.compile(r"bpf_prog_[0-9a-f]{16}_?")
_BRANCH_THUNK = re.compile(
    r"(?:__pi_)?__x86_indirect_(?:\w+_)?thunk|__llvm_(?:retpoline|slsblr_thunk)_|__call_indirect_|__s390_indirect_jump"
)
"""Functions that compilers call for indirect jumps and calls: GCC's and Clang's for x86, arm64's and s390's."""
_RETURN_THUNK = re.compile(r"(?!set_)\w+_return_thunk$")
_THUNK = re.compile(r"__x86_(?:\w+_)?thunk|\w+_(?:safe|untrain)_ret$|(?:entry|write)_ibpb$|clear_bhb_loop")
_MADE_OF = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b.*")


def function_name(symbol: str) -> str:
    """The function that a symbol is, or is part of: without what the compiler and the BPF loader add to its name."""
    name = _MADE_OF.sub("", symbol)
    if (program := _BPF.match(name)) is not None:
        return f"{PROGRAM}{name[program.end() :] or 'program'}"
    return name


def kernel_functions(names: Iterable[str]) -> frozenset[str]:
    """The names among them that functions of the kernel and of its modules have."""
    return frozenset(one for one in names if one not in _NO_FUNCTION and not one.startswith(PROGRAM))


def is_thunk(name: str) -> bool:
    """Whether it is a piece of code that a call goes through, for the sake of speculation: it calls nobody by itself,
    and which of several is gone through is the compiler's choice of a register."""
    return _THUNK.match(name) is not None or branches_by(name) or returns_by(name)


def branches_by(name: str) -> bool:
    """Whether it is a thunk that an indirect jump or call goes through."""
    return _BRANCH_THUNK.match(name) is not None


def returns_by(name: str) -> bool:
    """Whether it is what a return goes through, and none of the thunks that this goes through in turn."""
    return _RETURN_THUNK.match(name) is not None


def condensed_stacks(stacks: Stacks, least: float) -> dict[str, tuple[int, int]]:
    """Stacks without the callees that have, with all that they call, less than the share ``least`` of all instructions.
    Their instructions count for their callers."""
    inclusive = with_callees(stacks)
    enough = least * sum(instructions for instructions, _ in stacks.values())
    kept: dict[str, tuple[int, int]] = {}
    for stack, (instructions, calls) in stacks.items():
        own = next((whole for whole in with_callers(stack) if inclusive[whole] >= enough), OTHERS)
        known = kept.get(own, (0, 0))
        kept[own] = known[0] + instructions, known[1] + (calls if own == stack else 0)
    return kept


def with_callees(stacks: Stacks) -> dict[str, int]:
    """Instructions of each function in each chain of callers, its callees there included."""
    found: dict[str, int] = {}
    for stack, (instructions, _) in stacks.items():
        for whole in with_callers(stack):
            found[whole] = found.get(whole, 0) + instructions
    return found


def with_callers(stack: str) -> Iterator[str]:
    """The stack, its caller's, and so on up to the first."""
    while stack:
        yield stack
        stack = stack.rpartition(CALLER)[0]


def condensed(functions: Mapping[str, tuple[int, int]], least: float) -> dict[str, tuple[int, int]]:
    """Functions with those below the share ``least`` of all instructions merged into one entry."""
    total = sum(instructions for instructions, _ in functions.values())
    kept = {name: counted for name, counted in functions.items() if counted[0] >= least * total}
    if rest := total - sum(instructions for instructions, _ in kept.values()):
        instructions, calls = kept.get(OTHERS, (0, 0))
        kept[OTHERS] = (instructions + rest, calls)
    return kept
