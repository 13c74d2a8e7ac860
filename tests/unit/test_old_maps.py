"""Objects whose maps stand in SEC("maps") become objects with maps that are declared by types, which libbpf takes."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf.btf import Types
from pdrgate.bpf.filling import check_setup, orders
from pdrgate.bpf.old_maps import with_declared_maps
from pdrgate.builds.bpf_build import BpfBuildError, bpf_build
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.program_setup import ProgramSetup, filling

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed: run ci/bootstrap")
PROGRAM = """
#define MAP(name, ...) __attribute__((section("maps"), used)) struct { unsigned int field[%d]; } name = {{__VA_ARGS__}}
static long (*lookup)(void *map, const void *key) = (void *)1;
__attribute__((section("xdp"), used)) int counting(void *context);
%s
"""
CALLS = """
int counting(void *context) { unsigned int key = 0; return lookup(&hits, &key) ? 2 : 1; }
"""


def compiled(folder: Path, maps: str, *words: str, fields: int = 5) -> Path:
    source = folder / "old.c"
    source.write_text(PROGRAM % (fields, maps + CALLS))
    path = folder / "old.o"
    subprocess.run(("clang", "-O2", "-target", "bpf", *words, "-c", source, "-o", path), check=True)
    return path


@needs_clang
@pytest.mark.parametrize("words", [(), ("-g",)], ids=["without types", "with types of its own"])
@pytest.mark.parametrize("fields", [4, 5, 7, 9], ids=["oldest", "libbpf", "aya", "iproute2"])
def test_maps_of_the_old_section_are_declared_by_types(tmp_path: Path, words: tuple[str, ...], fields: int) -> None:
    read = compiled(tmp_path, "MAP(hits, 2, 4, 8, 3);\nMAP(seen, 1, 6, 12, 64);", *words, fields=fields).read_bytes()
    elf = ElfFile(io.BytesIO(with_declared_maps(read)))
    maps = Types(elf).maps
    assert {name: (one.kind, one.key_size, one.value_size) for name, one in maps.items()} == {
        "hits": (2, 4, 8), "seen": (1, 6, 12)
    }  # fmt: skip
    (number,) = [at for at, one in enumerate(elf.sections) if one.name == ".maps"]
    symbols = {one.name: one.value for one in elf.all_symbols() if one.section == number and one.name}
    assert symbols == {"hits": 0, "seen": 4 * fields}
    assert elf.section("maps") is None
    assert elf.section("xdp") is not None


@needs_clang
def test_old_maps_are_filled_by_numbers(tmp_path: Path) -> None:
    path = compiled(tmp_path, "MAP(hits, 1, 4, 8, 16);", "-g")
    setup = ProgramSetup(maps=(filling("hits", {"3": "7"}, path),))
    assert orders(check_setup(bpf_build(path, setup=setup)), {}) == "element hits 03000000 0700000000000000\n"


@needs_clang
@pytest.mark.parametrize(
    ("maps", "why"),
    [
        ("MAP(hits, 12, 4, 4, 1);", "its map hits is an array of maps; define it in SEC"),
        ('__attribute__((section("maps"), used)) int hits = 1;', "its map hits has 4 bytes"),
    ],
)
def test_old_maps_that_cannot_be_declared_are_refused_before_a_boot(tmp_path: Path, maps: str, why: str) -> None:
    path = compiled(tmp_path, maps)
    with pytest.raises(BpfBuildError, match=why):
        check_setup(bpf_build(path))


@needs_clang
def test_objects_of_today_stay_as_they_are(tmp_path: Path) -> None:
    source = tmp_path / "new.c"
    source.write_text('__attribute__((section("xdp"), used)) int pass(void *context) { return 2; }\n')
    subprocess.run(("clang", "-O2", "-target", "bpf", "-c", source, "-o", tmp_path / "new.o"), check=True)
    read = (tmp_path / "new.o").read_bytes()
    assert with_declared_maps(read) is read
