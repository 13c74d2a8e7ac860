"""What QEMU may do: no more than run a guest, for who breaks out of a stranger's kernel is in QEMU.

It runs as a user of its own, of which nothing on this machine is, in a session without privileges, and may start no
program and change no user, priority or CPU (seccomp). All that it needs is handed to it as descriptors: image,
initramfs, console, TAPs, channels, the meter's memory and plugin. Whatever CPU and priority it gets it gets from us.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import secrets
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pdrgate.child_environment import child_environment
from pdrgate.guests.emulator.qemu import Accelerator, find_qemu

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

_KVM = Path("/dev/kvm")
_UIDS = range(61184, 65520)
"""systemd gives these uids to services without a user of their own: no file and no person has one."""
_SETGID, _SETUID = 6, 7
"""Bits of capabilities(7)."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """As whom QEMU runs. Without ``uid`` as whoever runs pdrgate, and ``why`` says why that is root, where it is."""

    uid: int | None = None
    groups: tuple[int, ...] = ()
    why: str = ""

    @property
    def words(self) -> list[str]:
        """What QEMU is started by, last of all: a change of user takes back that it is to die with its parent."""
        words = ["setpriv", "--pdeathsig", "KILL", "--no-new-privs"]
        if self.uid is None:
            return words
        groups = ["--groups", ",".join(map(str, self.groups))] if self.groups else ["--clear-groups"]
        return [*words, "--reuid", str(self.uid), "--regid", str(self.uid), *groups, "--inh-caps", "-all"]

    @property
    def sentence(self) -> str:
        """What is not as it should be; empty when all is."""
        return f"QEMU runs as root: {self.why}" if self.why else ""


def confine(accelerator: Accelerator) -> Confinement:
    """A user for one guest's QEMU."""
    if os.geteuid() != 0:
        return Confinement()
    if not _may_change_user():
        return Confinement(why="root may not become another user here")
    if (closed := _closed_to_others(Path(find_qemu()))) is not None:
        return Confinement(why=f"only root may use {closed}, where QEMU is")
    uid = _free_uid()
    if uid is None:
        return Confinement(why=f"no user from {_UIDS.start} to {_UIDS.stop - 1} can be had here")
    groups: tuple[int, ...] = ()
    if accelerator == "kvm":
        about = _KVM.stat()
        if about.st_mode & stat.S_IRWXO & 0o006 != 0o006:
            if not about.st_gid or about.st_mode & 0o060 != 0o060:
                return Confinement(why=f"only root may open {_KVM}")
            groups = (about.st_gid,)
    return Confinement(uid, groups)


@functools.cache
def sandboxes() -> bool:
    """Whether this machine's QEMU knows how to deny itself system calls."""
    nothing = ("-nodefaults", "-display", "none", "-machine", "none", "-device", "none-such")
    command = (find_qemu(), "-sandbox", SANDBOX, *nothing)
    tried = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    return "none-such" in tried.stderr


def _may_change_user() -> bool:
    found = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return found is None or all(int(found[1], 16) >> bit & 1 for bit in (_SETGID, _SETUID))


def _closed_to_others(program: Path) -> Path | None:
    """What keeps another user from starting a program: itself, or a folder on the way to it."""
    real = program.resolve()
    readable = real.stat().st_mode & 0o005 == 0o005
    folders = (*real.parents, *program.absolute().parents)
    return next((one for one in folders if not one.stat().st_mode & stat.S_IXOTH), None if readable else real)


def _free_uid() -> int | None:
    """Return a uid that this user namespace maps and that no user has."""
    known = [range(int(first), int(first) + int(count)) for first, _, count in map(str.split, _maps())]
    for _ in range(20):
        uid = secrets.choice(_UIDS)
        if any(uid in some for some in known) and not _is_borne(uid):
            return uid
    return None


def _maps() -> list[str]:
    return Path("/proc/self/uid_map").read_text().splitlines()


def _is_borne(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
