"""Attacks of those who hand over a git tree that is compiled, and of other users of the machine; see attacks.py."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fakes"))

from made_trees import Tree, made_tree

Attack = Callable[[Path, Path], Sequence[str]]
OTHER_USER = 65534
LONGEST = 900.0
"""Seconds for which another user looks for guests."""


def compiled(*lines: str, settings: Sequence[tuple[str, str]] = ()) -> Attack:
    """A tree whose Makefile does more than it should: SECRET and WRITTEN in a line are files of this machine."""

    def made(folder: Path, secret: Path) -> Sequence[str]:
        tree = made_tree(folder / "linux")
        makefile = tree.folder / "Makefile"
        more = "".join(f"\t@{line}\n" for line in lines)
        text = makefile.read_text().replace("modules:\n", f"{more}modules:\n", 1)
        makefile.write_text(text.replace("SECRET", str(secret)).replace("WRITTEN", str(folder / "written")))
        configure(tree, folder, settings)
        folder.chmod(0o777)
        return ("build", f"{tree.folder}@", "--into", "kernel")

    return made


def configure(tree: Tree, folder: Path, settings: Sequence[tuple[str, str]]) -> None:
    """Commit a file that a filter is for, and name a program in the tree's configuration."""
    program = tree.folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {folder}/written\ncat\n")
    program.chmod(0o755)
    (tree.folder / ".gitattributes").write_text("*.c filter=evil\n")
    tree.commit("int b;")
    for name, value in settings:
        tree.git("config", name, value.replace("PROGRAM", str(program)))
    (tree.folder / "net.c").write_text("int not_committed;\n")


def another_user(folder: Path, secret: Path) -> Sequence[str]:
    """While a build is gated, another user connects to whatever listens, and asks it for a shell."""
    folder.chmod(0o777)
    if os.fork() == 0:
        # The child must not run what this process does at its end.
        try:
            connect_to_all(folder)
        finally:
            os._exit(0)
    build = "linux-image-cloud-amd64"
    asked = ("--scenario", "path-ipv6-routing", "--profile", "smoke", "--wait", "1h")
    return ("gate", "--kernel", build, "--against", build, *asked)


def connect_to_all(folder: Path) -> None:
    """Be the other user, until the folder is gone: ask each socket that can be reached for a shell."""
    threading.Thread(target=lambda: (time.sleep(LONGEST), os._exit(0)), daemon=True).start()
    os.setgroups([])
    os.setresgid(OTHER_USER, OTHER_USER, OTHER_USER)
    os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)
    while folder.exists():
        for address in listening():
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
                one.settimeout(2.0)
                one.connect(address)
                one.sendall(b"open attack\n")
                if b"attack" in one.recv(4096):
                    (folder / "written").touch()
        time.sleep(0.2)


def listening() -> Iterator[str]:
    """Addresses of Unix sockets that this user sees, those of guests first among them."""
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and "control" in fields[7]:
            yield f"\0{fields[7][1:]}" if fields[7].startswith("@") else fields[7]
    for path in Path("/proc").glob("[0-9]*/fd"):
        yield from (f"{path}/{number}" for number in range(64))


_OUT = "$(O)/System.map"
TREES: dict[str, Attack] = {
    "a Makefile copies a secret into System.map": compiled(f"cat SECRET >>{_OUT} || true"),
    "a Makefile links System.map to a secret": compiled(f"ln -sf SECRET {_OUT}"),
    "a Makefile copies all environments": compiled(f"cat /proc/[0-9]*/environ | tr '\\0' '\\n' >>{_OUT} || true"),
    "a Makefile writes to the machine": compiled("touch WRITTEN || true"),
    "a Makefile leaves a program behind": compiled("setsid sh -c 'sleep 5; touch WRITTEN' >/dev/null 2>&1 &"),
    "a Makefile's release leads elsewhere": compiled("echo ../../../../6.1 >$(O)/include/config/kernel.release"),
    "a Makefile writes a sparse terabyte": compiled(f"truncate -s 1T {_OUT}"),
    "a tree's filter is a program": compiled(
        settings=(("filter.evil.smudge", "PROGRAM"), ("filter.evil.clean", "PROGRAM"))
    ),
    "a tree's gpg is a program": compiled(settings=(("gpg.program", "PROGRAM"), ("log.showSignature", "true"))),
    "a tree's remote is a program": compiled(
        settings=(
            ("remote.origin.url", "ext::PROGRAM"), ("remote.origin.promisor", "true"), ("protocol.ext.allow", "always")
        )
    ),
    "another user connects to the guests": another_user,
}  # fmt: skip
