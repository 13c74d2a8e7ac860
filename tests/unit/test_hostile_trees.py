"""Trees whose Makefiles and configurations are a stranger's: what they run sees nothing, and leaves nothing elsewhere.

git, make, the compiler and the sandbox are real. The tree is no kernel, as in `test_git_tree`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from made_trees import Tree, made_tree

from pdrgate.builds.decompression import MissingToolError
from pdrgate.builds.git_tree import tree_build
from pdrgate.builds.git_tree.leftovers import generations, true_parents
from pdrgate.builds.git_tree.revision import revision, uncommitted
from pdrgate.builds.git_tree.tree_build import built
from pdrgate.builds.handed_over import BuildError
from pdrgate.hosts import sandbox
from pdrgate.hosts.sandbox import Sandbox, nobody
from pdrgate.values.errors import StorageError, TestbedError

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(bool(sandbox.lacking()), reason=f"no sandbox can be had: {sandbox.lacking()}"),
]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree that needs no more than a compiler, and a cache of its own."""
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("make or gcc is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tree_build, "_check_tools", lambda revision, configuration: None)
    return made_tree(tmp_path / "linux")


def evil(tree: Tree, *lines: str) -> str:
    """Commit a Makefile that does more when it makes the image, at last."""
    makefile = tree.folder / "Makefile"
    done = "".join(f"\t@{line}\n" for line in lines)
    makefile.write_text(makefile.read_text().replace("modules:\n", f"{done}modules:\n", 1))
    return tree.commit("int evil;")


def head(tree: Tree) -> Path:
    """The build of its HEAD."""
    return built(revision(f"{tree.folder}@"))


def all_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_a_makefile_that_looks_for_secrets_finds_none(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_JOB_TOKEN", "a-secret-in-the-environment")
    held = tmp_path / "readable by all"
    held.write_text("a-secret-in-a-file")
    looks = (
        "env", "sed 's/^ */net /' /proc/net/dev", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'", f"cat '{held}'",
        f"ls -la / /root /home /var /run /tmp '{tmp_path}'",
        "id", "grep -h Cap /proc/self/status", "ls -d /proc/[0-9]*",
    )  # fmt: skip
    evil(tree, *(f"{look} >>$(O)/System.map 2>&1 || true" for look in looks))
    map_of = next((head(tree) / "boot").glob("System.map-*")).read_text()
    assert "a-secret" not in map_of
    assert str(tmp_path.name) not in re.sub(r"(cannot access|cat:) .*", "", map_of)
    assert re.findall(r"^net (\w+):", map_of, re.M) == ["lo"]  # a network that leads nowhere
    assert all(int(bits, 16) == 0 for bits in re.findall(r"Cap(?:Inh|Prm|Eff|Amb):\s*(\w+)", map_of))
    assert len(re.findall(r"^/proc/\d+$", map_of, re.M)) < 10
    assert not os.geteuid() or f"uid={os.geteuid()}(" in map_of
    assert os.geteuid() or re.search(r"uid=6\d{4} gid=6\d{4} groups=6\d{4}\n", map_of)


def test_nothing_that_a_build_writes_is_elsewhere_than_in_its_own_folders(tree: Tree, tmp_path: Path) -> None:
    honest = tree.git("rev-parse", "HEAD")
    key = tree_build._key(revision(f"{tree.folder}@{honest}"), tree_build.kernel_configuration(None))
    cache = tmp_path / f"cache/pdrgate/trees-{os.geteuid()}"
    planted = f"mkdir -p {cache}/builds/{key}/boot {tree.folder}/planted"
    evil(
        tree, f"{planted} || true", "echo 'all:; touch $(O)/../planted' >GNUmakefile || true",
        "mkdir $(O)/planted; touch $(O)/../planted /planted /usr/planted || true",
        "setsid sh -c 'sleep 1000; :' planted </dev/null >/dev/null 2>&1 &",
    )  # fmt: skip
    build = head(tree)
    assert [path.name for path in (cache / "builds").iterdir()] == [build.name]
    places = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*planted*")}
    assert places == {f"cache/pdrgate/trees-{os.geteuid()}/6.12/left/{build.name}/planted"}
    assert not Path("/usr/planted").exists()
    assert not (cache / "6.12/source/GNUmakefile").exists()
    assert not [1 for path in Path("/proc").glob("[0-9]*/cmdline") if b"sleep 1000; :\0planted" in _read(path)]
    named = f"{tree.folder}@{honest}"
    assert built(revision(named)).name == key
    assert b"int evil" not in all_below(built(revision(named)))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


LINKED = ("System.map", ".config", "vmlinux", "arch/x86/boot/bzImage", "include/config/kernel.release")


@pytest.mark.parametrize("name", LINKED)
def test_a_link_in_place_of_what_is_taken_out_is_refused(tree: Tree, tmp_path: Path, name: str) -> None:
    held = tmp_path / "secret"
    held.write_text("a-secret-in-a-file")
    held.chmod(0o600)
    evil(tree, f"ln -sf {held} $(O)/{name}")
    # Where the program that strips vmlinux meets it, in the sandbox, there is no such file.
    with pytest.raises(BuildError, match=r"^linux@\S+: (.*link to |does not compile: )"):
        head(tree)
    assert held.read_text() == "a-secret-in-a-file"
    assert b"a-secret" not in all_below(tmp_path / "cache")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("rm $(O)/System.map; mkfifo $(O)/System.map", "is a FIFO and no regular file"),
        ("rm $(O)/System.map", "System.map: cannot read it: No such file"),
        ("truncate -s 8M $(O)/System.map", "System.map: is no file of its kind"),
        ("truncate -s 1G $(O)/System.map", "System.map: has 1024 MiB"),
        ("echo not a kernel >$(O)/arch/x86/boot/bzImage", "bzImage: is no file of its kind"),
        ("echo ../../../etc/6.12 >$(O)/include/config/kernel.release", "its release is '../../../etc/6.12', which no"),
        ("echo /6.12 >$(O)/include/config/kernel.release", "its release is '/6.12', which no kernel is called"),
        ("echo text >$(O)/vmlinux", "vmlinux: is no file of its kind"),
    ],
)
def test_what_is_no_file_of_a_kernel_is_not_taken_out(tree: Tree, tmp_path: Path, line: str, told: str) -> None:
    evil(tree, line)
    with pytest.raises(BuildError, match=re.escape(told)):
        head(tree)
    assert list((tmp_path / "cache").rglob("builds/*")) == []


