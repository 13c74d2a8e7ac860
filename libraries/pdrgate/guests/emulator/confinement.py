"""Confinement of QEMU: it may do no more than run a guest, for whoever breaks out of a stranger's kernel is in QEMU.

It runs in a sandbox, as a user of its own, which owns nothing on this machine, without privileges, and may start no
program and change no user, priority or CPU (seccomp). All that it needs is handed to it as descriptors: image,
initramfs, console, TAPs, channels, the meter's memory and plugin. Its CPUs and its priority are set from outside.
"""

from __future__ import annotations

import functools
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from pdrgate.builds.architecture import Architecture
from pdrgate.guests.emulator.qemu import Accelerator, find_qemu
from pdrgate.hosts.sandbox import DIES_WITH_PARENT, Sandbox, User, lacking, nobody
from pdrgate.this_process.child_environment import run_program
from pdrgate.values.errors import TestbedError

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

_KVM = Path("/dev/kvm")
_SIGNALLED = 128
"""Number that bwrap adds to that of a signal that ended its program."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """User and view of QEMU on this machine.

    Args:
        user: whom it runs as;
        None: whoever runs pdrgate.
        sandbox: what of this machine it sees;
        None: all that this user sees.
        sentence: what is not as it should be, as a sentence; empty when all is.
    """

    user: User | None = None
    sandbox: Sandbox | None = None
    sentence: str = ""

    def command(self, *command: str, namespace: str | None) -> list[str]:
        """The words that start QEMU, which writes a line to its standard output first, and else to its standard error.

        Args:
            namespace: the network namespace that it is in; None: one of its own, in a sandbox.
        """
        enter = [] if namespace is None else ["ip", "netns", "exec", namespace]
        command = ("sh", "-c", 'echo && exec "$@" >&2', "sh", *command)
        if self.sandbox is not None:
            return [*enter, *replace(self.sandbox, network=namespace is not None).command(*command)]
        return [*enter, *(DIES_WITH_PARENT if self.user is None else self.user.words), *command]

    def exit_code(self, code: int) -> int:
        """QEMU's exit code, negative for a signal as `subprocess` has it, from that of what it was started in."""
        return _SIGNALLED - code if self.sandbox is not None and code > _SIGNALLED else code


def confine(architecture: Architecture, accelerator: Accelerator) -> Confinement:
    """A user and a sandbox for one guest's QEMU."""
    devices = (_KVM,) if accelerator == "kvm" else ()
    if os.geteuid() != 0:
        return Confinement(sandbox=None if lacking() else Sandbox(readable=_elsewhere(architecture), devices=devices))
    try:
        user = nobody()
    except TestbedError as error:
        return Confinement(sentence=f"QEMU runs as root: {error}")
    assert user is not None
    if (closed := _closed_to_others(Path(find_qemu(architecture)))) is not None:
        return Confinement(sentence=f"QEMU runs as root: only root may use {closed}, where QEMU is")
    if accelerator == "kvm":
        about = _KVM.stat()
        if about.st_mode & stat.S_IRWXO & 0o006 != 0o006:
            if not about.st_gid or about.st_mode & 0o060 != 0o060:
                return Confinement(sentence=f"QEMU runs as root: only root may open {_KVM}")
            user = User(user.uid, user.gid, (about.st_gid,))
    if why := lacking():
        return Confinement(user, sentence=f"QEMU sees the files of this machine: {why}")
    return Confinement(user, Sandbox(user, _elsewhere(architecture), devices=devices))


def _elsewhere(architecture: Architecture) -> dict[str, Path]:
    """Folders of QEMU's files, if they are not among the system's programs."""
    real = Path(find_qemu(architecture)).resolve()
    if real.is_relative_to("/usr"):
        return {}
    # PREFIX/bin/qemu… has its data in PREFIX/share.
    place = real.parents[1] if real.parent.name == "bin" and len(real.parents) > 3 else real.parent
    return {str(place): place}


@functools.cache
def sandboxes(architecture: Architecture) -> bool:
    """Whether this machine's QEMU knows how to deny itself system calls."""
    nothing = ("-nodefaults", "-display", "none", "-machine", "none", "-device", "none-such")
    return "none-such" in run_program(find_qemu(architecture), "-sandbox", SANDBOX, *nothing).stderr


def _closed_to_others(program: Path) -> Path | None:
    """The file or folder that keeps another user from starting a program; None if nothing does."""
    real = program.resolve()
    readable = real.stat().st_mode & 0o005 == 0o005
    folders = (*real.parents, *program.absolute().parents)
    return next((one for one in folders if not one.stat().st_mode & stat.S_IXOTH), None if readable else real)
