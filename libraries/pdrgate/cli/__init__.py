"""Floor 6: the command ``pdrgate``. A command is a file: it parses, calls a floor, prints.

numpy costs more to start than all of the rest: commands import what computes only when they run.
"""

from pdrgate.cli.command_line import cli, main

__all__ = ["cli", "main"]
