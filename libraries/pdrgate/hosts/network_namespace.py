"""Network namespaces of this machine that have a name (ip-netns(8)), entered by a thread and not by a program."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000


def enter_namespace(name: str) -> None:
    """Have the calling thread live in a network namespace from here on. Raises OSError."""
    namespace = os.open(_NAMESPACES / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(namespace)
