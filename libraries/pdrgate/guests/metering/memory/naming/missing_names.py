"""Lines of a kernel without names, and why: the kernel is too old or too new for it, or built without.

Such a kernel is measured all the same. The reasons are reported beside the verdict, so that nobody takes a line without
a name for one that has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pdrgate.guests.guest_memory import PAGE
from pdrgate.guests.metering.memory.line_areas import LineArea, LineKind
from pdrgate.guests.metering.static_data import CPU_AREAS, CPU_END, MAPS, PAGE_TABLES, SLAB_CACHES, StaticData

_MOST = 0.1
"""A share of the lines of a kind that may have no name: what is no page's, nor any variable's."""
_ALL = 0.999
"""Share of per-CPU lines that may have no name: much of this memory is allocated, and no variable's."""
_VARIABLES, _CACHES, _PER_CPU, _MAPS = "variables", "slab caches", "per-CPU variables", "BPF maps"


@dataclass(frozen=True, slots=True)
class LinesOfKind:
    """Number of touched lines of one kind, and number of those that have a name."""

    touched: int = 0
    named: int = 0

    @property
    def unnamed(self) -> float:
        """The share without a name."""
        return 1 - self.named / self.touched if self.touched else 0.0


@dataclass(frozen=True, slots=True)
class TypesRead:
    """Structs and members that were looked for in a kernel's types and are not there, such as ``xa_node.slots``."""

    of_maps: Collection[str] = ()
    of_caches: Collection[str] = ()
    of_each_cpu: Collection[str] = ()


def missing_names(
    data: StaticData, areas: Sequence[LineArea], types: TypesRead | None, lines: dict[LineKind, LinesOfKind],
    page_size: int = PAGE,
) -> tuple[str, ...]:  # fmt: skip
    """``no names of BPF maps, no fields: its types are not known (CONFIG_DEBUG_INFO_BTF)``, one for each reason.

    Args:
        data: the kernel's variables.
        types: what its types lack; None where it has no types.
        lines: what was touched, by the kinds that may have names.
        page_size: bytes of a page of the kernel.
    """
    why: dict[str, list[str]] = {}
    known: set[str] = set()
    of_pages = [(_names_of(_CACHES, _PER_CPU, _MAPS), f"the kernel has pages of {page_size >> 10} KiB")]
    for lost, reason in (*(of_pages if page_size != PAGE else ()), *_reasons(data, areas, types, lines)):
        if new := [one for one in lost if one not in known]:
            known.update(new)
            why.setdefault(reason, []).extend(new)
    return tuple(f"no {', no '.join(lost)}: {reason}" for reason, lost in why.items())


def _reasons(
    data: StaticData, areas: Sequence[LineArea], types: TypesRead | None, lines: dict[LineKind, LinesOfKind]
) -> Iterator[tuple[list[str], str]]:
    """Names lost by each reason, the gravest first."""
    of_memory = _names_of(_CACHES, _PER_CPU, _MAPS)
    if not data.names:
        yield _names_of(_VARIABLES) + of_memory, "the kernel's table of symbols has no variables (CONFIG_KALLSYMS_ALL)"
    if not {LineKind.DIRECT, LineKind.PAGE} <= {one.kind for one in areas}:
        yield of_memory, "the kernel does not show where it maps its memory and pages (CONFIG_PROC_KCORE)"
    if not any(one in data.marks for one in PAGE_TABLES):
        yield of_memory, f"the kernel's symbols have no {' or '.join(PAGE_TABLES)}"
    for lost, needed in ((_names_of(_CACHES), [SLAB_CACHES]),
                         (_names_of(_PER_CPU), [CPU_AREAS, CPU_END])):  # fmt: skip
        if lacking := [one for one in needed if one not in data.marks]:
            yield lost, f"the kernel's symbols have no {', '.join(lacking)}"
    if types is None:
        yield [*_names_of(_MAPS), "fields of structs"], "the kernel's image has no types (CONFIG_DEBUG_INFO_BTF)"
        types = TypesRead()
    elif MAPS not in data.marks:
        yield _names_of(_MAPS), f"the kernel's symbols have no {MAPS}"
    for lost, members in (
        (_names_of(_MAPS), types.of_maps),
        ([f"fields of {_CACHES}"], types.of_caches),
        ([f"fields of {_PER_CPU}"], types.of_each_cpu),
    ):
        if members:
            yield lost, f"the kernel's types have no {', '.join(sorted(members))}"
    for kind, what, most, read in (
        (LineKind.DIRECT, _CACHES, _MOST, "notes of pages (struct page)"),
        (LineKind.SYMBOL, _VARIABLES, _MOST, "symbols"),
        (LineKind.PER_CPU, _PER_CPU, _ALL, f"areas of CPUs ({CPU_AREAS})"),
    ):
        unnamed = lines.get(kind, LinesOfKind()).unnamed
        if unnamed > most:
            yield _names_of(what), f"the kernel's {read} have none for {100 * unnamed:.0f} % of the lines"


def _names_of(*what: str) -> list[str]:
    return [f"names of {one}" for one in what]
