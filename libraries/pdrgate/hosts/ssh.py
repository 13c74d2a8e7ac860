"""Hosts over SSH: one connection per machine, one shell in it per host, the same framing as on this machine.

A command is a line to a shell that stays open, and not a channel of its own: that costs a round trip and a fork, as on
this machine, instead of a channel, a login shell and the look-ups that go with it (`tests/bench/ssh_cost.py`). While
nothing is to be done there, the host is asked for nothing but a sign of life every few seconds.

A connection that was lost between two commands is made again for the next one, and the caller need not know. A command
that was on its way then may or may not have run: that is an error. A caller that must know whether the host was
restarted meanwhile compares `SshHost.boot_id`, which is read anew with each connection.
"""

from __future__ import annotations

import contextlib
import select
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import paramiko

from pdrgate.hosts.host import HostError, ShellHost
from pdrgate.hosts.shell import Exchange, Shell, ShellError
from pdrgate.hosts.ssh_login import Login, SshError, UnreachableError, log_in
from pdrgate.hosts.ssh_target import SshTarget

PREFIX = "ssh:"
SSH_PATIENCE = 20.0
"""Seconds that a host which was connected before is tried for again: its SSH server may be restarting."""
COMMAND_TIMEOUT = 10.0

_RETRY_FIRST, _RETRY_MOST = 0.2, 2.0
_GIVEN_UP = 10.0
"""Seconds for which a host that could not be reached is not tried again."""
_CLOSE_TIMEOUT = 2.0
_CHUNK = 1 << 16
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def start_command(transport: paramiko.Transport | None, command: str, timeout: float) -> paramiko.Channel:
    """Start a command in a new channel. Raises SSHException, EOFError or OSError."""
    if transport is None:
        raise EOFError("the connection was lost")
    channel = transport.open_session(timeout=timeout)
    try:
        channel.settimeout(timeout)
        channel.exec_command(command)
    except BaseException:
        channel.close()
        raise
    return channel


class SshConnection:
    """Authenticated connection to one machine, made at first use and again after it was lost. Threads may share it.

    Args:
        target: where, who, and by which keys.
        login: makes the connection.
        patience: seconds to go on trying after a loss.
    """

    def __init__(
        self, target: SshTarget, login: Callable[[SshTarget], Login] = log_in, patience: float = SSH_PATIENCE
    ) -> None:
        self.target = target
        self._login = login
        self._patience = patience
        self._current: Login | None = None
        self._was_connected = False
        self._failed: tuple[float, UnreachableError] | None = None
        """When and why it could not be made again."""
        self._turn = threading.RLock()
        self.at_login: list[Callable[[paramiko.Transport | None], None]] = []
        """Functions that are called with each new connection, before anything else passes. An exception ends the
        connection."""

    @property
    def alive(self) -> bool:
        """Whether the connection is there, or has at least something left to be read."""
        return self._current is not None and self._current.active

    @property
    def hung_up(self) -> bool:
        """Whether the connection is of no more use: the other side is gone, as far as is known without asking."""
        return self._current is None or self._current.hung_up

    def client(self) -> paramiko.SSHClient:
        """The connected client. A lost connection is made again first. Raises SshError."""
        with self._turn:
            if self.hung_up:
                self.close()
                self._current = self._connect()
                self._was_connected = True
                try:
                    for claim in self.at_login:
                        claim(self._current.client.get_transport())
                except BaseException:
                    self.close()
                    raise
            assert self._current is not None
            return self._current.client

    def _connect(self) -> Login:
        if self._patience and self._failed is not None and time.monotonic() < self._failed[0] + _GIVEN_UP:
            # Whoever puts many settings back would else wait for each of them.
            raise self._failed[1]
        deadline = time.monotonic() + (self._patience if self._was_connected else 0.0)
        pause = _RETRY_FIRST
        while True:
            try:
                login = self._login(self.target)
            except UnreachableError as error:
                if time.monotonic() + pause > deadline:
                    self._failed, self._was_connected = (time.monotonic(), error), False
                    raise
            else:
                self._failed = None
                return login
            time.sleep(pause)
            pause = min(2 * pause, _RETRY_MOST)

    def channel(self, command: str) -> paramiko.Channel:
        """Start a command in a channel of its own. Raises SshError if there is no connection, or it allows no
        channel."""
        with self._turn:
            try:
                try:
                    return start_command(self.client().get_transport(), command, self.target.timeout)
                except paramiko.ChannelException:
                    raise
                except (paramiko.SSHException, EOFError, OSError):
                    # It was lost without a word: once more on a new one.
                    self.close()
                    return start_command(self.client().get_transport(), command, self.target.timeout)
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise SshError(
                    f"{self.target.alias} ({self.target.where}) allows a login but no command: {error}; see "
                    "MaxSessions and ForceCommand in its sshd_config"
                ) from error

    def close(self) -> None:
        """End the connection. The next use makes it again."""
        with self._turn:
            if self._current is not None:
                self._current.close()
                self._current = None


