"""Which paths are affected: those whose packets run functions, or touch variables, that differ between two builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.differences.code_differences import CodeDifferences
from pdrgate.record.path_code import PathCode


@dataclass(frozen=True, slots=True)
class PathDifference:
    """What of the code of a path differs."""

    path: str
    functions: tuple[str, ...] = ()
    """Functions that packets run."""
    variables: tuple[str, ...] = ()
    """Variables that packets touch, and whose initial values differ."""
    set_up: tuple[str, ...] = ()
    """Functions that only set-up runs: what they leave behind may differ."""
    is_known: bool = True
    """Whether it is known what the path runs, and all that it may run was compared."""

    @property
    def is_affected(self) -> bool:
        """Whether packets may cost something else on it, or nobody knows."""
        return bool(self.functions or self.variables) or not self.is_known


def affected_paths(differences: CodeDifferences, codes: Mapping[str, PathCode | None]) -> tuple[PathDifference, ...]:
    """Look at each path.

    Args:
        codes: what each path runs; None where that is not known.
    """
    functions, variables = differences.functions_that_differ(), differences.variables_that_differ()
    whole = not differences.missing and not differences.everywhere

    def look(path: str, code: PathCode | None) -> PathDifference:
        if code is None:
            return PathDifference(path, is_known=False)
        return PathDifference(
            path, tuple(sorted(code.packets & functions)), tuple(sorted(code.variables & variables)),
            tuple(sorted((code.set_up - code.packets) & functions)), whole,
        )  # fmt: skip

    return tuple(look(path, code) for path, code in codes.items())
