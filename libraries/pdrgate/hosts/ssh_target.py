"""Address of a host that is reached by SSH, and how to log in. Testbed files and journals hold these values."""

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
    """The host's name in suites, messages and journals."""
    address: str
    port: int = 22
    user: str = "root"
    key: Path | None = None
    """The only private key to log in with. If it is None, the agent and the user's own keys are tried."""
    known_hosts: Path | None = None
    """File with the host's key; by default the user's and the machine's known_hosts."""
    host_key: str | None = None
    """The host key itself, in place of known_hosts: ``SHA256:…`` or ``ssh-ed25519 AAAA…``."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    jump: SshTarget | None = None
    """The host through which it is reached."""
    sudo: bool | None = None
    """Whether commands run by sudo. If it is None, they do unless the user is root."""
    timeout: float = 10.0
    """Seconds that connecting and logging in may take, each."""
    password: str | None = dataclasses.field(default=None, repr=False)
    """The password from a Robot Secret. It is never in a file, a journal or a message."""

    @property
    def where(self) -> str:
        """``root@10.0.0.2:22``."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"

    def to_record(self) -> dict[str, Any]:
        """Record for a journal, by which another process can log in again; without the password."""
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