def test_of_modules_only_such_files_are_taken_out(tree: Tree, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text("CONFIG_MODULES=y\n")
    makefile = tree.folder / "Makefile"
    folder = re.findall(r"lib/modules/\S+?(?=/)", makefile.read_text())[0]
    place = f"$(INSTALL_MOD_PATH)/{folder}"
    lines = (
        f"cp $(O)/vmlinux {place}/kernel/good.ko", f"ln -s /etc {place}/build", f"ln -s {own} {place}/kernel/link.ko",
        f"touch {place}/other", f"mkfifo {place}/pipe",
    )  # fmt: skip
    makefile.write_text(makefile.read_text() + "".join(f"\t@{line}\n" for line in lines))
    tree.commit("int b;")
    build = built(revision(f"{tree.folder}@"), own)
    found = sorted(path.name for path in (build / folder).rglob("*") if not path.is_dir())
    assert found == ["good.ko", "modules.builtin.modinfo", "modules.order"]


def test_no_program_of_a_tree_s_configuration_runs_on_this_machine(tree: Tree, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    ran.mkdir(mode=0o777)
    ran.chmod(0o777)
    program = tree.folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}/$$ /tmp/pdrgate-ran-of-a-tree\ncat\n")
    program.chmod(0o755)
    (tree.folder / ".gitattributes").write_text("*.c filter=evil diff=evil\n")
    commit = tree.commit("int b;")
    settings = {
        "filter.evil.smudge": program, "filter.evil.clean": program, "filter.evil.required": "true",
        "diff.evil.textconv": program, "gpg.program": program, "log.showSignature": "true", "core.fsmonitor": program,
        "core.hooksPath": tree.folder, "core.pager": program, "core.sshCommand": program,
        "core.alternateRefsCommand": program, "uploadpack.packObjectsHook": program,
        "remote.origin.url": f"ext::{program}", "remote.origin.promisor": "true", "protocol.ext.allow": "always",
        "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1", "core.gitProxy": program,
    }  # fmt: skip
    for name, value in settings.items():
        tree.git("config", name, str(value))
    (tree.folder / "net.c").write_text("int changed;\n")
    found = revision(f"{tree.folder}@")
    assert found.commit == commit and found.name
    uncommitted(found.repository)
    with pytest.raises(BuildError, match="knows no commit"):
        revision(f"{tree.folder}@{'1' * 40}")
    assert built(found).name.startswith(commit)
    assert list(ran.iterdir()) == [] and not Path("/tmp/pdrgate-ran-of-a-tree").exists()


def test_a_commit_whose_files_are_others_than_its_digest_says_is_refused(tree: Tree) -> None:
    tree.commit("int good;")
    named = revision(f"{tree.folder}@")
    digest = tree.git("rev-parse", "HEAD:net.c")
    forged = tree.folder / ".git/objects" / digest[:2] / digest[2:]
    forged.unlink()
    text = b"int evil;\n"
    forged.write_bytes(zlib.compress(b"blob %d\0" % len(text) + text))
    with pytest.raises(BuildError, match="its sources cannot be had of the tree: "):
        built(named)


def test_only_objects_of_an_ancestor_are_taken_over(tree: Tree, tmp_path: Path) -> None:
    """A commit beside it, another tree, or one that merely claims to be an ancestor may be anybody's."""
    seen = "ls $(O)/mark-* >>$(O)/System.map 2>/dev/null; touch $(O)/mark-$$(sed 's/[^a-z]//g' net.c)"
    first = evil(tree, seen)
    head(tree)
    tree.git("checkout", "--quiet", "-b", "beside")
    beside = tree.commit("int beside;")
    head(tree)
    tree.git("checkout", "--quiet", "main")
    last = tree.commit("int last;")
    map_of = next((head(tree) / "boot").glob("System.map-*")).read_text()
    assert re.findall(r"mark-(\w+)", map_of) == ["intevil"]
    now = revision(f"{tree.folder}@")
    assert (generations(now, first), generations(now, last), generations(now, beside)) == (1, 0, None)
    (tree.folder / ".git/info").mkdir(exist_ok=True)
    (tree.folder / ".git/info/grafts").write_text(f"{last} {beside}\n")
    assert tree.git("merge-base", last, beside) == beside
    assert generations(now, beside) is None


def test_a_commit_whose_content_has_another_digest_has_no_parents() -> None:
    content = b"tree " + b"1" * 40 + b"\nparent " + b"2" * 40 + b"\n\nparent " + b"3" * 40 + b"\n"
    name = hashlib.sha1(b"commit %d\0" % len(content) + content).hexdigest().encode()
    true = name + b" commit %d\n" % len(content) + content + b"\n"
    assert true_parents(true) == {name.decode(): frozenset({"2" * 40})}
    assert true_parents(true.replace(b"2", b"4")) == {}
    assert true_parents(b"1" * 40 + b" missing\n") == {}


def test_builds_are_kept_by_whole_digests_in_a_folder_that_nobody_else_writes(tree: Tree, tmp_path: Path) -> None:
    build = head(tree)
    assert re.fullmatch(rf"{tree.git('rev-parse', 'HEAD')}-[0-9a-f]{{64}}", build.name)
    top = build.parents[1]
    about = top.stat()
    assert (about.st_uid, about.st_mode & 0o022) == (os.geteuid(), 0)
    top.rename(tmp_path / "elsewhere")
    top.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="others may write there, or it is a link; remove it, and start again"):
        head(tree)
    top.unlink()
    top.mkdir()
    top.chmod(0o777)
    with pytest.raises(StorageError, match="others may write there"):
        head(tree)


