"""A process that takes a CPU away from whatever else runs there."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal

_FIFO = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
print(flush=True)
while True:
    end = time.monotonic() + 0.030
    while time.monotonic() < end:
        pass
    time.sleep(0.170)
"""
_OTHER = """
print(flush=True)
while True:
    pass
"""


@contextlib.contextmanager
def hog(cpu: int, kind: Literal["fifo", "other"]) -> Iterator[None]:
    """``fifo`` takes 30 ms of every 200 ms from everybody; ``other`` is an ordinary busy process."""
    pinned = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\n"
    command = (sys.executable, "-c", pinned + (_FIFO if kind == "fifo" else _OTHER))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()
