"""Sources as they are checked out to be compiled: a commit's own bytes, whatever the user's git makes of files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from made_trees import Tree, made_tree

from pdrgate.builds.git_tree.revision import revision
from pdrgate.builds.git_tree.sources import Sources
from pdrgate.builds.git_tree.tree_git import reason_of
from pdrgate.builds.handed_over import BuildError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

SCRIPT = b"#!/bin/sh\necho $Id$ ok\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = made_tree(tmp_path / "linux")
    (made.folder / "scripts").mkdir(exist_ok=True)
    (made.folder / "scripts/check.sh").write_bytes(SCRIPT)
    (made.folder / "scripts/check.sh").chmod(0o755)
    (made.folder / "scripts/link").symlink_to("check.sh")
    made.git("add", "-A")
    made.git("commit", "--quiet", "-m", "a script")
    return made


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    folder = tmp_path / "place"
    folder.mkdir()
    return Sources(folder, os.open(folder, os.O_RDONLY))


def check(sources: Sources, tree: Tree) -> None:
    sources.check_out(revision(f"{tree.folder}@HEAD"))
    scripts = sources.checked_out / "scripts"
    assert (scripts / "check.sh").read_bytes() == SCRIPT
    assert (scripts / "check.sh").stat().st_mode & 0o111
    assert (scripts / "link").readlink() == Path("check.sh")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("core.autocrlf", "true"), ("core.eol", "crlf"), ("core.symlinks", "false"), ("core.fileMode", "false")],
)
def test_settings_of_the_tree_do_not_matter(sources: Sources, tree: Tree, setting: str, value: str) -> None:
    tree.git("config", setting, value)
    check(sources, tree)


def test_settings_of_the_user_do_not_matter(
    sources: Sources, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    (home / ".gitconfig").write_text("[core]\n\tautocrlf = true\n\tsymlinks = false\n")
    (home / ".config/git/attributes").write_text("*.sh text eol=crlf ident\n")
    monkeypatch.setenv("HOME", str(home))
    check(sources, tree)


def test_attributes_of_the_commit_do_not_matter(sources: Sources, tree: Tree) -> None:
    (tree.folder / ".gitattributes").write_text("*.sh text eol=crlf ident\n")
    tree.git("add", "-A")
    tree.git("commit", "--quiet", "-m", "attributes")
    check(sources, tree)


def test_sources_of_an_earlier_release_are_checked_out_anew(sources: Sources, tree: Tree) -> None:
    check(sources, tree)
    (sources.folder / "repository.git/info/attributes").unlink()
    (sources.checked_out / "scripts/check.sh").write_bytes(SCRIPT.replace(b"\n", b"\r\n"))
    check(sources, tree)


def test_a_partial_clone_is_told_with_the_reason_and_what_completes_it(
    sources: Sources, tree: Tree, tmp_path: Path
) -> None:
    tree.git("config", "uploadpack.allowFilter", "true")
    part = tmp_path / "part"
    tree.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{tree.folder}", str(part))
    gone = tmp_path / "gone"
    tree.folder.rename(gone)
    with pytest.raises(BuildError) as error:
        sources.check_out(revision(f"{part}@HEAD"))
    told = str(error.value)
    assert f"the clone is partial, and pdrgate's git fetches nothing: git -C {part} fetch --refetch --no-filter" in told
    assert "of the tree: error: git upload-pack" not in told, told


def test_the_reason_is_the_cause_and_not_its_last_consequence() -> None:
    said = """git@git.example.org: Permission denied (publickey).
fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
fatal: could not fetch 0123 from promisor remote
"""
    assert reason_of(said) == (
        "git@git.example.org: Permission denied (publickey). … fatal: could not fetch 0123 from promisor remote"
    )
    assert reason_of("fatal: bad object\n") == "fatal: bad object"
    assert reason_of("") == "no reason is given"