RUN = """import sys
from pdrgate.builds.git_tree import tree_build
tree_build._check_tools = lambda revision, configuration: None
from pdrgate.cli import main
sys.exit(main(["build", sys.argv[1], "--into", sys.argv[2]]))"""


def until(true: Callable[[], object]) -> None:
    """Wait for what must become true, however slow the machine is."""
    for _ in range(6000):
        if true():
            return
        time.sleep(0.02)
    pytest.fail("it never becomes true")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_make_ends_with_a_build_that_is_ended_and_the_next_one_is_its_own(
    tree: Tree, tmp_path: Path, number: signal.Signals
) -> None:
    waits = f"while :; do sleep 0.05; done # {tmp_path.name}"
    evil(tree, f"test -e /source/hurry || sh -c '{waits}'")
    into = str(tmp_path / "into")
    words = (sys.executable, "-c", RUN, f"{tree.folder}@", into)
    killed = subprocess.Popen(words, env=os.environ | {"PYTHONPATH": str(ROOT / "libraries")})

    def at_work() -> list[Path]:
        mark = f"# {tmp_path.name}".encode()
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(path)]

    until(at_work)
    os.kill(killed.pid, number)
    killed.wait()
    until(lambda: not at_work())
    place = next((tmp_path / "cache").rglob("source")).parent
    (place / "index.lock").touch()
    (tree.folder / "hurry").touch()
    last = tree.commit("int last;")
    assert head(tree).name.startswith(last)
    assert sorted(path.name for path in place.iterdir() if path.name.startswith(("work-", "index."))) == []


