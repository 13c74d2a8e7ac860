"""An sshd of a machine that has the collector of Retis, or what stands for it: the program `retis` beside this file."""

from __future__ import annotations

import gzip
import os
import shlex
from pathlib import Path

from ssh_server import SshServer

_HERE = Path(__file__).parent
EVENTS = _HERE.parent / "data/retis-1.6.4.data.gz"
"""Of the real one: 200 packets of one namespace."""


def server_with_retis(folder: Path, **said: object) -> SshServer:
    """A server in a new folder, and what the stand-in is told: variables as it names them, without ``RETIS_``."""
    folder.mkdir()
    events = folder / "events"
    events.write_bytes(gzip.decompress(EVENTS.read_bytes()))
    known = {"PATH": f"{_HERE}:{os.environ['PATH']}", "RETIS_EVENTS": events}
    known |= {f"RETIS_{name.upper()}": value for name, value in said.items()}
    return SshServer(folder, f"SetEnv {' '.join(f'{name}={value}' for name, value in known.items())}")


def local_retis(folder: Path, **said: object) -> None:
    """Make, or make anew, the stand-in of this machine: ``folder/retis``, which is told the same. No environment
    reaches a program that a host starts."""
    folder.mkdir(exist_ok=True)
    told = " ".join(f"RETIS_{name.upper()}={shlex.quote(str(value))}" for name, value in said.items())
    (folder / "retis").write_text(f'#!/bin/sh\n{told} exec {shlex.quote(str(_HERE / "retis"))} "$@"\n')
    (folder / "retis").chmod(0o755)
