"""Structs of per-CPU variables, by the types of a kernel: no kernel has types of other variables."""

from __future__ import annotations

from pdrgate.bpf.btf import Types
from pdrgate.guests.metering.memory.naming.slab_objects import StructPart

_SECTION = ".data..percpu"


class PerCpuStructs:
    """The structs of a kernel's per-CPU variables.

    Args:
        begin: where the variables begin, as the kernel's file has them.
    """

    def __init__(self, types: Types, begin: int) -> None:
        self._types = types
        self._begin = begin
        self._known: dict[int, tuple[str, tuple[str, ...]] | None] = {}
        try:
            self._placed = types.placed(_SECTION)
        except ValueError:  # a stranger's types are damaged
            self._placed = {}

    @property
    def lacking(self) -> list[str]:
        """The section of per-CPU variables, where the kernel's types have none of these."""
        return [] if self._placed else [_SECTION]

    def part(self, variable: int, address: int) -> StructPart | None:
        """The struct of a variable; None if it is no struct, or not known.

        Args:
            variable: where it begins, as the kernel's file has it.
            address: where a CPU's own begins.
        """
        if variable not in self._known:
            try:
                self._known[variable] = self._struct(self._placed.get(variable - self._begin))
            except ValueError:
                self._known[variable] = None
        found = self._known[variable]
        return None if found is None else StructPart(*found, address)

    def _struct(self, number: int | None) -> tuple[str, tuple[str, ...]] | None:
        kind = None if number is None else self._types.kind(number)
        if number is None or kind is None or kind.sort != "struct" or not kind.name:
            return None
        return kind.name, self._types.layout(number)
