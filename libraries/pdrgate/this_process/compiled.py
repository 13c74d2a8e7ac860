"""Files that this machine's compilers make, once for each version of their sources."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pdrgate.this_process.cache import alone, appearing
from pdrgate.this_process.checkout import how_to_install
from pdrgate.this_process.child_environment import run_program
from pdrgate.values.errors import TestbedError

NO_BPF_HEADER = "a missing <bpf/…> header comes with: apt-get install libbpf-dev"


class CompilerError(Exception):
    """A compiler failed. The message is its first error."""


@contextlib.contextmanager
def compiling(what: str, folder: Path, compilers: Mapping[str, str], hint: str = "") -> Iterator[None]:
    """Make a folder of the cache, and let no other process compile there meanwhile.

    Args:
        what: what is compiled.
        compilers: the packages that each compiler and its headers come with.
        hint: what to do where a compiler fails.

    Raises:
        TestbedError: a compiler or a header is missing, or compiling failed.
    """
    for compiler, packages in compilers.items():
        if shutil.which(compiler) is None:
            raise TestbedError(f"compiling {what} takes {compiler}, which is not on PATH; {how_to_install(packages)}")
    try:
        with alone(folder):
            yield
    except CompilerError as error:
        raise TestbedError(f"compiling {what} failed: {error}{hint and f'; {hint}'}") from error


def compile_to(output: Path, command: Sequence[str]) -> None:
    """Run a compiler, unless the file is there; it appears only when it is complete. Raises CompilerError."""
    if output.exists():
        return
    with appearing(output) as part:
        done = run_program(*command, "-o", str(part))
        if done.returncode:
            complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[-200:])
            raise CompilerError(f"{command[0]}: {complaint}")
