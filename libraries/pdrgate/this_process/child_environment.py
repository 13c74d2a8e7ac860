"""What programs that pdrgate starts see of its own environment, and how much of this machine they may take.

A CI job keeps its tokens in the environment, and most programs here read what a stranger made: a package, a module, an
eBPF object, a kernel's console. So each gets the few variables that programs need to be found and to run, and no other.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "XDG_CACHE_HOME",
    # Where compilers, loaders and Python look for what was not installed by the distribution.
    "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "PYTHONPATH",
)  # fmt: skip

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "APT_CONFIG")
"""Additional variables of a program that downloads. A proxy's address may hold a password."""


def child_environment(*more: str) -> dict[str, str]:
    """The environment of a program that is started, whose messages are English.

    Args:
        more: names of further variables that this program gets where they are set.
    """
    return {name: os.environ[name] for name in (*_KEPT, *more) if name in os.environ} | {"LC_ALL": "C"}


def run_program(
    *command: str, more: Sequence[str] = (), folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever its exit code, and return all that it printed.

    Args:
        more: variables that it gets beside the others, see `child_environment`.
        folder: where it runs, if not in this process's folder.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=child_environment(*more), cwd=folder
    )


def bounded(*command: str, written: int) -> tuple[str, ...]:
    """The words that run a program which may take 4 GiB of memory and a minute of CPU, and write files of a size.

    For binutils, which trust what they read: a symbol table may name the same gigabyte over and over.

    Args:
        written: bytes that a file of its may have, its output for one.
    """
    return ("prlimit", f"--as={4 << 30}", "--cpu=60", f"--fsize={written}", "--core=0", "--", *command)
