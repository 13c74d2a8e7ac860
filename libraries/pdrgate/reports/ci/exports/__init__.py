"""Results in the formats of others, so that people keep the dashboards that they have.

Each export is a file here: its name is that on the command line, and its ``EXPORT`` the function that writes it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from pdrgate.results.model import RunResult

EXPORTS = tuple(sorted(one.name for one in iter_modules(__path__)))
"""The names of the exports."""


def exported(name: str, result: RunResult) -> str:
    """A result as the export of that name writes it."""
    text: str = import_module(f"{__name__}.{name}").EXPORT(result)
    return text
