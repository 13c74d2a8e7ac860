"""What differs between two builds, in lines and as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pdrgate.differences.affected_paths import PathDifference
from pdrgate.differences.code_differences import CodeDifferences, ObjectKind
from pdrgate.values.printable import first_names, printable

_LISTED = 40
"""Functions, or variables, that are listed."""
_NAMED = 4
"""Functions that are named of a path."""


def affected_lines(found: CodeDifferences, paths: Sequence[PathDifference]) -> Iterator[str]:
    """Lines of text: how much differs, what, and on which paths."""
    kinds: tuple[tuple[ObjectKind, int], ...] = (("function", found.functions), ("variable", found.variables))
    for kind, number in kinds:
        differ = [one for one in found.differ if one.kind == kind]
        changed, gone, new = (sum(one.how == how for one in differ) for how in ("changed", "gone", "new"))
        yield f"{changed} of {number} {kind}s differ, {gone} are gone, {new} are new"
        for one in differ[:_LISTED]:
            yield f"  {printable(one.label)}{'' if one.how == 'changed' else f' ({one.how})'}"
        if len(differ) > _LISTED:
            yield f"  and {len(differ) - _LISTED} more"
    if found.everywhere:
        yield "the builds have another compiler, configuration or layout"
    yield f"{found.modules} modules compared"
    for why in found.missing:
        yield f"  not compared: {printable(why)}"
    if not paths:
        yield "what paths run on the baseline is not known: compare it once by pdrgate gate, or name --history"
    else:
        affected = [one for one in paths if one.is_affected]
        yield f"{len(affected)} of {len(paths)} paths run code that differs"
        for path in affected:
            yield f"  {printable(path.path)}: {_functions(path)}"
        if set_up := sorted({name for one in paths for name in one.set_up}):
            yield f"the set-up of {sum(bool(one.set_up) for one in paths)} of them runs {first_names(set_up, _NAMED)}"


def affected_values(found: CodeDifferences, paths: Sequence[PathDifference]) -> Mapping[str, object]:
    """What differs between two builds, as values of JSON."""
    return {
        "compared": {"functions": found.functions, "variables": found.variables, "modules": found.modules},
        "differ": [{"kind": one.kind, "module": one.module, "name": one.name, "how": one.how} for one in found.differ],
        "everywhere": found.everywhere,
        "missing": list(found.missing),
        "paths": [
            {
                "path": one.path,
                "affected": one.is_affected,
                "known": one.is_known,
                "functions": list(one.functions),
                "variables": list(one.variables),
                "set_up": list(one.set_up),
            }
            for one in paths
        ],
    }


def _functions(path: PathDifference) -> str:
    if not path.is_known:
        return "what it runs is not known"
    return first_names(path.functions + path.variables, _NAMED)
