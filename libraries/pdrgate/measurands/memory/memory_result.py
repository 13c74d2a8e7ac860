"""What a packet does with memory, by all trials of a build."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.measurands.counted.estimated_cycles import priced_of
from pdrgate.measurands.functions.more_by_function import lines_by_kind, names_of
from pdrgate.measurands.memory.of_memory import OfMemory
from pdrgate.measurands.memory.touched_lines import OF_MEMORY
from pdrgate.record.stretch import MemorySeen
from pdrgate.results.model import MemoryFunction, MemoryResult

_LEAST = 0.02
"""The least of any of these for a packet with which a function is in the result."""


def memory_result(seen: Sequence[MemorySeen], measurands: Sequence[type[OfMemory]] = OF_MEMORY) -> MemoryResult | None:
    """What a packet does with memory by all trials of a build; None where no trial saw it.

    Args:
        measurands: those that these trials have values of.
    """
    if not seen:
        return None
    functions = []
    for name in sorted({name for one in seen for name in one.functions}):
        found = {kind.about.name: [kind.by_function(one).get(name, 0.0) for one in seen] for kind in measurands}
        if max(map(max, found.values())) >= _LEAST:
            values = {key: tuple(value) for key, value in found.items()}
            writer = next((one.writers[name] for one in seen if name in one.writers), "")
            fields = {line: text for one in seen for line, text in one.fields.get(name, {}).items()}
            kinds = lines_by_kind(seen, name)
            missed = {
                kind.about.name: names
                for kind in measurands
                if not kind.of_lines and (names := names_of(seen, name, kind.counted))
            }
            fills = any(one.functions[name].fills_pages for one in seen if name in one.functions)
            functions.append(
                MemoryFunction(
                    name=name, values=values, kinds=kinds, missed=missed, fields=fields, writer=writer,
                    fills_pages=fills,
                )
            )  # fmt: skip
    whole = {kind.about.name: tuple(sum(kind.by_function(one).values()) for one in seen) for kind in measurands}
    return MemoryResult(
        trials=len(seen), values=whole, functions=tuple(functions), cpus=seen[0].cpus,
        priced=priced_of(seen)._asdict(), missing=tuple(dict.fromkeys(why for one in seen for why in one.missing)),
    )  # fmt: skip
