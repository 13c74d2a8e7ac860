"""The types of a piece of C, as clang writes them into an object."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf.btf import Types
from pdrgate.builds.elf_file import ElfFile


def types_of(code: str, folder: Path) -> Types:
    """What the code declares; the test is skipped where clang is not installed."""
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    source, made = folder / "types.c", folder / "types.o"
    source.write_text(code)
    subprocess.run(("clang", "-g", "-O2", "-target", "bpf", "-c", source, "-o", made), check=True)
    with made.open("rb") as file:
        return Types(ElfFile(file))
