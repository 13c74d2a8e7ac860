"""Revisions of git trees, and the builds that are made of them.

git, make and the compiler are real. The tree is no kernel: what it compiles is one C file, and its image is made up.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from made_kernels import RELEASE
from made_trees import Tree, made_tree

from pdrgate.builds.architecture import ARM64, X86_64
from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.found_builds import commits_named
from pdrgate.builds.git_tree import making, tree_build
from pdrgate.builds.git_tree.configuration import kernel_configuration
from pdrgate.builds.git_tree.revision import commits_between, merge_base, named_revision, revision, uncommitted
from pdrgate.builds.git_tree.sources import Sources
from pdrgate.builds.git_tree.tree_build import built
from pdrgate.builds.handed_over import BuildError
from pdrgate.builds.named_build import came_from, for_architecture, look_at, named_build, pinned
from pdrgate.cli import main
from pdrgate.gate.run.options import RunOptions
from pdrgate.launch.suites import check

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made_tree(tmp_path / "linux")


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tree that needs no more than a compiler, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("make or gcc is not installed")
    monkeypatch.setattr(tree_build, "_check_tools", lambda revision, configuration: None)


def test_a_revision_is_a_tree_and_what_git_calls_a_commit(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    head = tree.commit("int b;")
    found = revision(f"{tree.folder}@")
    assert (found.tree, found.commit, found.text) == (tree.folder.resolve(), head, f"{tree.folder.resolve()}@{head}")
    assert found.name == f"linux@v1-1-g{head[:12]}"
    assert revision(f"{tree.folder}/arch@HEAD~1").name == "linux@v1"
    monkeypatch.chdir(tree.folder)
    assert revision(".@main") == revision("@main") == found
    assert named_revision("linux-image-amd64") is None
    assert named_revision("/nowhere@main") is None
    (tree.folder / "a@b").mkdir()
    assert named_revision("a@b") is None  # a folder of that name comes first


def test_a_bare_repository_is_a_tree_too(tree: Tree, tmp_path: Path) -> None:
    tree.git("clone", "--quiet", "--bare", str(tree.folder), str(tmp_path / "bare.git"))
    assert revision(f"{tmp_path}/bare.git@v1").commit == revision(f"{tree.folder}@v1").commit


@pytest.mark.parametrize(
    ("word", "told"),
    [("v2", "knows no commit v2; name another"), ("--all", "knows no commit --all"), ("main:net.c", "knows no commit")],
)
def test_what_names_no_commit_is_told(tree: Tree, word: str, told: str) -> None:
    with pytest.raises(BuildError, match=told):
        revision(f"{tree.folder}@{word}")


def test_a_folder_that_is_no_tree_of_a_kernel_is_told(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(BuildError, match="is no git tree; name one, or a build tree without @"):
        revision(f"{tmp_path}/plain@main")
    tree.git("rm", "--quiet", "-r", "arch", "Kbuild")
    tree.commit("int b;")
    with pytest.raises(BuildError, match="holds no Linux sources"):
        revision(f"{tree.folder}@")


def test_a_branch_came_from_where_it_left_the_other(tree: Tree) -> None:
    base = tree.git("rev-parse", "HEAD")
    tree.git("checkout", "--quiet", "-b", "topic")
    tree.commit("int b;")
    tree.git("checkout", "--quiet", "main")
    tree.commit("int c;")
    assert merge_base(revision(f"{tree.folder}@topic")).commit == base
    assert came_from(f"{tree.folder}@topic,config=x") == f"{tree.folder.resolve()}@{base},config=x"
    assert came_from("linux-image-amd64") is None
    with pytest.raises(BuildError, match=r"it is part of main itself; name it with --against .*linux@REV$"):
        merge_base(revision(f"{tree.folder}@main"))


def test_three_dots_name_where_a_branch_has_left_another(tree: Tree) -> None:
    base = tree.git("rev-parse", "HEAD")
    tree.git("checkout", "--quiet", "-b", "topic")
    tree.commit("int b;")
    tree.git("checkout", "--quiet", "main")
    tree.commit("int c;")
    for words in ("main...topic", "topic...", "...topic"):
        assert revision(f"{tree.folder}@{words}").commit == base
    for words in ("main...nowhere", "nowhere...main", "--all...main", "main...--all"):
        with pytest.raises(BuildError, match=rf"knows no commit {re.escape(words)}; name another"):
            revision(f"{tree.folder}@{words}")


def test_a_history_that_is_cut_off_is_told(tree: Tree, tmp_path: Path) -> None:
    tree.git("checkout", "--quiet", "-b", "topic")
    tree.commit("int b;")
    tree.git("checkout", "--quiet", "main")
    tree.commit("int c;")
    cut = tmp_path / "cut"
    tree.git("clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{tree.folder}", str(cut))
    with pytest.raises(
        BuildError, match=r"no commit in common with .*whose history is cut off \(git fetch --unshallow"
    ):
        merge_base(revision(f"{cut}@origin/topic"))
    with pytest.raises(BuildError, match="knows no commit HEAD~1, whose history is cut off"):
        revision(f"{cut}@HEAD~1")


@pytest.mark.parametrize("left", ["blob:none", "tree:0"])
def test_a_clone_that_left_a_part_with_its_remote_is_told(tree: Tree, tmp_path: Path, left: str) -> None:
    for setting in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        tree.git("config", setting, "true")
    part = tmp_path / "part"
    tree.git("clone", "--quiet", "--no-checkout", f"--filter={left}", f"file://{tree.folder}", str(part))
    refuses = tmp_path / "ssh"
    refuses.write_text("#!/bin/sh\necho 'git@lab: Permission denied (publickey).' >&2\nexit 255\n")
    refuses.chmod(0o755)
    for setting in ("remote.origin.url=ssh://git@lab/linux.git", f"core.sshCommand={refuses}"):
        tree.git("-C", str(part), "config", *setting.split("=", 1))
    with pytest.raises(BuildError, match=r"promisor remote \(.*\); the clone is partial, .* --no-filter$") as caught:
        built(revision(f"{part}@main"))
    assert any(why in str(caught.value) for why in ("Permission denied (publickey)", "fatal: cannot run"))


def test_commits_between_two_are_named_one_by_one(tree: Tree) -> None:
    commits = [tree.git("rev-parse", "HEAD"), *(tree.commit(f"int {letter};") for letter in "bcd")]
    assert [one.commit for one in commits_between(f"{tree.folder}@v1..")] == commits
    top = tree.folder.resolve()
    assert commits_named([f"{tree.folder}@v1..HEAD~1,config=x", "package"]) == (
        *(f"{top}@{commit},config=x" for commit in commits[:3]), "package",
    )  # fmt: skip
    assert pinned(f"{tree.folder}@main") == f"{top}@{commits[-1]}"
    with pytest.raises(BuildError, match="v1 does not come from HEAD; name a commit before it"):
        commits_between(f"{tree.folder}@HEAD..v1")


@pytest.mark.usefixtures("tools")
def test_a_revision_is_compiled_once_and_the_tree_is_left_alone(tree: Tree, tmp_path: Path) -> None:
    tree.commit("int b;")
    hook = tree.folder / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    (tree.folder / "net.c").write_text("not committed\n")
    before = sorted(str(path) for path in tree.folder.rglob("*"))
    said: list[str] = []
    text = f"{tree.folder}@"
    look_at(text, said.append)
    build = named_build(text, report=said.append)
    assert [line.partition(" (")[0] for line in said[:2]] == [
        f"compiling {build.name}",
        f"  1 files of {tree.folder.resolve()} have changes that are not committed: they are not built",
    ]
    assert sum(line.startswith("compiling") for line in said) == 1
    assert (build.release, build.source) == (RELEASE, text)
    assert build.label.startswith("linux@v1-1-g")
    assert build.symbols is not None
    assert build.symbols.read_text().startswith("pdrgate 20")
    assert "LAST=alldefconfig" in (build.config_text() or "")
    assert "CONFIG_VIRTIO_NET=y" in (build.config_text() or "")
    assert before == sorted(str(path) for path in tree.folder.rglob("*"))
    assert not (tmp_path / "hooked").exists()
    assert uncommitted(revision(text).repository) == 1


@pytest.mark.usefixtures("tools")
def test_a_build_from_the_start_reports_files_of_about_as_many_as_the_last_one_compiled_and_its_log(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_WORD_AGAIN", 0.1)
    said: list[str] = []
    for one, line in ((tree, "int b;"), (made_tree(tmp_path / "other"), "int c;")):
        makefile = one.folder / "Makefile"
        step = '\t@echo "  CC      net.o"\n'
        makefile.write_text(makefile.read_text().replace(step, step + "\t@sleep 2\n" + step))
        one.commit(line)
        said = []
        built(revision(f"{one.folder}@"), report=said.append)
    assert any(re.fullmatch(r"  1 of about 2 files compiled; /\S+/make.log has what make says", one) for one in said)
    assert re.search(r"; what make says is in /\S+/make.log\)$", said[0])


@pytest.mark.usefixtures("tools")
def test_sources_have_the_bytes_of_the_commit_whatever_git_does_to_a_checkout(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a tree of Git for Windows, and a user's own settings and attributes."""
    home = tmp_path / "home"
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/attributes").write_text("* text=auto eol=crlf\n")
    (home / ".gitconfig").write_text("[core]\n\tautocrlf = true\n\tsymlinks = false\n")
    monkeypatch.setenv("HOME", str(home))
    (tree.folder / "run.sh").write_text("#!/bin/sh\n# $Id$\n")
    (tree.folder / "run.sh").chmod(0o755)
    (tree.folder / "link").symlink_to("arch")
    (tree.folder / ".gitattributes").write_text("*.sh ident eol=crlf\n")
    tree.git("add", "-A")
    tree.commit("int b;")
    for setting in ("core.autocrlf=true", "core.eol=crlf", "core.symlinks=false", "core.fileMode=false"):
        tree.git("config", *setting.split("="))
    built(revision(f"{tree.folder}@"))
    (source,) = (tmp_path / "cache").rglob("source")
    assert (source / "run.sh").read_bytes() == b"#!/bin/sh\n# $Id$\n"
    assert (source / "run.sh").stat().st_mode & 0o111
    assert (source / "link").is_symlink()