def test_what_runs_in_a_sandbox_cannot_type_into_the_terminal_of_who_started_it() -> None:
    words = ("sh", "-c", "true 3</dev/tty && echo it has a terminal; echo it ends")
    said = {}
    for name, command in {"outside": list(words), "inside": Sandbox(nobody()).command(*words)}.items():
        child, terminal = pty.fork()
        if child == 0:
            os.execvp(command[0], command)
        said[name] = b""
        with contextlib.suppress(OSError):  # EIO: its other end is closed
            while chunk := os.read(terminal, 4096):
                said[name] += chunk
        os.close(terminal)
        os.waitpid(child, 0)
    assert "it has a terminal" in said["outside"].decode()
    assert "it ends" in said["inside"].decode()
    assert "it has a terminal" not in said["inside"].decode()


def test_root_compiles_nothing_without_a_sandbox(tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = revision(f"{tree.folder}@")
    monkeypatch.setattr(sandbox, "lacking", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(TestbedError, match=r"in a sandbox only: bubblewrap is not installed; .*or set PDRGATE_UNC.*=1"):
        built(named)
    with pytest.raises(TestbedError, match="to read a git tree, a stranger's programs are run"):
        revision(f"{tree.folder}@")
    assert not (tmp_path / "cache").exists()


def test_without_a_sandbox_who_is_not_root_compiles_as_they_are(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "lacking", lambda: "no sandbox can be had")
    if os.geteuid() == 0:
        monkeypatch.setenv(sandbox.UNCONFINED, "1")
    build = head(tree)
    assert build.parents[1] == tmp_path / "cache/pdrgate/trees"
    second = tree.commit("int second;")
    assert head(tree).name.startswith(second)


def test_a_tree_of_root_s_alone_is_named(tree: Tree) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has trees that only root may read")
    (tree.folder / ".git").chmod(0o700)
    with pytest.raises(BuildError, match=rf"\.git: only root may read it, .*: chmod -R o\+rX {tree.folder}"):
        revision(f"{tree.folder}@")


def test_a_worktree_and_a_tree_that_borrows_objects_are_read(tree: Tree, tmp_path: Path) -> None:
    commit = tree.git("rev-parse", "HEAD")
    tree.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "worktree"))
    tree.git("clone", "--quiet", "--shared", str(tree.folder), str(tmp_path / "borrows"))
    for name in ("worktree", "borrows"):
        assert built(revision(f"{tmp_path}/{name}@HEAD")).name.startswith(commit)


def test_a_tool_that_is_missing_is_named_before_anything_is_made(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(*_: object) -> None:
        raise MissingToolError("flex is missing")

    monkeypatch.setattr(tree_build, "_check_tools", lacks)
    with pytest.raises(MissingToolError):
        head(tree)
