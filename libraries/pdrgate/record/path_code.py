"""What a kernel runs on one path."""

from __future__ import annotations

from dataclasses import dataclass


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

    def with_more(self, other: PathCode) -> PathCode:
        """What either of two kernels, or of two looks at one, has shown."""
        packets = self.packets | other.packets
        return PathCode(packets, (self.set_up | other.set_up) - packets, self.variables | other.variables)
