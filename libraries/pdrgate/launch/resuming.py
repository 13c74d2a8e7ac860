"""Going on with a run: with its own options, and with no commands that only a stranger's folder names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.options import OPTIONS_FILE, RunOptions
from pdrgate.history.address import Address
from pdrgate.history.seal import is_sealed
from pdrgate.launch.folders import refuse_linked
from pdrgate.this_process.own_files import is_own
from pdrgate.values.errors import UsageError


def resumed_options(folder: Path, asked: Mapping[str, Any], typed: Mapping[str, str]) -> RunOptions:
    """The options of the run in a folder, to go on with it.

    A folder that was begun here, by this user, is taken at its word. Of any other one, nothing is run or written that
    its run.json alone names: it is pdrgate's own, or this command names it as well.

    Args:
        asked: what this command has for each option, by field, with defaults.
        typed: the fields that the command line itself sets, with the option that it uses.

    Raises:
        UsageError: the command line sets an option that the run has, to another value, or one that is not asked again;
            or run.json names commands that nobody here has asked for.
        DataError: the folder holds no run, or what no run leaves.
    """
    for name, option in typed.items():
        if not declarations(RunOptions)[name].said.commands:
            raise UsageError(f"--resume takes the options of the run that it continues; leave out {option}")
    refuse_linked(folder)
    options = RunOptions.of_run(folder)
    for name, option in typed.items():
        if _absolute(asked[name]) != _absolute(getattr(options, name)):
            raise UsageError(f"{option}: the run in {folder} was made with another; name that, or start a new run")
    if is_sealed(folder / OPTIONS_FILE):
        return options
    if words := list(_unasked(folder, options, asked)):
        raise UsageError(
            f"{folder} was not begun here, and its {OPTIONS_FILE} names what would be run or written with your rights; "
            f"where that is yours, say it too: --resume {shlex.quote(str(folder))} {shlex.join(words)}"
        )
    return options


def _unasked(folder: Path, options: RunOptions, asked: Mapping[str, Any]) -> Iterator[str]:
    """The words of each option that is a command, and that neither pdrgate nor this command line has."""
    for name, one in declarations(RunOptions).items():
        value = getattr(options, name)
        if not one.said.commands or value == one.default or _absolute(asked.get(name)) == _absolute(value):
            continue
        if name == "against" and not options.bpf:
            continue  # a kernel, which boots in a guest
        for each in value if isinstance(value, tuple) else (value,):
            if each is not None and not (isinstance(each, Path) and is_own(each)):
                yield from one.words(each)


def _absolute(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_absolute, value))
    return value.absolute() if isinstance(value, Path | Address) else value
