"""Where a host is reached by SSH, and how one gets in: values only, which testbed files and journals hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SshTarget:
    """A host by SSH, as a testbed file names it."""

    alias: str
    """What suites, messages and journals call it."""
    address: str
    port: int = 22
    user: str = "root"
    key: Path | None = None
    """The private key to log in with, and no other; without one the agent and the user's own keys are tried."""
    known_hosts: Path | None = None
    """Where its host key stands; by default the user's and the machine's known_hosts."""
    host_key: str | None = None
    """The host key itself, in place of known_hosts: ``SHA256:…`` or ``ssh-ed25519 AAAA…``."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    jump: SshTarget | None = None
    """The host through which it is reached."""
    sudo: bool | None = None
    """Whether commands run by sudo; None where that depends on the user being root."""
    timeout: float = 10.0
    """Seconds that connecting and logging in may take, each."""
    password: str | None = dataclasses.field(default=None, repr=False)
    """The password from a Robot Secret; it is never in a file, a journal or a message."""

    @property
    def where(self) -> str:
        """``root@10.0.0.2:22``."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"

    def to_record(self) -> dict[str, Any]:
        """What a journal keeps, so that another process can log in again; no password."""
        record = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "password" and getattr(self, field.name) is not None
        }
        # Absolute: the process that recovers may run elsewhere.
        record |= {name: str(record[name].expanduser().absolute()) for name in ("key", "known_hosts") if name in record}
        return record | ({"jump": self.jump.to_record()} if self.jump else {})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The target of a record by `to_record`. Raises TypeError or ValueError when it is none."""
        made = dict(record)
        made |= {name: Path(made[name]) for name in ("key", "known_hosts") if name in made}
        return cls(**made | ({"jump": SshTarget.from_record(made["jump"])} if "jump" in made else {}))