@pytest.mark.usefixtures("tools")
def test_another_tree_of_the_same_line_goes_on_where_the_first_one_was(tree: Tree, tmp_path: Path) -> None:
    (tree.folder / "of_the_first.h").write_text("")
    tree.commit("int b;")
    built(revision(f"{tree.folder}@"))
    other = tmp_path / "other"
    shutil.copytree(tree.folder, other, ignore=shutil.ignore_patterns(".git", "of_the_first.h"))
    second = Tree(other)
    second.commit("int c;")  # nothing of the first tree's is known there
    (source,) = (tmp_path / "cache").rglob("source")
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    built(revision(f"{other}@"))
    after = {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()}
    assert source.parent.name == "6.12"
    assert before.keys() - after.keys() - {source / "arch"} == {source / "of_the_first.h"}
    assert [path.name for path, written in after.items() if written != before[path]] == ["net.c"]


@pytest.mark.usefixtures("tools")
def test_a_file_that_came_back_to_what_the_ancestor_had_is_not_compiled_again(tree: Tree, tmp_path: Path) -> None:
    header = tree.folder / "of_many.h"
    header.write_text("old")
    base = tree.commit("int b;")
    built(revision(f"{tree.folder}@"))
    header.write_text("new")
    built(revision(f"{tree.folder}@{tree.commit('int b; ')}"))
    tree.git("reset", "--quiet", "--hard", base)
    tree.commit("int c;")
    built(revision(f"{tree.folder}@"))
    (source,) = (tmp_path / "cache").rglob("source")
    (left,) = (path for path in (tmp_path / "cache").rglob("left/*") if path.name.startswith(base))
    compiled = (left / "vmlinux").stat().st_mtime
    assert (source / "of_many.h").read_text() == "old"
    assert (source / "of_many.h").stat().st_mtime < compiled < (source / "net.c").stat().st_mtime


