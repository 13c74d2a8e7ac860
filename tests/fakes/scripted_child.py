"""Python processes that tell a test how far they have come, and wait until they are told to go on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARIES = Path(__file__).parents[2] / "libraries"

_PRELUDE = """
import os, subprocess, sys, time
from pathlib import Path
state = Path(sys.argv[1])
def forked():
    begun, told = os.pipe()
    if not (pid := os.fork()):
        os.write(told, b"x")
        time.sleep(600)
    os.read(begun, 1)
    return pid
def ready(*words):
    print(*words, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def scripted_children(prelude: str, state: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts scripts after ``prelude``; they know ``state``, ``forked()`` and ``ready(WORD…)``. Ends them all."""
    children: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            (sys.executable, "-c", _PRELUDE + prelude + script, str(state), *arguments),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
        )  # fmt: skip
        children.append(process)
        return process

    try:
        yield start
    finally:
        for process in children:
            process.kill()
            process.communicate()
