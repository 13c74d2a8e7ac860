"""What does the gate say of builds and files that are made to harm it? Each is handed over as a user would.

    sudo .venv/bin/python tests/bench/attacks.py [NAME ...]

Builds are handed over by `pdrgate gate`, with Debian's kernel beside them as the baseline; results, tries and consoles
by the commands that read them. Meanwhile the environment and a file that only root reads hold a secret. A line for each
attack: verdict or exit code, seconds, the largest process, and the first words of the answer; at its end LEAK where the
secret stands in anything that was printed or written, CHANGED where the machine is not as it was, WRITTEN where a file
was made that only the attack names, and HTML where a page has some of the attack's.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "libraries"), str(ROOT / "tests/fakes")]

import hostile_kernel as hostile  # noqa: E402
import robot  # noqa: E402
from hostile_driver import hostile_driver  # noqa: E402
from made_results import compared, result  # noqa: E402
from tree_attacks import TREES  # noqa: E402

from pdrgate.builds.kernel_build import kernel_build  # noqa: E402
from pdrgate.history.results import write_result  # noqa: E402
from pdrgate.results.verdict import Verdict  # noqa: E402

BASELINE = "linux-image-cloud-amd64"
RELEASE = hostile.RELEASE
MODULES = f"lib/modules/{RELEASE}"
LINE = "mov $0x42, %al; mov $0x400000, %ecx; one: outb %al, %dx; loop one"
LONGEST = 900.0
"""Seconds that an attack may keep the gate."""

HTML = "<img src=x onerror=attack()>"
VERDICT = re.compile(rf"({'|'.join(Verdict)}): ")
PORTFOLIO = "portfolio"
ON_SEVERAL_CPUS = "path-bridge"
"""A path that is also measured on several CPUs."""

Attack = Callable[[Path, Path], Sequence[str]]
"""Makes what is handed over in a folder, beside a file with a secret; the words of the command line."""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    told: str
    """All that was printed."""
    seconds: float
    memory: int
    """MiB of the largest process."""

    @property
    def first(self) -> str:
        """Its verdict, or its error."""
        lines = [line.strip() for line in self.told.splitlines()]
        verdicts = [line for line in lines if VERDICT.match(line)]
        return (verdicts or [line for line in lines if line] or ["nothing"])[-1 if not verdicts else 0]


# --- Builds ----------------------------------------------------------------------------------------------------------


def against(build: Path | str, scenario: str = "path-ipv6-routing") -> tuple[str, ...]:
    asked = () if scenario == PORTFOLIO else ("--scenario", scenario)
    return ("gate", "--kernel", str(build), "--against", BASELINE, "--profile", "smoke", "--wait", "1h", *asked)


def deb(folder: Path, data: Callable[[tarfile.TarFile], None], name: str = "evil.deb") -> Path:
    """A package of a kernel that resets the machine, and what else ``data`` adds."""

    def whole(archive: tarfile.TarFile) -> None:
        file(archive, f"boot/vmlinuz-{RELEASE}", image(folder).read_bytes())
        data(archive)

    control = b"Package: linux-image-evil\nVersion: 1\nArchitecture: amd64\nMaintainer: x\nDescription: x\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tar_of(lambda archive: file(archive, "./control", control)),
        "data.tar.gz": tar_of(whole),
    }
    path = folder / name
    path.write_bytes(b"!<arch>\n" + b"".join(ar_member(one, content) for one, content in members.items()))
    return path


def ar_member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)


def tar_of(fill: Callable[[tarfile.TarFile], None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        fill(archive)
    return buffer.getvalue()


def file(archive: tarfile.TarFile, name: str, content: bytes = b"x") -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def link(archive: tarfile.TarFile, name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    archive.addfile(info)


def image(folder: Path) -> Path:
    return hostile.hostile_kernel(folder / f"vmlinuz-{RELEASE}", then=hostile.RESET)


def tree(folder: Path) -> Path:
    """A kernel build tree, whole."""
    top = folder / "tree"
    (top / "arch/x86/boot").mkdir(parents=True)
    shutil.copy(image(folder), top / "arch/x86/boot/bzImage")
    (top / ".config").write_text("CONFIG_PVH=y\n")
    return top


def linked_in_deb(name: str, target: str | None = None, kind: bytes = tarfile.SYMTYPE) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        return against(deb(folder, lambda archive: link(archive, name, target or str(secret), kind)))

    return made


def linked_in_tree(name: str) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        top = tree(folder)
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).unlink(missing_ok=True)
        (top / name).symlink_to(secret)
        if name.endswith(".ko"):
            (top / "modules.order").write_text(f"{name}\n")
        return against(top)

    return made


def config_beside(folder: Path, secret: Path) -> Sequence[str]:
    (folder / f"config-{RELEASE}").symlink_to(secret)
    return against(image(folder))


def ordered(line: bytes) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        top = tree(folder)
        outside = folder / "outside.ko"
        outside.write_bytes(b"\x7fELF")
        (top / "modules.order").write_bytes(line.replace(b"OUTSIDE", os.fsencode(outside)) + b"\n")
        return against(top)

    return made


def in_place_of_image(make: Callable[[Path], object]) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        top = tree(folder)
        path = top / "arch/x86/boot/bzImage"
        path.unlink()
        make(path)
        return against(top)

    return made


def zeros(mebibytes: int) -> bytes:
    """So many, compressed once more: a bomb."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        for _ in range(mebibytes):
            packed.write(bytes(1 << 20))
    return buffer.getvalue()


