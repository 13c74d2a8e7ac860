"""What a kernel runs on one path."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_PATH = ""
"""The scenario whose set-up is what a kernel runs on every path: for any command, and by itself."""


@dataclass(frozen=True, slots=True)
class PathCode:
    """Names of the functions that a kernel runs on a path, and of the variables that packets touch there.

    A name is that of reports: parts of a function have the function's.
    """

    packets: frozenset[str] = frozenset()
    """Functions that ran while packets were handled."""
    set_up: frozenset[str] = frozenset()
    """Functions that ran while the path was set up, and for no other reason."""
    variables: frozenset[str] = frozenset()
    """Static and per-CPU variables whose cache lines packets touched."""

    @property
    def functions(self) -> frozenset[str]:
        """All functions that decide what packets cost."""
        return self.packets | self.set_up
