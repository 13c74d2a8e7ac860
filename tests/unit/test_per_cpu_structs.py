"""Which struct a per-CPU variable is, by the types of a real object."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf.btf import Types
from pdrgate.builds.elf_file import ElfFile
from pdrgate.guests.metering.memory.naming.line_names import PerCpuStructs

STRUCT = "struct softnet_data { void *list; struct { int processed, dropped; }; int backlog; }"
VARIABLES = {"struct": f"{STRUCT} one", "unnamed": "struct { int count; } one", "array": f"{STRUCT} one[2]"}
"""Of each object one: only a linker places several of a section."""
BEGIN, OWN = 0x1000, 0xFFFF_8880_0C00_1000


def structs(folder: Path, variable: str, section: str = ".data..percpu") -> PerCpuStructs:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    source, made = folder / "types.c", folder / "types.o"
    source.write_text(f'{variable} __attribute__((section("{section}"))) = {{ 0 }};')
    subprocess.run(("clang", "-g", "-O2", "-target", "bpf", "-c", source, "-o", made), check=True)
    with made.open("rb") as file:
        return PerCpuStructs(Types(ElfFile(file)), BEGIN)


def test_a_per_cpu_variable_is_the_struct_that_lies_where_it_begins(tmp_path: Path) -> None:
    found = structs(tmp_path, VARIABLES["struct"])
    part = found.part(BEGIN, OWN)
    assert part is not None
    assert (part.struct, part.begin) == ("softnet_data", OWN)
    assert part.members(OWN, 1 << 12 | 1 << 16) == ["dropped", "backlog"]
    assert found.part(BEGIN + 8, OWN) is None


@pytest.mark.parametrize(
    ("variable", "section"),
    [
        (VARIABLES["unnamed"], ".data..percpu"), (VARIABLES["array"], ".data..percpu"),
        (VARIABLES["struct"], ".data.own"),
    ],
    ids=["without a name", "no struct", "another section"],
)  # fmt: skip
def test_what_is_no_struct_of_each_cpu_has_no_fields(tmp_path: Path, variable: str, section: str) -> None:
    assert structs(tmp_path, variable, section).part(BEGIN, OWN) is None