def image_bomb(folder: Path, secret: Path) -> Sequence[str]:
    return against(hostile.bz_image(folder / "bzImage", zeros(4096)))


def module_bomb(packer: tuple[str, ...], end: str) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        top = tree(folder)
        name = f"drivers/net/virtio_net.ko{end}"
        (top / name).parent.mkdir(parents=True)
        with (top / name).open("wb") as packed:
            process = subprocess.Popen(packer, stdin=subprocess.PIPE, stdout=packed)
            assert process.stdin is not None
            for _ in range(4096):
                process.stdin.write(bytes(1 << 20))
            process.stdin.close()
            process.wait()
        (top / "modules.order").write_text(f"{name}\n")
        return against(top)

    return made


def package_bomb(folder: Path, secret: Path) -> Sequence[str]:
    class Zeros(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return bytes(size)

    def fill(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(f"{MODULES}/kernel/bomb.ko")
        info.size = 4 << 30
        archive.addfile(info, Zeros())

    return against(deb(folder, fill))


def many_members(folder: Path, secret: Path) -> Sequence[str]:
    def fill(archive: tarfile.TarFile) -> None:
        for number in range(300_000):
            file(archive, f"{MODULES}/kernel/{number}", b"")

    return against(deb(folder, fill))


def named(folder: Path, secret: Path) -> Sequence[str]:
    path = folder / "\x1b]0;owned\x07\x1b[2J\nREGRESSION: forged"
    shutil.copy(image(folder), path)
    return against(path)


def cut_short(folder: Path, secret: Path) -> Sequence[str]:
    path = folder / "bzImage"
    path.write_bytes(image(folder).read_bytes()[:0x210])
    return against(path)


def boots(says: bytes, then: str, scenario: str = "path-ipv6-routing") -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        return against(hostile.hostile_kernel(folder / "bzImage", says=says, then=then), scenario)

    return made


def drives(source: str, *words: str, scenario: str = "path-ipv6-routing") -> Attack:
    """The baseline with a driver of an attacker's, on one path; see ``tests/fakes/hostile_drivers``."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        build = hostile_driver(folder, kernel_build(BASELINE), source)
        return (*against(build, scenario), "--afresh", *words)

    return made


DRIVERS: dict[str, Attack] = {
    "the kernel hides what packets cost as idle work": drives("busy_when_idle"),
    "the kernel sends packets twice for those it drops": drives("twice_and_never"),
    "the kernel moves the numbers of packets that it drops": drives("moves_numbers"),
    "the kernel dies where it has several CPUs": drives(
        "dies_on_several_cpus", "--profile", "quick", scenario=ON_SEVERAL_CPUS
    ),
    "the kernel is slow where there is no hypervisor": drives("slow_on_hardware"),
    "the kernel is slow when traffic is steady": drives("slow_when_steady"),
}


BUILDS: dict[str, Attack] = {
    "a package's config is a link to the environment": linked_in_deb(f"boot/config-{RELEASE}", "/proc/self/environ"),
    "a package's config is a link to root's file": linked_in_deb(f"boot/config-{RELEASE}"),
    "a package's config is a hard link": linked_in_deb(f"boot/config-{RELEASE}", "etc/shadow", tarfile.LNKTYPE),
    "a package's folder of modules is a link to /": linked_in_deb(MODULES, "/"),
    "a package's module is a link to root's file": linked_in_deb(f"{MODULES}/kernel/virtio_net.ko"),
    "a package writes outside of its folder": lambda folder, secret: against(
        deb(folder, lambda archive: file(archive, f"../../../../../../..{folder}/written"))
    ),
    "a package writes through its own link": lambda folder, secret: against(
        deb(folder, lambda archive: (link(archive, "boot/x", str(folder)), file(archive, "boot/x/written"))[0])
    ),
    "a package brings a device": linked_in_deb(f"boot/config-{RELEASE}", "x", tarfile.FIFOTYPE),
    "a package of 4 GiB": package_bomb,
    "a package of 300 000 files": many_members,
    "a tree's .config is a link to root's file": linked_in_tree(".config"),
    "a tree's image is a link to root's file": linked_in_tree("arch/x86/boot/bzImage"),
    "a tree's module is a link to root's file": linked_in_tree("drivers/net/virtio_net.ko"),
    "a config beside an image is a link": config_beside,
    "modules.order leads outside": ordered(b"../../../../../../../../../..OUTSIDE"),
    "modules.order has an absolute path": ordered(b"OUTSIDE"),
    "modules.order is no UTF-8": ordered(b"drivers/\xff\xfe.ko"),
    "modules.order holds an escape sequence": ordered(b"drivers/\x1b[2J.ko"),
    "the image is a FIFO": in_place_of_image(os.mkfifo),
    "the image is /dev/zero": in_place_of_image(lambda path: path.symlink_to("/dev/zero")),
    "the image is a bomb of 4 GiB": image_bomb,
    "a module is a bomb by xz": module_bomb(("xz", "-0c"), ".xz"),
    "a module is a bomb by zstd": module_bomb(("zstd", "-qc"), ".zst"),
    "the image is cut short": cut_short,
    "the image's name holds an escape sequence": named,
    "the kernel resets the machine": boots(b"", hostile.RESET),
    "the kernel faults thrice": boots(b"", hostile.TRIPLE_FAULT),
    "the kernel forges a panic": boots(b"Kernel panic - not syncing: forged\n", hostile.RESET),
    "the kernel writes to the terminal": boots(b"\x1b]0;owned\x07\x1b[2J\nPASS: forged", hostile.RESET),
    "the kernel's console makes a pattern backtrack": boots(b"rcu detected " * 4000 + b"\n", hostile.RESET),
    "the kernel writes one line of 4 MiB": boots(b"", f"{LINE}\n{hostile.RESET}"),
    "the kernel writes to its console for ever": boots(b"", hostile.FLOOD),
    "the kernel is silent": boots(b"", hostile.HALT),
    "the kernel is silent on each path": boots(b"", hostile.HALT, PORTFOLIO),
}  # fmt: skip


# --- eBPF objects ----------------------------------------------------------------------------------------------------


def compiled(folder: Path, source: str) -> Path:
    (folder / "evil.bpf.c").write_text(source)
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    words = ("clang", "-O2", "-g", "-target", "bpf", include, f"-I{ROOT}/resources/bpf", "-c", "evil.bpf.c")
    subprocess.run((*words, "-o", "evil.o"), cwd=folder, check=True)
    return folder / "evil.o"


@functools.cache
def router() -> str:
    return (ROOT / "resources/bpf/xdp_router.bpf.c").read_text()


LONG_FRAMES = """*** Settings ***
Resource          ROOT/resources/gate.resource
Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed

*** Test Cases ***
Routing Of Frames With A Payload
    [Tags]    path-xdp-ipv6
    Given The SUT Routes IPv6 By XDP
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    And The Frames Have 128 Bytes
    When Both Programs Are Loaded In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
"""


def edited(before: str, after: str, suite: str = "") -> Attack:
    """pdrgate's own XDP router with one thing done otherwise, against itself as it is; by a suite of a user's own."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        assert before in router(), before
        own = folder / "own"
        own.mkdir()
        good = compiled(own, router())
        words = against_object(compiled(folder, router().replace(before, after)), good)
        if not suite:
            return words
        (folder / "own.robot").write_text(suite.replace("ROOT", str(ROOT)))
        return (*words, "--suite", str(folder / "own.robot"))

    return made


def against_object(candidate: Path, baseline: Path) -> tuple[str, ...]:
    return ("gate", "--bpf", str(candidate), "--against", str(baseline), "--profile", "smoke", "--wait", "1h")


_SENT_ON = "\treturn counted(REDIRECTED, bpf_redirect(route.ifindex, 0));"
_AGED = "\t\tip6->hop_limit--;"
_BACK = """\t__builtin_memcpy(ethernet->h_source, ethernet->h_dest, ETH_ALEN);
\treturn counted(REDIRECTED, XDP_TX);"""

OBJECTS: dict[str, Attack] = {
    "the program sends packets back": edited(_SENT_ON, _BACK),
    "the program does not age packets": edited(_AGED, "\t\t;"),
    "the program ages packets twice": edited(_AGED, "\t\tip6->hop_limit -= 2;"),
    "the program zeroes a word of the source": edited(_AGED, f"{{{_AGED} ip6->saddr.s6_addr32[3] = 0; }}"),
    "the program changes a byte of the payload": edited(
        _AGED, f"{{{_AGED} if ((void *)ip6 + 50 < end) *((__u8 *)ip6 + 49) ^= 1; }}", LONG_FRAMES
    ),
    "the program cuts packets short": edited(_SENT_ON, f"\tbpf_xdp_adjust_tail(ctx, -4);\n{_SENT_ON}"),
    "the program sends to another machine": edited(_SENT_ON, f"\tethernet->h_dest[5] ^= 1;\n{_SENT_ON}"),
    "the verifier refuses the program": edited(_AGED, "\t\t*(volatile int *)(data + 4000) = 1;"),
}  # fmt: skip


# --- What is read ----------------------------------------------------------------------------------------------------


def secret_as(*words: str) -> Attack:
    """A file of root's where another is expected."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        return [word.replace("SECRET", str(secret)) for word in words]

    return made


READ: dict[str, Attack] = {
    "a result is a file of root's": secret_as("report", "SECRET"),
    "trials are a file of root's": secret_as("assess", "SECRET"),
    "two sets are a file of root's": secret_as("compare", "SECRET", "SECRET"),
    "the testbed is a file of root's": secret_as("gate", "--testbed", "SECRET"),
    "the baseline is a file of root's": secret_as("gate", "--baseline", "SECRET"),
    "the history is a file of root's": secret_as("history", "list", "--history", "SECRET"),
    "a password stands in the history's address": lambda folder, secret: (
        "history", "list", "--history", f"postgresql://u:{secret.read_text().strip()}@localhost/x"
    ),
}  # fmt: skip


# --- What earlier jobs have left -------------------------------------------------------------------------------------


def crashed(folder: Path) -> Path:
    """The run of a kernel that crashes, as a job's artifact."""
    gated(boots(b"", hostile.RESET)(folder, folder), folder, "")
    (run,) = (folder / "results").glob("2*")
    return run


def passed(folder: Path) -> Path:
    """The run of a build that nothing is wrong with."""
    gated(against(BASELINE), folder, "")
    (run,) = (folder / "results").glob("2*")
    return run


def merged(*words: str, of: Callable[[Path], Path] = crashed, forged: bool = True, copies: int = 1) -> Attack:
    """The artifact of a job whose candidate crashed, or another; forged, it says that all is well."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        run = of(folder)
        if forged:
            for name in ("result.json", "summary.md", "xunit.xml"):
                (run / name).write_text((run / name).read_text().replace("CRASH", "PASS"))
        places = [run]
        for number in range(1, copies):
            places.append(folder / f"copy-{number}")
            shutil.copytree(run, places[-1])
        return ("merge", *map(str, places), "--into", str(folder / "merged"), *words)

    return made


def tried(forge: Callable[[Path], None]) -> Attack:
    """A comparison that was a REGRESSION, tried again with a history that somebody changed meanwhile."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        words = (*SLOWER, "--profile", "smoke", "--wait", "1h")
        gated(words, folder, "")
        (history,) = folder.rglob("history.db")
        forge(history)
        return words

    return made


SLOWER = (
    "gate", "--kernel", "linux-image-rt-amd64", "--against", "linux-image-amd64", "--scenario", "path-ipv6-routing",
)  # fmt: skip


def equal_pairs(history: Path, later: float = 0.0) -> None:
    """Fourteen pairs of one speed stand where four stood of which each is slower."""
    with contextlib.closing(sqlite3.connect(history, isolation_level=None)) as forged:
        for number, text in forged.execute("SELECT id, content FROM experience WHERE kind = 'try'").fetchall():
            attempt = json.loads(text)
            attempt["pairs"] = {name: [[pairs[0][0]] * 2] * 14 for name, pairs in attempt["pairs"].items()}
            attempt["verdict"] = "PASS"
            attempt["when"] += later
            forged.execute("UPDATE experience SET content = ? WHERE id = ?", (json.dumps(attempt), number))


def linked(history: Path) -> None:
    elsewhere = history.with_name("elsewhere")
    history.rename(elsewhere)
    history.symlink_to(elsewhere)


LEFT: dict[str, Attack] = {
    "a result says PASS and its boots crashed": merged(),
    "a result is of another commit": merged("--commit", "0" * 40, forged=False),
    "a result is of other builds": merged("--build", "0" * 64, forged=False),
    "a result stands in for another job's": merged(of=passed, forged=False, copies=2),
    "a result says PASS and the job failed": merged("--gates", "failure"),
    "the history has fourteen forged pairs": tried(equal_pairs),
    "the history has a try of the future": tried(lambda history: equal_pairs(history, later=86400.0)),
    "the history is a link": tried(linked),
}  # fmt: skip


# --- Folders that a stranger hands over ------------------------------------------------------------------------------


def kept_run(folder: Path) -> Path:
    """The folder of a run, with what a run leaves."""
    run = folder / "run"
    run.mkdir()
    write_result(run / "result.json", result(compared()))
    (run / "allure-results").mkdir()
    (run / "allure-results/1-result.json").write_text(json.dumps({"name": "One", "start": 1, "attachments": []}))
    return run


def planted(name: str, *words: str, of_root: bool = False) -> Attack:
    """A run in which a link leads to a file that is not there yet, or to a file of root's."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        link = kept_run(folder) / name
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(secret if of_root else folder / "written")
        return [str(folder / word) if word in ("run", "merged") else word for word in words]

    return made


def into_a_link(folder: Path, secret: Path) -> Sequence[str]:
    run = kept_run(folder)
    (folder / "merged").symlink_to(folder / "written")
    return ("merge", str(run), "--into", str(folder / "merged/below"))


def resumed(folder: Path, secret: Path, **named: object) -> Sequence[str]:
    """A run of somebody else's machine, whose options name commands."""
    suite = f"*** Test Cases ***\nOne\n    Evaluate    open({str(folder / 'written')!r}, 'w')\n"
    (folder / "evil.robot").write_text(suite)
    run = kept_run(folder)
    options = {"testbed": "resources/testbeds/local-netns.yaml", "suites": ["robot/gate"], "scenarios": ["all"]} | named
    (run / "run.json").write_text(json.dumps(options).replace("FOLDER", str(folder)))
    return ("gate", "--resume", str(run))


def logged(folder: Path, secret: Path) -> Sequence[str]:
    """A run whose Robot has logged HTML of a stranger's."""
    run = kept_run(folder)
    (folder / "evil.robot").write_text(f"*** Test Cases ***\nOne\n    Log    {HTML}    html=True\n")
    robot.run(str(folder / "evil.robot"), outputdir=str(run), log=None, report=None, console="none", stdout=None)
    return ("report", str(run))


def workspace(folder: Path, secret: Path) -> Sequence[str]:
    """A checkout of a change that brings suites where pdrgate has its own."""
    (folder / "robot/gate").mkdir(parents=True)
    suite = f"*** Test Cases ***\nOne\n    [Tags]    default\n    Evaluate    open({str(folder / 'written')!r}, 'w')\n"
    (folder / "robot/gate/evil.robot").write_text(suite)
    return ("gate", "--list-scenarios")


def of_size(mebibytes: int) -> Attack:
    def made(folder: Path, secret: Path) -> Sequence[str]:
        (kept_run(folder) / "result.json").write_text(json.dumps({"schema": 6, "reason": "; (" * (mebibytes << 20)}))
        return ("report", str(folder / "run"), "--format", "sentence")

    return made


HANDED_OVER: dict[str, Attack] = {
    "a run's plots are a link": planted("plots", "report", "run"),
    "a run's part of a page is a link": planted("summary.html.part", "report", "run"),
    "a run's pages are links": planted("summary.md", "report", "run"),
    "a run's console is a file of root's": planted("consoles/1.log", "report", "run", of_root=True),
    "a run's result is a link to a file of root's": planted("result.json", "report", "run", of_root=True),
    "a run's verdict is a file of root's": planted("result.json", "merge", "run", "--into", "merged", of_root=True),
    "runs are merged into a link": into_a_link,
    "a run that is resumed has a link": planted("output.xml", "gate", "--resume", "run"),
    "a run that is resumed names a suite": lambda folder, secret: resumed(
        folder, secret, suites=["FOLDER/evil.robot"]
    ),
    "a run that is resumed names a testbed file": lambda folder, secret: resumed(
        folder, secret, testbed="FOLDER/evil.yaml"
    ),
    "a run that is resumed names a file to append to": lambda folder, secret: resumed(
        folder, secret, noise="FOLDER/written"
    ),
    "a run's log holds HTML": logged,
    "a workspace brings suites of pdrgate's names": workspace,
    "a result has 78 MiB": of_size(26),
    "a result's reason has 12 MiB": of_size(4),
    "a password stands in a misspelled address": lambda folder, secret: (
        "history", "list", "--history", f"postgresql://localhost/x?passwd={secret.read_text().strip()}"
    ),
    "a token stands in an address for a build": lambda folder, secret: (
        *against(f"https://me:{secret.read_text().strip()}@localhost/linux.deb"),
    ),
}  # fmt: skip


# --- The machine -----------------------------------------------------------------------------------------------------


def state() -> dict[str, str]:
    """What nobody but pdrgate would change meanwhile."""
    told = {
        " ".join(words): subprocess.run(words, capture_output=True, text=True, check=False).stdout
        for words in (
            ("ip", "-o", "link"), ("ip", "route"), ("ip", "-6", "route"), ("ls", "/sys/fs/bpf"),
            ("sysctl", "-a", "--pattern", r"net\.(core|ipv4\.ip_forward|ipv6\.conf\.all)"),
        )
    }  # fmt: skip
    for top in ("/etc", "/boot", "/lib/modules", "/usr/local"):
        paths = (path for path in sorted(Path(top).rglob("*")) if ".cache" not in path.parts)
        lines = [f"{path} {path.lstat().st_mtime_ns} {path.lstat().st_size}" for path in paths if path.exists()]
        told[top] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return told


def changed(before: str, after: str) -> list[str]:
    """The lines that are others now; a machine on which somebody else measures has some."""
    then, now = before.splitlines(), after.splitlines()
    return [f"-{line}" for line in then if line not in now] + [f"+{line}" for line in now if line not in then]


def gated(words: Sequence[str], folder: Path, secret: str) -> Answer:
    output = folder / "results"
    command = [sys.executable, "-m", "pdrgate.cli", *words, *(("--output", str(output)) if words[0] == "gate" else ())]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "libraries"), "CI_TOKEN": secret}
    began = time.monotonic()
    with (folder / "told").open("w+b") as told:
        process = subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        deadline = began + LONGEST
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.terminate()
                pid, status, usage = os.wait4(process.pid, 0)
                told.write(b"\nTIMEOUT: it was still at it\n")
                break
            time.sleep(0.05)
        told.seek(0)
        text = told.read().decode(errors="replace")
    process.returncode = os.waitstatus_to_exitcode(status)
    return Answer(process.returncode, text, time.monotonic() - began, usage.ru_maxrss >> 10)


