"""An import of matplotlib that leaves out the settings in the working directory.

Before all else matplotlib reads a ``matplotlibrc`` there, and prints the lines that it does not understand. In a
stranger's tree, a link of that name would publish what root can read, and a pipe would keep a gate waiting for ever.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading

_CLONE_FS = 0x200
"""A working directory of the thread's own, see unshare(2)."""


def _imported() -> None:
    # Containers that forbid it cannot measure. What is left there, a report, has no thread that needs the directory.
    ctypes.CDLL(None).unshare(_CLONE_FS)
    here = os.open(".", os.O_PATH)
    try:
        os.chdir("/")
        importlib.import_module("matplotlib")
    finally:
        os.fchdir(here)
        os.close(here)


_thread = threading.Thread(target=_imported)
_thread.start()
_thread.join()
