"""Sandbox by bubblewrap (bwrap(1)) for a stranger's program on this machine.

The program sees the system's programs and libraries (``/usr``), a ``/proc`` with nothing in it but itself, the devices
that hold no data, and the files that it is handed. It has no network, no environment but the one that it is given, and
processes of its own, which the kernel ends with whoever started them. Its session is its own, so that it cannot type
into the terminal of who started it (TIOCSTI, ioctl_tty(2)). If root starts it, it is a user that owns nothing.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pdrgate.this_process.checkout import how_to_install
from pdrgate.this_process.child_environment import run_program
from pdrgate.values.errors import TestbedError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path of programs in a sandbox."""

UNCONFINED = "PDRGATE_UNCONFINED"
"""The environment variable by which the owner of a machine that is thrown away has all compiled without a sandbox."""

_UIDS = range(61184, 65520)
"""Uids that systemd gives to services without a user of their own: no file and no person has one."""
_SETGID, _SETUID = 6, 7
"""Bits of capabilities(7)."""
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf")
"""Settings without which some programs of the system do not start, or start otherwise."""


@dataclass(frozen=True, slots=True)
class User:
    """User that a program runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def words(self) -> list[str]:
        """Words that start the program, put last: a change of user would take back that it dies with its parent."""
        groups = ["--groups", ",".join(map(str, self.groups))] if self.groups else ["--clear-groups"]
        return [*DIES_WITH_PARENT, "--reuid", str(self.uid), "--regid", str(self.gid), *groups, "--inh-caps", "-all"]


DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--no-new-privs")
"""Words that start a program which ends with the thread that started it, and which gains no privileges."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Everything that a program in the sandbox sees.

    Args:
        user: whom it runs as; None for the caller, who is not root.
        readable: files and folders by where they lie in the sandbox.
        writable: folders by where they lie in the sandbox.
        devices: device files that it may use.
        scratch: bytes that its /tmp may hold; 0 for none.
        network: whether it is in the network namespace that it is started in; else in an empty one.
        variables: its environment, beside PATH and the language.
    """

    user: User | None = None
    readable: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    devices: tuple[Path, ...] = ()
    scratch: int = 0
    network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, *command: str, options: tuple[str, ...] = ()) -> list[str]:
        """The words that start a program in it. It inherits the descriptors that bwrap does.

        Args:
            options: further ones of bwrap.
        """
        words = [
            "bwrap", "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
            "--unshare-cgroup-try", *(() if self.network else ("--unshare-net",)), "--clearenv", *_system(),
            "--proc", "/proc", "--dev", "/dev", *options,
        ]  # fmt: skip
        for name, value in {"PATH": SYSTEM_PATH, "LC_ALL": "C", **self.variables}.items():
            words += ["--setenv", name, value]
        if self.scratch:
            words += ["--perms", "1777", "--size", str(self.scratch), "--tmpfs", "/tmp"]
        for folder in _above((*self.readable, *self.writable)):
            words += ["--perms", "0755", "--dir", folder]
        for place, path in self.readable.items():
            words += ["--ro-bind", str(path), place]
        for place, path in self.writable.items():
            words += ["--bind", str(path), place]
        for device in self.devices:
            words += ["--dev-bind", str(device), str(device)]
        if self.user is None:
            return [*words, "--unshare-user", "--", *command]
        may = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        return [*words, *may, "--", *self.user.words, *command]


def nobody() -> User | None:
    """A user that owns nothing on this machine, for programs that root starts; None if the caller is not root.

    Raises:
        TestbedError: root may become no other user here.
    """
    if os.geteuid() != 0:
        return None
    if not _may_change_user():
        raise TestbedError("root may not become another user here")
    known = [range(int(first), int(first) + int(count)) for first, _, count in map(str.split, _maps())]
    for _ in range(20):
        uid = secrets.choice(_UIDS)
        if any(uid in some for some in known) and not _is_borne(uid):
            return User(uid, uid)
    raise TestbedError(f"no user from {_UIDS.start} to {_UIDS.stop - 1} can be had here")


@functools.cache
def lacking() -> str:
    """Why no sandbox can be had on this machine, as a clause; empty if one can. The first call tries it."""
    if shutil.which("bwrap") is None:
        return f"bubblewrap is not installed: {how_to_install('bubblewrap')}"
    try:
        command = Sandbox(nobody(), scratch=1 << 20).command("true")
    except TestbedError as error:
        return str(error)
    tried = run_program(*command)
    said = tried.stderr.strip().splitlines() or [f"bwrap ends with exit code {tried.returncode}"]
    return said[-1] if tried.returncode else ""


def confines(what: str) -> bool:
    """Whether a stranger's program can be confined. Without a sandbox it runs as the caller, who is not root.

    Args:
        what: the purpose, as in ``to compile a kernel``.

    Raises:
        TestbedError: there is no sandbox, and the caller is root and has not set `UNCONFINED`.
    """
    if os.environ.get(UNCONFINED) == "1":
        return False
    why = lacking()
    if why and os.geteuid() == 0:
        raise TestbedError(
            f"{what}, a stranger's programs are run, and root does so in a sandbox only: {why}; run it as another "
            f"user, or set {UNCONFINED}=1 on a machine that is thrown away afterwards"
        )
    return not why


def _system() -> Iterator[str]:
    """Options of bwrap for the programs of this machine, laid out as it has them."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for folder in _above(_SETTINGS):
        yield from ("--perms", "0755", "--dir", folder)
    for file in _SETTINGS:
        yield from ("--ro-bind-try", file, file)


def _above(places: Iterable[str]) -> list[str]:
    """The folders above places, the highest first: those that bwrap makes unasked are closed to all but root."""
    return sorted({str(parent) for place in places for parent in Path(place).parents} - {"/"})


def _may_change_user() -> bool:
    found = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return found is None or all(int(found[1], 16) >> bit & 1 for bit in (_SETGID, _SETUID))


def _maps() -> list[str]:
    return Path("/proc/self/uid_map").read_text().splitlines()


def _is_borne(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
