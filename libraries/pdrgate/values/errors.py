"""The error family: every message is one line that says what, where, and what to do next.

The exit codes are a contract with other programs: 0 the gate passes, 1 it fails because of the SUT,
2 the testbed, a boot, a file or a tool failed, 3 what was measured does not decide, 64 the command line is wrong (BSD
``EX_USAGE``).
"""

import contextlib
import re
from collections.abc import Callable, Iterator

from pdrgate.values.printable import printable

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_FAULT = 2
EXIT_UNDECIDED = 3
EXIT_USAGE = 64

EXIT_UNTESTABLE = 125
EXIT_STOP = 255
"""``git bisect run`` reads this code as: this build cannot be tested, and nothing can be tested."""

_LONGEST = 4000
"""Characters of a message."""


class PdrGateError(Exception):
    """Base of all errors that pdrgate raises on purpose. The message is one line for the user."""

    exit_code = EXIT_FAULT

    def __init__(self, message: str) -> None:
        # What it quotes may be a stranger's: the end of a console, a file's name, all that a program printed.
        cut = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        super().__init__(printable(" ".join(cut.split())))


class UsageError(PdrGateError):
    """The caller asked for something that has no meaning: an unknown unit, a load of 0, a bad option."""

    exit_code = EXIT_USAGE


class UnitError(UsageError, ValueError):
    """A quantity could not be parsed. Also a ValueError, so that Robot converters report it as a bad argument."""


class TestbedError(PdrGateError):
    """The testbed cannot do what was asked: missing tools, no namespaces, a knob that does not stick."""

    __test__ = False  # the name begins like a test class; pytest must not collect it


class ToolError(TestbedError):
    """A program that the measurement takes is not installed, or does not do what it is for: no build is to blame."""


class SutError(TestbedError):
    """The system under test did not come up, died, does not answer, or was refused.

    Its build is to blame, unless the build beside it fails the same way.
    """


class HeldError(TestbedError):
    """Others have what was asked for: nothing was measured, and nothing is said of any build."""


class GeneratorError(PdrGateError):
    """The traffic generator failed, and there is no trial."""


class DataError(PdrGateError):
    """A file that should hold trials or results does not. The message names file and line."""


class StorageError(PdrGateError):
    """A measurement could not be put on disk (full disk, no permission)."""


def without_value(error: Exception) -> str:
    """A decoder's message about a file, without the value that it quotes: root reads files that others only name."""
    fault, at, place = str(error).rpartition(" - at `")
    return re.sub(r"(?s)(enum value) .*", r"\1", fault if at else place) + (f"{at}{place}" if at else "")


@contextlib.contextmanager
def closed_on_error(close: Callable[[], object]) -> Iterator[None]:
    """Call ``close`` if what follows fails. The first error is raised; a failure of ``close`` becomes a note of it."""
    try:
        yield
    except BaseException as error:
        try:
            close()
        except PdrGateError as failure:
            error.add_note(str(failure))
        raise


def all_closed(*closing: Callable[[], object]) -> None:
    """Call each, whatever becomes of the others. Raises TestbedError with all that failed."""
    failures: list[str] = []
    for close in closing:
        try:
            close()
        except PdrGateError as error:
            failures.append(str(error))
    if failures:
        raise TestbedError("; ".join(failures))
