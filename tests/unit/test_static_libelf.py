"""What loads programs is linked into one file, also by a libelf that lacks two functions that it names (0.192)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.traffic import native

NAMES_THEM = """\
void eu_search_tree_init(void *tree);
void eu_search_tree_fini(void *tree, void (*leave)(void *));

__attribute__((constructor)) static void as_libelf_does(void)
{
	long tree[16] = {0};
	eu_search_tree_init(tree);
	eu_search_tree_fini(tree, 0);
}
"""


@pytest.mark.skipif(
    shutil.which("gcc") is None or not Path("/usr/include/bpf/libbpf.h").exists(),
    reason="gcc or libbpf-dev is not installed: run ci/bootstrap",
)
def test_two_functions_that_are_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "libelf.c").write_text(NAMES_THEM)
    program = tmp_path / "bpf-load"
    link = (*native._static("gcc", "bpf_load"), "-o", program, tmp_path / "libelf.c", *native._libbpf("gcc", ()))
    done = subprocess.run(link, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run((program,), capture_output=True, check=False).returncode == 64
