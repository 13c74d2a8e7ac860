"""What the command line says of a run, as `pdrgate gate` hears it."""

from __future__ import annotations

from typing import Any

import click

from pdrgate.cli.parameters import said_options
from pdrgate.gate.run.options import RunOptions

NO_FIELDS = ("output", "resume", "quiet", "form", "list_scenarios")
"""Options that are no part of what a run is asked for."""


def said(context: click.Context) -> dict[str, Any]:
    """By field, the values that the words of a command line say."""
    given = {name: value for name, value in context.params.items() if name not in NO_FIELDS}
    with context.scope():
        return said_options(given.pop("changes"), given, RunOptions)
