"""Files that this machine's compilers make, once for each version of their sources."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from pdrgate.this_process.child_environment import child_environment


class CompilerError(Exception):
    """A compiler failed. The message is its first error."""


@contextlib.contextmanager
def compiling(folder: Path) -> Iterator[None]:
    """Make a folder of the cache, and let no other process compile there meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compile_to(output: Path, command: Sequence[str]) -> None:
    """Run a compiler, unless the file is there; it appears only when it is complete. Raises CompilerError."""
    if output.exists():
        return
    partial = output.with_name(output.name + ".part")
    command = (*command, "-o", str(partial))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
        raise CompilerError(f"{command[0]}: {complaint}")
    partial.rename(output)