@pytest.mark.usefixtures("tools")
def test_a_file_that_differs_from_the_ancestor_is_newer_than_its_objects(tree: Tree, tmp_path: Path) -> None:
    header = tree.folder / "of_many.h"
    header.write_text("old")
    base = tree.commit("int b;")
    header.write_text("new")
    candidate = tree.commit("int b; ")
    sources = Sources(tmp_path / "place", os.open(os.devnull, os.O_RDONLY))
    sources.folder.mkdir()
    source = sources.checked_out / "of_many.h"
    sources.check_out(revision(f"{tree.folder}@{candidate}"))
    os.utime(source, (1_000_000_000, 1_000_000_000))  # written long before the ancestor was compiled
    begun = time.time() - 1
    sources.check_out(revision(f"{tree.folder}@{candidate}"), base)
    assert source.read_text() == "new" and source.stat().st_mtime > begun


@pytest.mark.usefixtures("tools")
def test_objects_of_a_base_stay_while_branches_go_on_from_it(tree: Tree, tmp_path: Path) -> None:
    base = tree.git("rev-parse", "HEAD")
    built(revision(f"{tree.folder}@{base}"))
    for number in range(6):
        tree.git("reset", "--quiet", "--hard", base)
        branch = tree.commit(f"int b{number};")
        sentences: list[str] = []
        built(revision(f"{tree.folder}@{branch}"), report=sentences.append)
        assert "(what differs from an ancestor" in sentences[0]
    names = [path.name for path in (tmp_path / "cache").rglob("left/*")]
    assert len(names) == 4 and any(name.startswith(base) for name in names)


