"""Network namespaces of this machine that have a name (ip-netns(8)), entered by a thread and not by a program."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

_Made = TypeVar("_Made")

_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000


def enter_namespace(name: str) -> None:
    """Move the calling thread into a network namespace. Raises OSError."""
    namespace = os.open(_NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(namespace)


class ThreadInNamespace:
    """A thread that lives in a network namespace from the first that it does there until `close`.

    It enters by itself: an executor whose initializer fails, as where the namespace is gone, prints a traceback.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._entered = False
        self._thread = ThreadPoolExecutor(1, f"netns:{name}")

    def submit(self, does: Callable[[], _Made]) -> Future[_Made]:
        """Run a function in the namespace. The future raises OSError if the namespace is not there."""
        return self._thread.submit(self._inside, does)

    def _inside(self, does: Callable[[], _Made]) -> _Made:
        if not self._entered:
            enter_namespace(self._name)
            self._entered = True
        return does()

    def close(self) -> None:
        """End the thread when it has done all. Calling it twice is harmless."""
        self._thread.shutdown()