class SshHost(ShellHost):
    """Machine reached by SSH, named ``ssh:ALIAS``, or a network namespace of it, ``ssh:ALIAS/NAMESPACE``.

    All commands run by ``sudo -n`` if the user is not root. Several hosts may share a connection. A host that ``owns``
    its connection ends it with itself.
    """

    def __init__(self, connection: SshConnection, namespace: str | None = None, *, owns: bool = False) -> None:
        target = connection.target
        by_sudo = target.user != "root" if target.sudo is None else target.sudo
        sudo = ("sudo", "-n") if by_sudo else ()
        inside = ("ip", "netns", "exec", namespace) if namespace else ()
        super().__init__(f"{PREFIX}{target.alias}{f'/{namespace}' if namespace else ''}", (*sudo, *inside, "sh"))
        self.connection = connection
        self.namespace = namespace
        self._owns = owns
        self._sudo = sudo
        self._boot = ""

    @property
    def boot_id(self) -> str:
        """The boot id of the machine, asked anew with each connection."""
        if self._shell is None or self._shell.lost:
            self.run("true")
        return self._boot

    def close(self) -> None:
        super().close()
        if self._owns:
            self.connection.close()

    def copy(self, local: Path, remote: str, timeout: float = 600.0) -> None:
        """Copy a file to the host, byte for byte.

        Raises:
            HostError: it did not arrive as it is: no room there, no permission, the connection lost.
            OSError: the local file cannot be read.
        """
        with local.open("rb") as file:
            channel = self.connection.channel(self.as_root(("sh", "-c", f"cat >{shlex.quote(remote)}")))
            try:
                channel.settimeout(timeout)
                while chunk := file.read(_CHUNK):
                    # A send that fails has a cause over there, which its exit code and its output show.
                    with contextlib.suppress(OSError, EOFError):
                        channel.sendall(chunk)
                        continue
                    break
                with contextlib.suppress(OSError, EOFError):
                    channel.shutdown_write()
                code = channel.recv_exit_status() if channel.status_event.wait(timeout) else -1
                said = channel.recv_stderr(4096).decode(errors="replace").strip() if channel.recv_stderr_ready() else ""
            finally:
                channel.close()
        size = self.run("stat", "-c", "%s", remote).stdout.strip() if code == 0 else ""
        if size != str(local.stat().st_size):
            raise HostError(
                f"copying {local} to {remote} on {self.name} failed: {said or 'it ended half-way'}; is there room and "
                "permission?"
            )

    def as_root(self, words: Sequence[str]) -> str:
        """The command line for a channel of its own, with the rights that all commands of this host have."""
        return shlex.join((*self._sudo, *words))

    def to_record(self) -> dict[str, Any]:
        """Record for a journal, by which `host_from_record` reaches this machine again."""
        return {"ssh": self.connection.target.to_record()}

    def _start(self) -> SshStreams:
        return SshStreams(self.connection, shlex.join(("exec", *self._opener)), self._sudo)

    def _open(self) -> Shell:
        try:
            return super()._open()
        except SshError:
            raise
        except HostError as error:
            target = self.connection.target
            if self._sudo:
                remedy = f"let {target.user} use sudo there without a password (NOPASSWD), or log in as root"
            elif self.namespace:
                remedy = f"is there a namespace {self.namespace} (ip netns list), and ip?"
            else:
                remedy = f"has {target.user} a login shell there that runs sh?"
            raise HostError(f"{error} (at {target.where}); {remedy}") from error

    def _prepare(self, shell: Shell) -> None:
        super()._prepare(shell)
        # The shell's number, its parent's, its process group, and the boot id.
        code, out, err = shell.execute(f"cut -d ' ' -f 5 /proc/$$/stat; echo $$ $PPID; cat {_BOOT_ID}", COMMAND_TIMEOUT)
        words = out.decode(errors="replace").split()
        if code != 0 or len(words) != 4:
            raise ShellError(f"is no Linux host that can be used: {err.decode(errors='replace').strip()}")
        group, own, parent, self._boot = words
        assert isinstance(shell.streams, SshStreams)
        # Only a group that was made for this shell may be killed; some servers make none.
        shell.streams.group = group if group in (own, parent) else None


