"""What a guest whose kernel is a stranger's program can do to this machine: nothing that it was not handed."""

from __future__ import annotations

import dataclasses
import os
import re
import socket
import stat
from pathlib import Path

import pytest

from pdrgate.guests import guest_console
from pdrgate.guests.emulator.confinement import confine, sandboxes
from pdrgate.guests.guest import GuestError

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def status(pid: int) -> dict[str, str]:
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))


@pytest.mark.parametrize("metered", [False, True])
def test_qemu_is_nobody_and_may_do_nothing(boot, cloud, metered):
    guest = boot(cloud, accelerator="tcg", metered=metered)
    assert confine("tcg").uid is not None, "this machine's root may not become another user"
    about = status(guest.pid)
    uids = set(about["Uid"].split())
    assert uids == set(about["Gid"].split()) == {str(guest.confinement.uid)}
    assert uids != {"0"} and not about["Groups"].split()
    assert {int(about[of], 16) for of in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert about["NoNewPrivs"] == "1"
    assert (about["Seccomp"] == "2") is sandboxes()
    # Two guests of a comparison are not one user's either: one cannot touch the other's QEMU.
    assert confine("tcg").uid != guest.confinement.uid
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
    known = [line.split() for line in Path(f"/proc/{guest.pid}/net/unix").read_text().splitlines()[1:]]
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
    monkeypatch.setattr("pdrgate.guests.guest.elf_image", lambda path: None)
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
