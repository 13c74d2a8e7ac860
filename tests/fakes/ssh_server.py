"""A real sshd for tests, on a port of the loopback, with keys and a configuration of its own.

Each connection has an sshd process in inetd mode: so one can be killed, the server can be away for a while and come
back at the same port, and nothing of the machine's own SSH set-up is used or changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from pathlib import Path

from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.safety.processes import ProcessId

_PRIVILEGE_SEPARATION = Path("/run/sshd")


def _wait_for_group(group: int) -> None:
    """Until the last of its processes has ended: of newer OpenSSH (10) several hold the socket.

    What waits for its parent to ask for it has ended, too: init takes its time.
    """
    while any(_runs_in(group, int(folder.name)) for folder in Path("/proc").glob("[0-9]*")):
        time.sleep(0.01)


def _runs_in(group: int, pid: int) -> bool:
    try:
        return os.getpgid(pid) == group and ProcessId.of(pid) is not None
    except ProcessLookupError:
        return False


def sshd() -> str | None:
    """Where sshd is; None when it is not installed."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new private key in ``path``, its public key next to it."""
    subprocess.run(
        ("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)), check=True, capture_output=True
    )
    return path


class SshServer:
    """Takes connections from `start` to `close`; a context manager.

    Args:
        folder: where keys and configuration are made.
        settings: further lines of sshd_config.
        own_boot: whether the boot id that is read there is one of the server's own, so that it passes for another
            machine, which can be restarted.
        namespace: the network namespace that logins land in, as those of a container do.
    """

    def __init__(
        self, folder: Path, settings: str = "", host_key: str = "ed25519", *, own_boot: bool = False,
        namespace: str = "",
    ) -> None:  # fmt: skip
        self._inside = ("ip", "netns", "exec", namespace) if namespace else ()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.host_key = make_key(folder / "host_key", host_key)
        self.user_key = make_key(folder / "user_key")
        self.log = folder / "sshd.log"
        self.known_hosts = folder / "known_hosts"
        authorized = folder / "authorized_keys"
        authorized.write_text((folder / "user_key.pub").read_text())
        self._config = folder / "sshd_config"
        self._config.write_text(
            f"HostKey {self.host_key}\nAuthorizedKeysFile {authorized}\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"PermitRootLogin yes\nPasswordAuthentication no\nLogLevel VERBOSE\n"
            f"Subsystem sftp internal-sftp\n{settings}\n"
        )
        if os.geteuid() == 0:
            # Left there: another test's server may use it too, and it is gone with the next boot.
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        self._boot = folder / "boot_id" if own_boot else None
        self._new_boot()
        self._listener: socket.socket | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._turn = threading.Lock()
        self.logins = 0
        """Connections taken so far."""
        self.port = 0
        self.start()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.public_key}\n")

    @property
    def public_key(self) -> str:
        """Type and key of the host key."""
        return " ".join(self.host_key.with_suffix(".pub").read_text().split()[:2])

    @property
    def target(self) -> SshTarget:
        """How to get in."""
        return SshTarget(
            alias="sut", address="127.0.0.1", port=self.port, key=self.user_key, known_hosts=self.known_hosts
        )

    def other(self, **changes: object) -> SshTarget:
        """The target with changes."""
        return dataclasses.replace(self.target, **changes)  # type: ignore[arg-type]

    def start(self) -> None:
        """Listen, at the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and end those that there are, as a host that goes down does."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop()

    def restart(self) -> None:
        """Come up anew, as after a reboot: connections are gone, the boot id is another. Settings stay as they are."""
        self.drop()
        self._new_boot()

    def _new_boot(self) -> None:
        if self._boot is not None:
            self._boot.write_text(f"{uuid.uuid4()}\n")

    def drop(self) -> int:
        """Kill the sshd of every connection; how many there were."""
        with self._turn:
            running = [process for process in self._processes if process.poll() is None]
            self._processes = []
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _wait_for_group(process.pid)
        return len(running)

    def close(self) -> None:
        """End everything."""
        self.stop()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, self.log.open("ab") as log, self._turn:
                self.logins += 1
                command = [str(sshd()), "-i", "-e", "-f", str(self._config)]
                if self._boot is not None:
                    # In a mount namespace of the connection's own; namespaces made meanwhile are still seen.
                    script = f'mount --bind "{self._boot}" /proc/sys/kernel/random/boot_id && exec "$@"'
                    command = ["unshare", "-m", "--propagation", "slave", "sh", "-c", script, "sh", *command]
                command = [*self._inside, *command]
                self._processes.append(
                    subprocess.Popen(command, stdin=connection, stdout=connection, stderr=log, start_new_session=True)
                )

    def __enter__(self) -> SshServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