def host_from_record(record: Mapping[str, Any], namespace: str | None = None) -> SshHost:
    """The machine of a record by `SshHost.to_record`, or a namespace of it. Raises KeyError or TypeError for others."""
    return SshHost(SshConnection(SshTarget.from_record(record["ssh"])), namespace, owns=True)


class SshStreams:
    """A channel of an SSH connection that a shell runs in. Raises SshError."""

    def __init__(self, connection: SshConnection, command: str, sudo: tuple[str, ...]) -> None:
        self.group: str | None = None
        """The process group of the shell there."""
        self._connection = connection
        self._sudo = sudo
        self._closed = False
        self._channel = connection.channel(command)
        self._wake = select.poll()
        self._wake.register(self._channel.fileno(), select.POLLIN)

    @property
    def lost(self) -> bool:
        return self._ended or self._connection.hung_up

    @property
    def _ended(self) -> bool:
        """Whether the shell's output has ended. Output from before the other side hung up may still be unread."""
        return bool(self._channel.closed or self._channel.eof_received or not self._connection.alive)

    def exchange(self, pending: bytes, timeout: float) -> Exchange:
        channel, sent, out, err = self._channel, 0, b"", b""
        try:
            sent = self._send(pending, timeout)
            if not (sent < len(pending) or channel.recv_ready() or channel.recv_stderr_ready()):
                self._wake.poll(timeout * 1000)
            # Before what it printed is fetched, so that nothing can come in between.
            ended = self._ended
            while channel.recv_ready():
                out += channel.recv(_CHUNK)
            while channel.recv_stderr_ready():
                err += channel.recv_stderr(_CHUNK)
        except EOFError:
            # The server is gone and the library did not know it when it sent (receiving makes it send, too).
            channel.get_transport().close()
            ended = True
        return Exchange(sent, out, err, ended)

    def _send(self, pending: bytes, timeout: float) -> int:
        if not pending:
            return 0
        # A shell reads all of a command before it runs it, and prints nothing meanwhile: waiting for room is safe.
        self._channel.settimeout(timeout)
        try:
            return int(self._channel.send(pending[:_CHUNK]))
        except OSError:  # no room in time, or closed
            return 0

    def end_in_words(self) -> str:
        target = self._connection.target
        if self._channel.status_event.wait(_CLOSE_TIMEOUT if self._connection.alive else 0) and (
            (code := self._channel.exit_status) >= 0
        ):
            return f"its shell ended with exit code {code}"
        if self._connection.alive:
            return "its shell was ended"
        return f"the connection to {target.where} was lost"

    def finish(self) -> None:
        if not self._closed and not self.lost and self.group is not None:
            # Closing a channel without a terminal ends nothing over there; the shell ends its group with itself.
            with contextlib.suppress(OSError, EOFError):
                self._channel.settimeout(_CLOSE_TIMEOUT)
                self._channel.shutdown_write()
            if self._channel.status_event.wait(_CLOSE_TIMEOUT):
                self.group = None

    def kill(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self.group is not None:
                # What runs there reads nothing any more: another channel of the same connection has to end it. Not of
                # a new one: by then the number may be another group's.
                command = shlex.join((*self._sudo, "kill", "-KILL", "--", f"-{self.group}"))
                with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                    beside = start_command(self._channel.get_transport(), command, _CLOSE_TIMEOUT)
                    beside.status_event.wait(_CLOSE_TIMEOUT)
                    beside.close()
        finally:
            with contextlib.suppress(OSError, EOFError):
                self._channel.close()
