"""A shell whose errors are explained by the fate of its host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from pdrgate.hosts.host import DEFAULT_TIMEOUT, Completed, Running, ShellHost


class WatchedShell(ABC):
    """A `Host` but for its end; a lost shell is turned into the error that says why it was lost."""

    _shell: ShellHost

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Turn a lost shell into what has become of its host."""

    @property
    def name(self) -> str:
        return self._shell.name

    def run(self, *argv: str, timeout: float = DEFAULT_TIMEOUT, check: bool = True) -> Completed:
        with self._explained():
            return self._shell.run(*argv, timeout=timeout, check=check)

    def start(self, *argv: str) -> Running:
        with self._explained():
            return self._shell.start(*argv)

    def run_json(self, *argv: str, timeout: float = DEFAULT_TIMEOUT) -> Any:
        with self._explained():
            return self._shell.run_json(*argv, timeout=timeout)

    def script(self, text: str, timeout: float = DEFAULT_TIMEOUT) -> Completed:
        with self._explained():
            return self._shell.script(text, timeout)

    def read(self, path: str) -> str:
        with self._explained():
            return self._shell.read(path)

    def write(self, path: str, text: str) -> None:
        with self._explained():
            self._shell.write(path, text)

    def put(self, path: str, content: bytes, mode: int = 0o600) -> None:
        with self._explained():
            self._shell.put(path, content, mode)

    def exists(self, path: str) -> bool:
        with self._explained():
            return self._shell.exists(path)

    def folder(self, what: str) -> str:
        with self._explained():
            return self._shell.folder(what)
