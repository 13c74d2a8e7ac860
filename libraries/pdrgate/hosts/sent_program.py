"""A program of ours that is sent to a host, unless it lies there already: on this machine, and in guests.

Such a program is statically linked, and ends with a code of its own where it is asked for nothing.
"""

from __future__ import annotations

from pathlib import Path

from pdrgate.hosts.host import CommandError, Host

_USAGE = 64
"""The program's exit code when it is asked for nothing: it runs there."""


def sent(host: Host, program: Path, folder: str, what: str) -> str:
    """The path of the program on the host, once it is there and seen to run.

    Args:
        program: the file on this machine, in a folder that is named after what it was made of.
        folder: where it is put on the host.
        what: its name in words and the plural: ``the receivers``.

    Raises:
        CommandError: it does not run there.
    """
    if host.exists(str(program)):
        return str(program)
    path = f"{folder}/{program.name}"
    host.put(path, program.read_bytes(), 0o700)
    if (tried := host.run(path, check=False)).exit_code != _USAGE:
        raise CommandError(host.name, f"the program of {what}, which this machine has built,", tried)
    return path
