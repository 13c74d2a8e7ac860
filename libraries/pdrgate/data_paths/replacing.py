"""A command that replaces what a SUT was set up with, such as its rules, some times in a row."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdrgate.values.errors import SutError, UsageError

REPLACING_SHELL = "bash"
"""Reads the kernel's own counts without another program, which the kernel would have to start."""
TIMES = 4
"""Replacements in a row, where nobody asks for more or fewer."""
_SCRIPT = """\
exec 3>&1 1>&2
look() {
    cpus=0
    while read -r what _ _ _ idle waits _; do
        case $what in cpu) told="${EPOCHREALTIME/./} $idle $waits" ;; cpu*) cpus=$((cpus + 1)) ;; esac
    done </proc/stat
    echo "$told $cpus" >&3
}
look
for ((i = 0; i < $1; i++)); do eval "$2" || exit; done
look
"""
_MOST = 1000
_TICK = 10_000
"""Microseconds in a tick of the kernel's times in /proc/stat, among them the time in which a CPU had nothing to do."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """What replaces something on a SUT."""

    command: str
    """A line for the shell."""
    times: int = TIMES
    """How often in a row."""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise UsageError("a replacement has no command; name one, such as nft -f rules")
        if not 1 <= self.times <= _MOST:
            raise UsageError(f"{self.times} replacements in a row make no sense; use 1 to {_MOST}")

    @property
    def script(self) -> str:
        """A line for a shell that runs the command so often, and prints what `replaced` reads."""
        return shlex.join((REPLACING_SHELL, "-c", _SCRIPT, REPLACING_SHELL, str(self.times), self.command))

    def __str__(self) -> str:
        return f"{self.command} ({self.times} times in a row)"


def replaced(printed: str, times: int) -> Mapping[str, int]:
    """How often it was done, and for how many microseconds no CPU had anything to do: the command was kept waiting.

    Args:
        printed: a line before and one after: microseconds, what all CPUs idled and waited for disks, and their number.

    Raises:
        SutError: it says something else.
    """
    looks = [_numbers(line) for line in printed.splitlines()]
    if len(looks) != 2 or any(len(look) != 4 for look in looks):
        raise SutError(
            f"{REPLACING_SHELL} on the SUT printed no times of a replacement: {printed.strip()!r}; is it that shell?"
        )
    passed, idle, disks, _ = (after - before for before, after in zip(*looks, strict=True))
    # One CPU works at a time: the others have nothing to do anyway.
    waited = (idle + disks) * _TICK - (looks[0][3] - 1) * passed
    return {"done": times, "waited": max(0, waited)}


def _numbers(line: str) -> Sequence[int]:
    try:
        return [int(word) for word in line.split()]
    except ValueError:
        return []