@pytest.mark.usefixtures("tools")
def test_no_date_is_set_through_a_link_in_place_of_a_folder(tree: Tree, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("")
    before = (elsewhere / "file").stat().st_mtime_ns
    base = tree.git("rev-parse", "HEAD")
    (tree.folder / "place").mkdir()
    (tree.folder / "place/file").write_text("")
    built(revision(f"{tree.folder}@{base}"))
    built(revision(f"{tree.folder}@{tree.commit('int b;')}"))
    shutil.rmtree(tree.folder / "place")
    (tree.folder / "place").symlink_to(elsewhere)
    built(revision(f"{tree.folder}@{tree.commit('int c;')}"))
    assert (elsewhere / "file").stat().st_mtime_ns == before


@pytest.mark.usefixtures("tools")
def test_the_compiler_s_first_error_is_told_and_the_next_revision_compiles(tree: Tree) -> None:
    good = tree.git("rev-parse", "HEAD")
    tree.commit("int b = c;")
    with pytest.raises(BuildError, match=r"^linux@v1-1-g\w{12}: does not compile: net.c:1:9: error: .*c.* undeclared"):
        built(revision(f"{tree.folder}@"))
    assert named_build(f"{tree.folder}@{good}").name == "linux@v1"


@pytest.mark.usefixtures("tools")
def test_what_compiled_before_an_error_is_not_compiled_again(tree: Tree, tmp_path: Path) -> None:
    bad = tree.commit("int b = c;")
    with pytest.raises(BuildError, match="does not compile"):
        built(revision(f"{tree.folder}@"))
    (left,) = (tmp_path / "cache").rglob("left/*")
    assert left.name.startswith(bad) and (left / ".config").exists()
    tree.commit("int b;")
    sentences: list[str] = []
    built(revision(f"{tree.folder}@"), report=sentences.append)
    assert "(what differs from an ancestor; " in sentences[0]


@pytest.mark.usefixtures("tools")
def test_the_baseline_compiles_first_and_the_candidate_goes_on_from_it(tree: Tree) -> None:
    tree.commit("int b;")
    sentences: list[str] = []
    testbed = Path("resources/testbeds/local-vm.yaml")
    check(RunOptions(testbed=testbed, kernel=f"{tree.folder}@", against=f"{tree.folder}@v1"), sentences.append)
    first, second = [sentence for sentence in sentences if sentence.startswith("compiling")]
    assert first.startswith("compiling linux@v1 (some minutes")
    assert second.startswith("compiling linux@v1-1-g") and "(what differs from an ancestor" in second


@pytest.mark.usefixtures("tools")
def test_what_built_in_modules_say_of_themselves_is_kept_with_its_zeros(tree: Tree) -> None:
    (kept,) = built(revision(f"{tree.folder}@")).rglob("modules.builtin.modinfo")
    assert kept.read_bytes() == b"virtio.license=GPL\0"


@pytest.mark.usefixtures("tools")
def test_a_revision_is_built_into_a_folder_for_another_machine(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tree.git("rev-parse", "HEAD")
    tree.commit("int b = c;")
    into = tmp_path / "candidate"
    assert main(["build", f"{tree.folder}@{good}", "--into", str(into)]) == 0
    assert capsys.readouterr().out == f"{into}\n"
    shutil.rmtree(tmp_path / "cache")
    found = named_build(f"{into},vmlinux={into / 'vmlinux'}")
    assert (found.label, found.config_text()) == (
        f"candidate ({RELEASE})",
        named_build(f"{tree.folder}@v1").config_text(),
    )
    assert main(["build", f"{tree.folder}@{good}", "--into", str(into)]) == 64
    assert "candidate: is there already, and is no empty folder; name another one" in capsys.readouterr().err
    assert main(["build", f"{tree.folder}@", "--into", str(tmp_path / "worse")]) == 1
    assert "does not compile: net.c:1:9: error: " in capsys.readouterr().err
    assert not (tmp_path / "worse").exists()
    assert main(["build", f"{tree.folder}@none", "--into", str(tmp_path / "none")]) == 2


@pytest.mark.usefixtures("tools")
def test_a_configuration_of_one_s_own_is_filled_in_and_has_modules(tree: Tree, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text("CONFIG_MODULES=y\n")
    build = named_build(f"{tree.folder}@v1,config={own}")
    assert build.config_text() == "CONFIG_MODULES=y\nLAST=olddefconfig\n"
    assert build.modules is not None
    with pytest.raises(BuildError, match="of parts it takes config=FILE and arch=NAME only"):
        named_build(f"{tree.folder}@v1,modules={tmp_path}")
    with pytest.raises(BuildError, match="is built already; config=FILE goes with a revision"):
        named_build(f"{build.image},config={own}")
    with pytest.raises(BuildError, match="is built already, for x86_64; leave arch= out, or name another"):
        named_build(f"{build.image},arch=arm64")
    assert named_build(f"{build.image},arch=x86").architecture == X86_64


@pytest.mark.usefixtures("tools")
@pytest.mark.skipif(shutil.which(ARM64.compiler) is None, reason=f"{ARM64.compiler_package} is not installed")
def test_a_revision_is_compiled_for_the_architecture_that_is_named_or_that_its_config_is_for(
    tree: Tree, tmp_path: Path
) -> None:
    own = tmp_path / "own.config"
    own.write_text("CONFIG_ARM64=y\n")
    builds = [named_build(f"{tree.folder}@v1{words}") for words in (",arch=aarch64", f",config={own}", ",arch=amd64")]
    assert [one.architecture for one in builds] == [ARM64, ARM64, X86_64]
    machines = [int.from_bytes(one.vmlinux.read_bytes()[18:20], "little") for one in builds if one.vmlinux is not None]
    assert machines == [183, 183, 62]  # EM_AARCH64 and EM_X86_64 of elf.h
    config = builds[0].config_text() or ""
    assert "CONFIG_SERIAL_AMBA_PL011=y" in config
    assert "CONFIG_PVH=y" not in config
    with pytest.raises(BuildError, match=r"own.config: is a .config for arm64, and x86_64 was asked for"):
        named_build(f"{tree.folder}@v1,config={own},arch=amd64")
    with pytest.raises(BuildError, match="'mips' is no architecture of guests; name one of amd64, arm64"):
        named_build(f"{tree.folder}@v1,arch=mips")


def test_a_name_for_several_architectures_is_that_of_a_tree_or_says_where_it_differs(tree: Tree) -> None:
    named = f"{tree.folder}@main,config=x"
    for alone in (False, True):
        assert for_architecture(named, ARM64, alone=alone) == f"{tree.folder}@main,arch=arm64,config=x"
        place = "trixie/linux-image-cloud-{arch}"
        assert for_architecture(place, X86_64, alone=alone) == "trixie/linux-image-cloud-amd64"
    with pytest.raises(BuildError, match=r"is one build for each architecture; .* or write \{arch\} where"):
        for_architecture("linux-image-amd64", X86_64, alone=False)


def test_a_build_that_is_there_is_for_the_only_architecture_that_is_asked_for() -> None:
    """A CI of kernels has ARCH in its environment, for make."""
    assert for_architecture("builds/new,vmlinux=x", X86_64, alone=True) == "builds/new,arch=amd64,vmlinux=x"


def test_a_configuration_that_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("nothing\n")
    with pytest.raises(BuildError, match=r"is no \.config"):
        kernel_configuration(file)
    file.write_text("CONFIG_RISCV=y\n")
    with pytest.raises(BuildError, match=r"of another architecture \(CONFIG_RISCV=y\)"):
        kernel_configuration(file)


def test_a_packed_configuration_is_unpacked(tmp_path: Path) -> None:
    """As a running kernel has it: /proc/config.gz."""
    text = "CONFIG_X86_64=y\nCONFIG_NET=y\n"
    file = tmp_path / "config.gz"
    file.write_bytes(gzip.compress(text.encode()))
    assert kernel_configuration(file).text == text
    file.write_bytes(gzip.compress(text.encode())[:-12])
    with pytest.raises(BuildError, match=r"config\.gz: cannot be unpacked \(it ends too early\)"):
        kernel_configuration(file)


ASKED = """\
CONFIG_NET=y
CONFIG_CC_IS_CLANG=y
CONFIG_CC_VERSION_TEXT="clang 21"
CONFIG_CC_HAS_KASAN_GENERIC=y
CONFIG_BRIDGE=m
CONFIG_HZ=1000
CONFIG_GONE=y
# CONFIG_MPTCP is not set
"""


@pytest.mark.usefixtures("tools")
def test_options_that_are_not_in_the_kernel_are_told(tree: Tree, tmp_path: Path) -> None:
    makefile = tree.folder / "Makefile"
    left_out = (
        "sed -i -e '/CLANG/d;/VERSION/d;/HAS/d;/GONE/d;s/BRIDGE=m/BRIDGE=y/;s/=1000/=250/' "
        "-e 's/# .*MPTCP is not set/CONFIG_MPTCP=y/' $(O)/.config"
    )
    makefile.write_text(makefile.read_text().replace("\techo LAST=", f"\t{left_out}\n\techo LAST="))
    tree.commit("int b;")
    own, said = tmp_path / "own.config", []
    own.write_text(ASKED)
    for _ in range(2):  # also of a build that is kept
        said.clear()
        built(revision(f"{tree.folder}@"), own, report=said.append)
        assert said[-1].partition(": ")[2] == (
            "5 options of the .config are otherwise in the kernel, by conditions or other options: MPTCP=n (y), "
            "CC_IS_CLANG=y (not set), BRIDGE=m (y), HZ=1000 (250), GONE=y (not set); it was made for "
            "clang, and gcc compiles here"
        )
    said.clear()
    built(revision(f"{tree.folder}@"), report=said.append)
    assert not any("options of the .config" in sentence for sentence in said)


@pytest.mark.usefixtures("tools")
def test_files_that_only_a_distribution_s_sources_have_are_left_out(tree: Tree, tmp_path: Path) -> None:
    (tree.folder / "certs").mkdir()
    (tree.folder / "certs/own.pem").write_text("key\n")
    tree.commit("int b;")
    own, said = tmp_path / "own.config", []
    own.write_text(
        'CONFIG_SYSTEM_TRUSTED_KEYS="distribution/certs/all.pem"\nCONFIG_SYSTEM_REVOCATION_KEYS="certs/own.pem"\n'
        'CONFIG_MODULE_SIG_KEY="/usr/lib/key.pem"\nCONFIG_EXTRA_FIRMWARE="a.bin b.bin"\n'
    )
    folder = built(revision(f"{tree.folder}@"), own, report=said.append)
    (made,) = folder.glob("boot/config-*")
    assert made.read_text().splitlines()[:4] == [
        'CONFIG_SYSTEM_TRUSTED_KEYS=""', 'CONFIG_SYSTEM_REVOCATION_KEYS="certs/own.pem"',
        'CONFIG_MODULE_SIG_KEY="certs/signing_key.pem"', 'CONFIG_EXTRA_FIRMWARE=""',
    ]  # fmt: skip
    assert [sentence.strip() for sentence in said if "sources lack" in sentence] == [
        "CONFIG_SYSTEM_TRUSTED_KEYS names distribution/certs/all.pem, which the sources lack: it is left empty",
        "CONFIG_MODULE_SIG_KEY names /usr/lib/key.pem, which the sources lack: it is certs/signing_key.pem",
        "CONFIG_EXTRA_FIRMWARE names a.bin b.bin, which the sources lack: it is left empty",
    ]


def test_programs_that_an_option_takes_are_asked_for_beforehand(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.config"
    own.write_text("CONFIG_DEBUG_INFO_BTF=y\nCONFIG_KERNEL_XZ=y\n# CONFIG_KERNEL_ZSTD is not set\n")
    here = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("pahole", "zstd") else here("true"))
    with pytest.raises(MissingToolError, match=r"apt-get install .*pahole \(in older releases pahole is in dwarves\)$"):
        built(revision(f"{tree.folder}@"), own)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("  LD      .tmp\nBTF: .tmp: pahole (pahole) is not available\nFailed to generate BTF\n"
         "make[1]: *** [M:1: vmlinux] Error 1\nmake: *** [__sub-make] Error 2\n",
         "BTF: .tmp: pahole (pahole) is not available"),
        ("  CC      a.o\n  CERT    b\nAt main.c:1: could not open\nmake[2]: *** [certs] Error 1\n",
         "At main.c:1: could not open"),
        ("  CC      a.o\nmake[3]: *** No rule to make target 'x.pem', needed by 'y'.  Stop.\nmake: *** [c] Error 2\n",
         "make[3]: *** No rule to make target 'x.pem', needed by 'y'.  Stop."),
        ("  CC      a.o\na.c:1:2: warning: odd\nmake[1]: *** [a.o] Error 1\n", "make[1]: *** [a.o] Error 1"),
        ("a.c:1:2: error: worse\nmake[1]: *** [a.o] Error 1\n", "a.c:1:2: error: worse"),
        ("", "make failed without a word"),
    ],
)  # fmt: skip
def test_the_words_that_say_why_make_failed(said: str, why: str) -> None:
    assert tree_build.first_error(said) == why


def test_what_is_missing_for_compiling_is_told(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("flex", "bc") else f"/usr/bin/{name}")
    with pytest.raises(MissingToolError, match=r"\./ci/bootstrap --compile, or: apt-get install .*flex bc"):
        built(revision(f"{tree.folder}@"))


def test_a_tree_of_linux_compiles_with_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tree that the environment names: made-up trees leave other files than Linux does."""
    folder = os.environ.get("PDRGATE_KERNEL_TREE", "")
    if not folder:
        pytest.skip("PDRGATE_KERNEL_TREE names no git tree of a kernel")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = tmp_path / "small.config"
    off = ("NET", "PCI", "ACPI", "USB_SUPPORT", "INPUT", "DRM", "SOUND", "BLOCK", "CRYPTO", "SUSPEND", "KVM")
    on = ("CONFIG_64BIT=y", "CONFIG_MODULES=y", "CONFIG_TEST_MODULE=m", "CONFIG_RUNTIME_TESTING_MENU=y")
    config.write_text("\n".join((*on, *(f"# CONFIG_{name} is not set" for name in off))) + "\n")
    build = built(revision(f"{folder}@HEAD"), config)
    (info,) = build.rglob("modules.builtin.modinfo")
    assert b"\0" in info.read_bytes()
    assert [path.name for path in build.rglob("*.ko")]
    assert build.joinpath("vmlinux").read_bytes().startswith(b"\x7fELF")
