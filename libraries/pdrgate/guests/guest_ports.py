"""The sockets by which a guest is spoken to: nobody else on this machine can connect to them.

A socket with a name is open to whoever may reach the name, and one with an abstract name to every user. So each is made
in a folder of ours alone, and its name is removed before anybody listens. What is left is a descriptor of this process
(``O_PATH``): only this user and root can follow ``/proc/PID/fd``, and no file stays behind when this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterable
from typing import Self

from pdrgate.values.errors import StorageError


class GuestPorts:
    """Listening Unix sockets, by name.

    Raises:
        StorageError: there is no place where they can be made.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._listeners: dict[str, socket.socket] = {}
        self._descriptors: dict[str, int] = {}
        try:
            with tempfile.TemporaryDirectory(prefix="pdrgate-ports-") as folder:
                place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    for name in names:
                        self._make(place, name)
                finally:
                    os.close(place)
        except OSError as error:
            self.close()
            raise StorageError(
                f"cannot make sockets in {tempfile.gettempdir()}: {error.strerror}; set TMPDIR to one that has them"
            ) from error
        for listener in self._listeners.values():
            listener.listen()

    def _make(self, place: int, name: str) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listeners[name] = listener
        # The folder's own path may be longer than a socket's address.
        listener.bind(f"/proc/self/fd/{place}/{name}")
        self._descriptors[name] = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        os.unlink(name, dir_fd=place)

    def hand_over(self, name: str) -> int:
        """Give the listening socket away, as a descriptor that is the caller's to close; once for each name."""
        return self._listeners.pop(name).detach()

    def address(self, name: str) -> str:
        """The address that this process and its children connect to, until `close`."""
        return f"/proc/{os.getpid()}/fd/{self._descriptors[name]}"

    def close(self) -> None:
        """Let nobody connect any more. Calling it twice is harmless."""
        for listener in self._listeners.values():
            listener.close()
        while self._descriptors:
            with contextlib.suppress(OSError):
                os.close(self._descriptors.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