def leaked(folder: Path, secret: str, allowed: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path != allowed and secret.encode() in path.read_bytes()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Words of the attacks to try; all by default.")
    asked = parser.parse_args().names
    attacks = {
        name: made
        for name, made in (BUILDS | DRIVERS | OBJECTS | READ | LEFT | TREES | HANDED_OVER).items()
        if not asked or any(one in name for one in asked)
    }
    if set(attacks) - set(READ | TREES | HANDED_OVER):
        kernel_build(BASELINE)
    for number, (name, made) in enumerate(attacks.items(), 1):
        with tempfile.TemporaryDirectory(prefix="attack-") as place, tempfile.TemporaryDirectory() as elsewhere:
            folder = Path(place)
            word = secrets.token_hex(16)
            secret = Path(elsewhere) / "secret"
            secret.write_text(f"{word}\n")
            secret.chmod(0o600)
            words = made(folder, secret)
            before = state()
            answer = gated(words, folder, word)
            after = state()
            found = [f"LEAK {path}" for path in leaked(folder, word, secret)]
            found += [f"CHANGED {line}" for what in before for line in changed(before[what], after[what])]
            found += ["WRITTEN"] if (folder / "written").exists() else []
            found += [f"HTML {path.name}" for path in folder.rglob("*.html") if HTML in path.read_text()]
        verdict = answer.first.partition(": ")[0] if VERDICT.match(answer.first) else f"exit {answer.code}"
        print(
            f"{number:>3}  {name:<52}{verdict:<14}{answer.code:>3}{answer.seconds:>7.1f} s{answer.memory:>6} MiB  "
            f"{' '.join(found)}\n{'':5}{answer.first[:240]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
