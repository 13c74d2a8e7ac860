"""Modules as what their functions and variables say, compiled here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.differences.module_objects import ModuleObjects, module_objects

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
SOURCE = """
extern int printk(const char *format, ...);
extern int other(int);
int untouched(int x);
int limit = 12;
int (*hook)(int) = other;
static int __attribute__((noinline)) checked(int x) { return other(x + limit); }
int entry(int x) { printk("from %d\\n", x); return checked(x) + 1; }
int untouched(int x) { return 3 * x; }
"""


def made(folder: Path, source: str) -> ModuleObjects:
    (folder / "module.c").write_text(source)
    subprocess.run(
        ["gcc", "-O2", "-fno-pic", "-mcmodel=kernel", "-c", "module.c", "-o", "module.o"], cwd=folder, check=True
    )
    return module_objects((folder / "module.o").read_bytes())


def changed(folder: Path, old: str, new: str) -> set[str]:
    before, after = made(folder, SOURCE), made(folder, SOURCE.replace(old, new))
    assert before.functions.keys() == after.functions.keys()
    return {
        name
        for one, other in ((before.functions, after.functions), (before.variables, after.variables))
        for (name, _), digest in one.items()
        if other.get((name, 0)) != digest
    }


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", set()),
        ("int untouched(int x) {", "int added(int x) { return x; } int untouched(int x) {", None),
        ("from %d", "to %d", {"entry"}),
        ("+ 1;", "+ 2;", {"entry"}),
        ("limit = 12", "limit = 13", {"limit"}),
        ("= other;", "= untouched;", {"hook"}),
        ("return other(", "return untouched(", {"checked"}),
    ],
)
def test_what_was_changed_is_found_and_nothing_else(
    tmp_path: Path, old: str, new: str, found: set[str] | None
) -> None:  # fmt: skip
    if found is None:
        before, after = made(tmp_path, SOURCE), made(tmp_path, SOURCE.replace(old, new))
        assert after.functions.keys() - before.functions.keys() == {("added", 0)}
        assert all(after.functions[key] == digest for key, digest in before.functions.items())
        return
    assert changed(tmp_path, old, new) == found


def test_a_note_of_the_release_that_each_module_has_is_no_variable(tmp_path: Path) -> None:
    note = 'static const char __attribute__((section(".note.Linux"), used)) _note_18[] = "6.12.115";\n'
    before, after = (made(tmp_path, note.replace("115", release) + SOURCE) for release in ("115", "116"))
    assert before == after
    assert before.variables.keys() == {("limit", 0), ("hook", 0)}


def test_zeros_that_the_file_does_not_have_are_no_difference(tmp_path: Path) -> None:
    table = "int table[1024];\n"
    before = made(tmp_path, table + SOURCE)
    after = made(tmp_path, table + SOURCE.replace("from %d", "to %d"))  # a text that follows in the file
    assert before.variables["table", 0] == after.variables["table", 0]
    larger = made(tmp_path, table.replace("1024", "2048") + SOURCE)
    assert before.variables["table", 0] != larger.variables["table", 0]


def test_a_damaged_module_is_refused(tmp_path: Path) -> None:
    made(tmp_path, SOURCE)
    content = (tmp_path / "module.o").read_bytes()
    with pytest.raises(ValueError, match=r"damaged|no ELF"):
        module_objects(content[: len(content) // 2])
