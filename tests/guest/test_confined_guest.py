"""What a guest whose kernel is a stranger's program can do to this machine: nothing that it was not handed."""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import stat
from pathlib import Path

import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests import guest_console
from pdrgate.guests.emulator.confinement import confine, sandboxes
from pdrgate.guests.guest import GuestError
from pdrgate.hosts.sandbox import lacking

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def status(pid: int) -> dict[str, str]:
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))


@pytest.mark.parametrize("metered", [False, True])
def test_qemu_is_nobody_and_may_do_nothing(boot, cloud, metered):
    guest = boot(cloud, accelerator="tcg", metered=metered)
    assert confine(X86_64, "tcg").user is not None, "this machine's root may not become another user"
    about = status(guest.pid)
    uids = set(about["Uid"].split())
    assert uids == set(about["Gid"].split()) == {str(guest.confinement.user.uid)}
    assert uids != {"0"} and not about["Groups"].split()
    assert {int(about[of], 16) for of in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert about["NoNewPrivs"] == "1"
    assert (about["Seccomp"] == "2") is sandboxes(X86_64)
    # Two guests of a comparison are not one user's either: one cannot touch the other's QEMU.
    assert confine(X86_64, "tcg").user != guest.confinement.user
    # Of this machine's files it has what it was handed, and none by which it could be written to.
    for descriptor in Path(f"/proc/{guest.pid}/fd").iterdir():
        path = str(descriptor.readlink())
        if path.startswith("/") and not path.startswith(("/dev/", "/memfd:")):
            flags = re.search(
                r"^flags:\s*(\d+)$", (descriptor.parents[1] / "fdinfo" / descriptor.name).read_text(), re.M
            )
            assert flags is not None
            written = int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY
            assert not written or path in (str(guest.console), str(guest.console.with_suffix(".qemu"))), path
    assert guest.run("echo", "still a host").stdout == "still a host\n"
    if guest.meter is not None:
        guest.count()
        assert guest.meter.counting


def test_qemu_sees_no_file_of_the_machine_but_the_systems_and_writes_none(boot, cloud):
    assert lacking() == "", "this machine has no sandbox"
    guest = boot(cloud, accelerator="tcg")
    root = Path(f"/proc/{guest.pid}/root")
    assert sorted(path.name for path in root.iterdir() if path.is_dir() and not path.is_symlink()) == [
        "dev", "etc", "proc", "usr",
    ]  # fmt: skip
    shown = {str(path.relative_to(root / "etc")) for path in (root / "etc").rglob("*") if not path.is_dir()}
    assert not {name for name in shown if not name.startswith("alternatives/")} - {"ld.so.cache", "ssl/openssl.cnf"}
    assert {path.name for path in (root / "dev").iterdir()} >= {"null", "urandom"}
    assert not any((root / "dev" / name).exists() for name in ("kvm", "net", "mem", "kmsg", "vda", "sda"))
    user = guest.confinement.user.uid
    mounts = [line.split() for line in Path(f"/proc/{guest.pid}/mountinfo").read_text().splitlines()]
    for fields in mounts:
        about = (root / fields[4].lstrip("/")).stat()
        open_to_all = about.st_mode & stat.S_IWOTH and stat.S_ISDIR(about.st_mode)
        assert "ro" in fields[5].split(",") or not (open_to_all or about.st_uid == user), fields
    # No network, and no process but itself and what the sandbox waits by.
    assert Path(f"/proc/{guest.pid}/net/dev").read_text().count(":") == 1
    own = status(guest.pid)["NSpid"].split()[-1]
    assert {path.name for path in (root / "proc").glob("[0-9]*")} == {"1", own}


def _connects(uid: int, address: str) -> bool:
    """Whether a process of that user, which is in no group, can connect to a Unix socket."""
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            socket.socket(socket.AF_UNIX).connect(address)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_other_user_of_the_machine_can_connect_to_a_guest(boot, cloud):
    guest = boot(cloud)
    held = {str(path.readlink()) for path in Path(f"/proc/{guest.pid}/fd").iterdir()}
    known = [
        line.split()
        for of in (guest.pid, os.getpid())  # QEMU's network may be another one than ours
        for line in Path(f"/proc/{of}/net/unix").read_text().splitlines()[1:]
    ]
    ours = [fields for fields in known if f"socket:[{fields[6]}]" in held]
    assert len(ours) >= 3
    names = [fields[7] for fields in ours if len(fields) > 7]
    addresses = [f"\0{name[1:]}" if name.startswith("@") else name for name in names]
    addresses += [f"/proc/{pid}/fd/{number}" for pid in (guest.pid, os.getpid()) for number in range(64)]
    assert [one for one in addresses if _connects(65534, one)] == []
    assert _connects(0, guest._ports.address("control"))
    assert guest.run("id", "-u").stdout == "0\n"


def test_an_image_that_only_root_may_read_boots_all_the_same(boot, cloud, tmp_path, monkeypatch):
    image = tmp_path / "image"
    monkeypatch.setattr("pdrgate.builds.boot_image.elf_image", lambda path: None)
    image.write_bytes(cloud.image.read_bytes())
    image.chmod(stat.S_IRUSR)
    guest = boot(dataclasses.replace(cloud, image=image))
    assert guest.run("uname", "-r").stdout.strip() == cloud.release


def test_a_guest_that_floods_its_console_is_ended_and_blamed(boot, cloud, monkeypatch):
    monkeypatch.setattr(guest_console, "MOST_OUTPUT", 1 << 20)
    monkeypatch.setattr(guest_console, "OUTPUT_BOUND", ("prlimit", f"--fsize={1 << 20}", "--core=0"))
    guest = boot(cloud)
    assert guest.check() == ()
    with pytest.raises(GuestError, match=r"wrote more than 1 MiB to its console; its console ends with: .*flood"):
        guest.run("sh", "-c", "yes a flood of words >/dev/console", timeout=60.0)
        guest.check()
    assert guest.console.stat().st_size == 1 << 20
    assert not guest.running
    with pytest.raises(GuestError, match="wrote more than 1 MiB"):
        guest.run("true")
