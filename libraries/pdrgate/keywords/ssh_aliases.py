"""The testbed's SSH connections in the suite's SSHLibrary: its keywords reach the SUT by the host's alias.

SSHLibrary makes connections that take any host key. So the testbed makes its own, which is verified, and SSHLibrary is
given that one: both share it, and a connection that was lost and made again too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from robot.libraries.BuiltIn import BuiltIn

from pdrgate.hosts.ssh import SshConnection

_MODULE = "SSHLibrary"


class SharedConnections:
    """What was given to SSHLibrary, so that it can be taken back."""

    def __init__(self) -> None:
        self._given: list[tuple[Any, str]] = []

    def share(self, connections: Mapping[str, SshConnection]) -> None:
        """Open a connection of each alias in every SSHLibrary of the running suite that has not got it yet."""
        for library in _libraries():
            for alias, connection in connections.items():
                if (library, alias) not in self._given:
                    self._given.append((library, alias))
                    with _current_kept(library):
                        target = connection.target
                        library.open_connection(target.address, alias=alias, port=target.port, timeout=target.timeout)
                        library.current.client = _Client(connection)

    def end(self) -> None:
        """Close them in SSHLibrary; the testbed's own connection goes on."""
        given, self._given = self._given, []
        for library, alias in given:
            # The suite may have closed it, with all others.
            with contextlib.suppress(RuntimeError), _current_kept(library):
                library.switch_connection(alias)
                library.close_connection()


class _Client:
    """What SSHLibrary uses of a connected client, always of the present connection."""

    def __init__(self, connection: SshConnection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection.client(), name)

    def close(self) -> None:
        """The connection is the testbed's, and stays."""


def _libraries() -> list[Any]:
    if _MODULE not in sys.modules:
        return []
    kind = sys.modules[_MODULE].SSHLibrary
    instances: Any = BuiltIn().get_library_instance(all=True)
    return [one for one in instances.values() if isinstance(one, kind)]


@contextlib.contextmanager
def _current_kept(library: Any) -> Iterator[None]:
    """What was the current connection before is it afterwards."""
    try:
        before = library.current.config.index
    except (AttributeError, RuntimeError):
        before = None
    yield
    if before is not None:
        with contextlib.suppress(RuntimeError):
            library.switch_connection(before)
