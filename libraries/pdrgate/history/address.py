"""The address of a history, as a person writes it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from pdrgate.values.errors import UsageError
from pdrgate.values.printable import is_address

HISTORY_VARIABLE = "PDRGATE_HISTORY"
"""Name of the environment variable with the address of the history, where the command line names none.

Where the command line names the same address without its password, the password is taken from here. A command line is
in the process list, in sudo's log and in a CI's log. The environment is the user's own.
"""
_SHOWN = frozenset({
    "host", "hostaddr", "port", "dbname", "user", "passfile", "service", "application_name",
    "fallback_application_name", "client_encoding", "options", "connect_timeout", "tcp_user_timeout", "keepalives",
    "keepalives_idle", "keepalives_interval", "keepalives_count", "target_session_attrs", "load_balance_hosts",
    "sslmode", "sslnegotiation", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "sslsni", "sslcertmode",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "requirepeer", "require_auth", "channel_binding",
    "gssencmode", "gssdelegation", "krbsrvname", "gsslib",
})  # fmt: skip
"""Keys of a URL's query, of libpq's, whose values are no secret. Any other one may be a password that is misspelled."""
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
HISTORY_SCHEMES = (*_SERVERS, "sqlite")
HISTORY_FILE = "history.db"
"""The history in a folder of runs, where nobody names another."""


class Address:
    """A SQLite file, or a PostgreSQL database by its URL; one of the two.

    Attributes:
        file: None of a server.
        url: may hold a password; what is shown or stored is `text`. Empty of a file.
    """

    def __init__(self, *, file: Path | None = None, url: str = "") -> None:
        self.file = file
        self.url = url

    @classmethod
    def parse(cls, text: str) -> Self:
        """A path, ``sqlite:///path`` or ``postgresql://user:password@host/database``. Raises UsageError."""
        if not text.strip():
            raise UsageError("the history's address is empty; name a file or a postgresql:// URL")
        scheme, separator, rest = text.partition("://")
        if not separator:
            if is_address(text) and not Path(text).exists():
                raise UsageError("the history's URL cannot be read; write postgresql://user@host:5432/database")
            return cls(file=Path(text))
        if scheme == "sqlite" and rest.startswith("/") and rest != "/":
            return cls(file=Path(rest[1:]))
        if scheme not in _SERVERS:
            other = f", not {scheme}://" if is_address(f"{scheme}:/") else ""
            raise UsageError(f"a history is a SQLite file or a postgresql:// URL{other}")
        try:
            _ = urlsplit(text).port
        except ValueError:
            # The text itself may hold a password.
            raise UsageError("the history's URL cannot be read; write postgresql://user@host:5432/database") from None
        if "@" in rest[re.search(r"[/?#]|$", rest).start() :] or "#" in rest:  # type: ignore[union-attr]
            # Where the host begins is anybody's guess, and so is what of it would be shown.
            raise UsageError(
                "the history's URL cannot be read; write / ? # @ and : of a password as %2F %3F %23 %40 %3A"
            )
        return cls(url=f"postgresql://{rest}")

    @classmethod
    def known(cls, text: str) -> Self:
        """Parse an address as `parse` does, and add the password that the environment has for just this address, see
        `HISTORY_VARIABLE`.

        Raises UsageError for one that holds a password itself.
        """
        named = cls.parse(text)
        if named.holds_password:
            raise UsageError(
                "the history's URL holds a password, and this is read by others (process list, logs); set "
                f"{HISTORY_VARIABLE} to the URL and leave it out here, or keep the password in ~/.pgpass"
            )
        whole = os.environ.get(HISTORY_VARIABLE, "")
        if not whole.strip():
            return named
        other = cls.parse(whole)
        return other if other.url and other.text == named.text else named

    @classmethod
    def beside(cls, runs: Path) -> Self:
        """The address of the history in a folder of runs."""
        return cls(file=runs / HISTORY_FILE)

    @property
    def holds_password(self) -> bool:
        """Whether the URL has one, so that it must not be shown."""
        parts = urlsplit(self.url)
        user = parts.netloc.rpartition("@")[0]
        return ":" in user or any(
            key.lower() not in _SHOWN for key, _ in parse_qsl(parts.query, keep_blank_values=True)
        )

    @property
    def text(self) -> str:
        """The address as a person writes it, without the password."""
        if self.file is not None:
            return str(self.file)
        parts = urlsplit(self.url)
        user, at, host = parts.netloc.rpartition("@")
        query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0].lower() in _SHOWN], safe="/")
        return f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}{'?' if query else ''}{query}"

    def absolute(self) -> Self:
        """Address that holds in any working directory: the path of a file becomes absolute."""
        return self if self.file is None else type(self)(file=self.file.absolute())

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Address({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and (self.file, self.url) == (other.file, other.url)

    def __hash__(self) -> int:
        return hash((self.file, self.url))
