"""Names of functions, as they are told: of the kernel, of its modules, of BPF programs."""

from __future__ import annotations

import re
from collections.abc import Mapping

OTHERS = "all others"
"""Functions that have hardly any instructions, told as one."""

_BPF = re.compile(r"bpf_prog_[0-9a-f]{16}_?")
_MADE_OF = re.compile(r"\.(?:isra|constprop|part|cold|llvm)\b.*")


def function_name(symbol: str) -> str:
    """The function that a symbol is, or is part of: without what the compiler and the BPF loader add to its name."""
    name = _MADE_OF.sub("", symbol)
    if (program := _BPF.match(name)) is not None:
        return f"bpf:{name[program.end() :] or 'program'}"
    return name


def condensed(functions: Mapping[str, tuple[int, int]], least: float) -> dict[str, tuple[int, int]]:
    """Without the functions that have less than the share ``least`` of all instructions: these are told as one."""
    total = sum(instructions for instructions, _ in functions.values())
    kept = {name: counted for name, counted in functions.items() if counted[0] >= least * total}
    if rest := total - sum(instructions for instructions, _ in kept.values()):
        instructions, calls = kept.get(OTHERS, (0, 0))
        kept[OTHERS] = (instructions + rest, calls)
    return kept
