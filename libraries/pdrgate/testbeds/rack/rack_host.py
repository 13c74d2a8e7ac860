"""A host that a testbed file names: its keys, how it is reached, and its lock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pdrgate.hosts.host import Host, local_host, netns_host
from pdrgate.hosts.ssh_target import SshTarget
from pdrgate.safety.locks import Resource
from pdrgate.testbeds.config import named_file

# SSH is imported when a host is reached: it takes a while to load, and reading a file needs none of it.
if TYPE_CHECKING:
    from pdrgate.safety.sut_lock import SutLock


@dataclass(frozen=True, slots=True)
class HostConfig:
    """Access to a host: by SSH, as this machine, or as a network namespace."""

    kind: Literal["ssh", "local", "netns"]
    ssh: SshTarget | None = None
    namespace: str | None = None
    """The network namespace, of this machine or of the one reached by SSH, that the host's ports are in."""

    @classmethod
    def read(cls, source: Path, host: Mapping[str, Any], alias: str) -> HostConfig:
        """The host of a file without faults; ``alias`` names its connection where the file does not."""
        ssh = _target(source, {"alias": alias, **host}) if host["kind"] == "ssh" else None
        return cls(host["kind"], ssh, host.get("namespace"))

    def resource(self) -> Resource:
        """The host, by what two files that name the same one have in common."""
        if self.ssh is not None:
            return Resource("host", _place(self.ssh))
        return Resource("host", f"namespace {self.namespace}" if self.namespace else "of this machine")

    @contextlib.contextmanager
    def locked(self, other: SutLock | None = None) -> Iterator[SutLock | None]:
        """Hold the lock of a host that is reached by SSH, or nothing if ``other`` is its: a machine has one lock."""
        from pdrgate.hosts.ssh import SshConnection, SshHost
        from pdrgate.safety.sut_lock import SutLock

        assert self.ssh is not None
        with SshHost(SshConnection(self.ssh), owns=True) as host:
            if other is None or other.host.boot_id != host.boot_id:
                with SutLock.acquire(host) as lock:
                    yield lock
                return
        yield None

    def reach(self, lock: SutLock | None) -> tuple[Host, Host]:
        """The machine, and it again or the network namespace of it; nothing is asked of them yet.

        Args:
            lock: that of the machine, by whose connection it is reached then: nothing passes there that it does not
                allow.
        """
        machine: Host
        if self.ssh is not None:
            from pdrgate.hosts.ssh import SshConnection, SshHost

            connection = SshConnection(self.ssh) if lock is None else lock.host.connection
            machine = SshHost(connection, owns=lock is None)
            return machine, SshHost(machine.connection, self.namespace) if self.namespace else machine
        machine = local_host()
        return machine, netns_host(self.namespace) if self.namespace else machine


def _target(source: Path, host: Mapping[str, Any]) -> SshTarget:
    alias = host["alias"]
    made = {key: host[key] for key in SshTarget.__dataclass_fields__ if key in host}
    made |= {key: named_file(source, host[key]) for key in ("key", "known_hosts") if key in host}
    if "jump" in host:
        made["jump"] = _target(source, {"alias": f"{alias}-jump", **host["jump"]})
    return SshTarget(**made | {"alias": alias})


def _place(target: SshTarget) -> str:
    """A host by address, for aliases are each testbed's own."""
    return f"{target.address}:{target.port}" + (f" behind {_place(target.jump)}" if target.jump else "")
