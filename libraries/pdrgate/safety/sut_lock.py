"""A lock on a SUT that is reached by SSH: two controllers would else change and load it at the same time.

A shell there holds it (flock(2)) for as long as its channel stands. The kernel takes it back when channel, connection
or controller die, and a restart of the SUT forgets it. A connection that is made anew takes it again before any other
command passes, and fails when somebody else was faster.

Runs on the SUT itself hold the same lock together (`pdrgate.safety.locks.MACHINE`), and are kept out as they keep out.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from typing import Any, Self

import paramiko

from pdrgate.hosts.shell import last_line
from pdrgate.hosts.ssh import SshHost, start_command
from pdrgate.hosts.ssh_login import SshError
from pdrgate.safety.state_folder import SUT_LOCK
from pdrgate.values.errors import HeldError

_TIMEOUT = 10.0
_HELD, _SHARED = "held", "shared"
_SCRIPT = f"""
exec 9>>"$1" || exit 3
flock -n 9; code=$?
if [ $code = 1 ]; then
    IFS= read -r said <"$1"
    case $said in *"$3"*)
        # Our own of a connection that we know to be lost, and the host does not yet.
        there=${{said##*\\"there\\": }}; there=${{there%%[!0-9]*}}
        grep -q "$3" "/proc/$there/cmdline" && kill -KILL "$there"
        flock -w 5 9; code=$?
    esac
fi
[ $code = 1 ] && {{ flock -n -s 9 && echo {_SHARED} || cat "$1"; exit 4; }}
[ $code = 0 ] || exit 3
printf '%s, "there": %d}}\\n' "$2" $$ >"$1"
echo {_HELD}
while read -r line; do :; done
"""


class SutInUseError(SshError, HeldError):
    """Somebody else has the SUT. ``ours`` is true when that is another testbed of this process."""

    def __init__(self, message: str, ours: bool) -> None:
        self.ours = ours
        super().__init__(message)


class SutLock:
    """Right to measure on a SUT, from `acquire` to `release`; a context manager.

    Raises:
        SutInUseError: another controller, or another testbed of this process, has it.
        SshError: the host cannot be reached, or offers no locks.
    """

    def __init__(self, host: SshHost, path: str = str(SUT_LOCK)) -> None:
        self._host = host
        self._path = path
        self._token = secrets.token_hex(8)
        self._channel: paramiko.Channel | None = None

    @classmethod
    def acquire(cls, host: SshHost, path: str = str(SUT_LOCK)) -> Self:
        """Take the lock of the host's machine. The host stays open for as long as the lock is held."""
        lock = cls(host, path)
        lock._hold(host.connection.client().get_transport())
        host.connection.at_login.append(lock._hold)
        return lock

    @property
    def host(self) -> SshHost:
        """The machine. Nothing passes by its connection while somebody else has it."""
        return self._host

    def renew(self) -> None:
        """Take it again where it was lost unseen. Raises as the class does."""
        transport = self._host.connection.client().get_transport()  # a new connection takes it by itself
        if self._channel is None or self._channel.closed or self._channel.eof_received:
            self._hold(transport)

    def release(self) -> None:
        """Let others have the SUT. Calling it twice is harmless."""
        with contextlib.suppress(ValueError):
            self._host.connection.at_login.remove(self._hold)
        if (channel := self._channel) is not None:
            self._channel = None
            with contextlib.suppress(OSError, EOFError):
                channel.shutdown_write()
                channel.status_event.wait(_TIMEOUT if self._host.connection.alive else 0)
                channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _hold(self, transport: paramiko.Transport | None) -> None:
        who = {"controller": socket.gethostname(), "pid": os.getpid(), "since": time.time(), "token": self._token}
        words = ("sh", "-c", _SCRIPT, "sh", self._path, json.dumps(who).removesuffix("}"), self._token)
        try:
            channel = start_command(transport, self._host.as_root(words), _TIMEOUT)
            said = channel.makefile("r").readline().strip()
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise SshError(f"cannot lock {self._host.name} for this run: {error or 'no answer in time'}") from error
        if said == _HELD:
            self._channel = channel
            return
        if said == _SHARED:
            channel.close()
            raise SutInUseError(
                f"{self._host.name} is in use by a run of pdrgate on that machine itself; wait for it to end, or end "
                "it there: lslocks shows its pid",
                ours=False,
            )
        complaint = last_line(channel.makefile_stderr("rb").read().decode(errors="replace"))
        channel.close()
        try:
            holder = json.loads(said)
        except ValueError:
            raise SshError(
                f"cannot lock {self._path} on {self._host.name}: {complaint or 'somebody just took it'}; is flock "
                "(util-linux) installed there, and may one write there?"
            ) from None
        raise _in_use(self._host.name, holder)


def _in_use(sut: str, holder: dict[str, Any]) -> SutInUseError:
    if (holder.get("controller"), holder.get("pid")) == (socket.gethostname(), os.getpid()):
        return SutInUseError(f"{sut} is in use by this run's other testbed; close that one first", ours=True)
    since = time.strftime("%H:%M:%S", time.localtime(holder.get("since", 0)))
    return SutInUseError(
        f"{sut} is in use by pdrgate on {holder.get('controller', '?')} (pid {holder.get('pid', '?')}, since {since}); "
        f"wait for it to end, or, should that machine be gone, end what it left on the SUT: kill "
        f"{holder.get('there', '?')}",
        ours=False,
    )
