"""Kernels of the distribution, booted: a guest is a host like any other, and says why when it is none."""

import dataclasses
import os
import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import BuildError, kernel_build
from pdrgate.crashes.kernel_log import read_kernel_log
from pdrgate.guests.emulator import qemu
from pdrgate.guests.guest import Guest, GuestError
from pdrgate.hosts.host import CommandError, HostError
from pdrgate.observers.environment import capture_environment
from pdrgate.safety.journal import Journal
from pdrgate.values.errors import TestbedError

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


@pytest.fixture(scope="module")
def booted(booting, config, tmp_path_factory):
    """Boots builds; the guests end with the module at the latest."""
    folder = tmp_path_factory.mktemp("booted")
    made = []

    def boot(build, **options):
        made.append(guest := Guest(build, dataclasses.replace(config, **options), journal, folder / "consoles"))
        guest.wait(180.0)
        return guest

    with Journal.begin(folder / "state") as journal:
        yield boot
        for guest in made:
            guest.close()


@pytest.fixture(scope="module")
def cloud_guest(booted, cloud, tmp_path_factory):
    """A guest for all tests that leave it as it was. Its vmlinux is what a test puts there."""
    return booted(dataclasses.replace(cloud, vmlinux=tmp_path_factory.mktemp("guest") / "vmlinux"))


@pytest.fixture(scope="module")
def expendable():
    """Guests that no test needs any more."""
    return []


@pytest.fixture
def doomed(expendable, booted, cloud):
    """A guest for a test to end: one that is expendable, or a new one."""
    return expendable.pop() if expendable else booted(cloud)


@pytest.mark.parametrize("kind", ["cloud", "plain"])
def test_a_distribution_kernel_boots_and_is_a_host(booted, expendable, request, kind):
    build = request.getfixturevalue(kind)
    guest = request.getfixturevalue("cloud_guest") if kind == "cloud" else booted(build)
    assert guest.run("uname", "-r").stdout.strip() == build.release
    assert guest.run("uname", "-v").stdout.strip() == build.version
    # What a host is asked for: JSON, files, exit codes, both outputs apart.
    assert [link["ifname"] for link in guest.run_json("ip", "-j", "link")] == ["lo"]
    guest.write("/proc/sys/net/ipv4/ip_default_ttl", "77\n")
    assert guest.read("/proc/sys/net/ipv4/ip_default_ttl") == "77\n"
    assert guest.exists("/proc/sys/net/ipv6/conf/all/forwarding")
    assert not guest.exists("/nowhere")
    done = guest.run("sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(CommandError, match=r"nonesuch. on guest:.*exit code 127"):
        guest.run("nonesuch")
    with pytest.raises(CommandError, match="No such file"):
        guest.read("/nowhere")
    assert len(guest.run("seq", "100000").stdout.splitlines()) == 100_000
    text = "x" * 200_000
    guest.write("/tmp/long", text)
    assert guest.read("/tmp/long") == text
    environment = capture_environment(guest)
    assert environment.kernel_release == build.release
    assert environment.config_sha256 == build.config_sha256
    assert environment.cpus == 1
    assert read_kernel_log(guest).taint == 0
    assert guest.check() == ()
    assert int(Path(f"/proc/{guest.pid}/statm").read_text().split()[1]) * resource.getpagesize() < 1 << 30
    assert "Linux version" in guest._console.text()
    # Programs lie at the same addresses each time, so that an emulator need not translate them anew.
    maps = [guest.run("cat", "/proc/self/maps").stdout for _ in range(2)]
    assert maps[0] == maps[1]
    if kind != "cloud":
        expendable.append(guest)


def test_it_is_entered_by_pvh_where_it_was_linked(cloud_guest):
    assert cloud_guest.protocol == "pvh"
    # Without a bzImage's header the kernel makes up one, of version 2.12 (arch/x86/platform/pvh/enlighten.c).
    assert cloud_guest.read("/sys/kernel/boot_params/version") == "0x020c\n"
    assert "ffffffff81000000 T _text\n" in cloud_guest.read("/proc/kallsyms")


def test_a_bzimage_boots_where_nothing_can_be_unpacked(booted, cloud, expendable, monkeypatch, tmp_path):
    monkeypatch.setattr("pdrgate.builds.boot_image.cache_folder", lambda: tmp_path / "none")
    (tmp_path / "none").write_text("a file")
    guest = booted(cloud)
    assert guest.protocol == "bzimage"
    assert guest.read("/sys/kernel/boot_params/version") != "0x020c\n"
    expendable.append(guest)


def test_a_warning_is_told_once_with_its_source_line(cloud_guest, tmp_path, monkeypatch):
    if not all(map(shutil.which, ("gcc", "nm", "addr2line"))):
        pytest.skip("needs gcc and binutils")
    source, vmlinux = tmp_path / "path.c", cloud_guest.build.vmlinux
    source.write_text("int g;\nint other(void) { return g; }\nint main(void)\n{\n\treturn other();\n}\n")
    subprocess.run(("gcc", "-g", "-O0", "-o", vmlinux, source), check=True)
    listed = subprocess.run(("nm", "-n", vmlinux), capture_output=True, text=True, check=True).stdout.splitlines()
    at = next(number for number, line in enumerate(listed) if line.endswith(" T other"))
    size = int(listed[at + 1].split()[0], 16) - int(listed[at].split()[0], 16)
    tools, runs = tmp_path / "bin", tmp_path / "runs"
    tools.mkdir()
    for tool in ("nm", "addr2line"):
        (tools / tool).write_text(f'#!/bin/sh\necho {tool} >> {runs}\nexec {shutil.which(tool)} "$@"\n')
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert cloud_guest.check() == ()
    cloud_guest.write("/dev/kmsg", "WARNING: CPU: 0 PID: 1 at net/path.c:1\n")
    cloud_guest.write("/dev/kmsg", f"RIP: 0010:other+0x0/{size:#x}\n")
    (warning,) = cloud_guest.check()
    assert warning.rip is not None and warning.rip.endswith("path.c:2)")
    for _ in range(3):  # after each trial
        assert cloud_guest.check() == ()
    assert [crash.rip for crash in cloud_guest.crashes()] == [warning.rip]
    assert runs.read_text().split() == ["nm", "addr2line"]


def test_a_command_that_hangs_costs_its_shell_and_not_the_guest(cloud_guest):
    guest = cloud_guest
    with pytest.raises(GuestError, match=r"did not end within 0\.5 s"):
        guest.run("sleep", "600", timeout=0.5)
    assert guest.run("echo", "still here").stdout == "still here\n"
    assert "sleep 600" not in guest.run("ps").stdout
    # A shell that is asked for while what the one before had started still dies, and has its port.
    for _ in range(5):
        with pytest.raises(GuestError, match=r"did not end within 0\.05 s"):
            guest.run("sh", "-c", "sleep 600 & sleep 601", timeout=0.05)
        assert guest.run("echo", "here again").stdout == "here again\n"


def test_further_modules_are_loaded_when_they_are_used(cloud_guest):
    guest = cloud_guest
    assert "sch_ingress" not in guest.read("/proc/modules")
    guest.run("tc", "qdisc", "add", "dev", "lo", "clsact")
    assert "sch_ingress" in guest.read("/proc/modules")


def test_boots_are_told_apart_and_the_boot_time_is_known(cloud_guest, doomed, expendable):
    one, two = cloud_guest, doomed  # both up at once
    assert one.boot_id != two.boot_id
    assert one.boot_time and two.boot_time
    assert one.run("cat", "/proc/sys/kernel/random/boot_id") != two.run("cat", "/proc/sys/kernel/random/boot_id")
    assert one.console != two.console
    expendable.append(two)


def test_virtual_cpus_have_cpus_of_their_own(booted, cloud, expendable):
    guest = booted(cloud, vcpus=2, cpus=(0, 1))
    assert guest.run("nproc").stdout.strip() == "2"
    places = {}
    for task in Path(f"/proc/{guest.pid}/task").iterdir():
        places[(task / "comm").read_text().strip()] = os.sched_getaffinity(int(task.name))
    assert (places["CPU 0/TCG"], places["CPU 1/TCG"]) == ({0}, {1})
    expendable.append(guest)


# --- Kernels that do not come up -------------------------------------------------------------------------------------


def test_a_panic_on_boot_is_told_with_its_sentence(boot, cloud):
    with pytest.raises(GuestError, match="does not boot: Kernel panic - not syncing: ") as error:
        boot(cloud, cmdline="rdinit=/nonexistent init=/nonexistent")
    assert error.value.crash.kind == "panic"
    assert str(error.value.console) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_kernel_that_hangs_is_told_with_the_end_of_its_console(booting, cloud, config, journal, tmp_path):
    hangs = dataclasses.replace(config, cmdline="rdinit=/bin/cat")
    with Guest(cloud, hangs, journal, tmp_path / "consoles") as guest:
        for _ in range(100):  # a busy machine may be silent for as long on its way there
            with pytest.raises(GuestError, match=r"no sign of life within 2 s of its .*does not answer; ") as error:
                guest.wait(2)
            if "Run /bin/cat as init process" in guest._console.text():
                break
    assert re.search(r" of its last word and .* its console ends with: ", str(error.value))
    assert error.value.crash is None
    assert "Run /bin/cat as init process" in error.value.console.read_text()


def test_a_kernel_without_virtio_is_no_build_for_guests(boot, cloud):
    # The image alone: what it needs of virtio lies in its modules.
    if cloud.config is not None and "CONFIG_VIRTIO_CONSOLE=m" not in cloud.config.read_text():
        pytest.skip(f"{cloud.name} has virtio built in")
    alone = kernel_build(cloud.image)
    assert alone.modules is None
    with pytest.raises(BuildError, match=r"has virtio_pci as a module, and no modules were handed over; name them too"):
        boot(alone)
    with pytest.raises(BuildError, match=r"has no virtio_pci built in, and no modules were handed over; name them too"):
        boot(dataclasses.replace(alone, config=None))  # the image itself shows it


def test_a_guest_that_cannot_start_says_what_qemu_says(boot, cloud):
    with pytest.raises(GuestError, match=r"QEMU ended with exit code 1: .*memory"):
        boot(cloud, memory=1 << 40)


def test_a_missing_qemu(boot, cloud, monkeypatch):
    monkeypatch.setattr(qemu.shutil, "which", lambda name: None)
    with pytest.raises(TestbedError, match=r"qemu-system-x86_64 is not installed.*apt-get install"):
        boot(cloud)


# --- Guests that die -------------------------------------------------------------------------------------------------


def test_a_crash_ends_the_guest_and_leaves_its_evidence(doomed):
    guest = doomed
    guest.write("/proc/sys/kernel/sysrq", "1\n")
    with pytest.raises(GuestError, match="crashed: ") as error:
        guest.write("/proc/sysrq-trigger", "c")
    crash = error.value.crash
    assert crash is not None
    assert crash.kind in ("oops", "panic")
    assert "sysrq_handle_crash" in crash.where
    assert crash.fingerprint == guest.crashes()[0].fingerprint
    with pytest.raises(GuestError, match="crashed: "):
        guest.check()
    with pytest.raises(GuestError, match="crashed: "):
        guest.run("true")
    assert not guest.running


def test_a_guest_that_falls_silent_is_told_apart_from_one_that_died(doomed):
    guest = doomed
    os.kill(guest.pid, signal.SIGSTOP)
    try:
        with pytest.raises(GuestError, match="does not answer; its console ends with") as error:
            guest.run("true", timeout=1.0)
        assert error.value.crash is None
        assert guest.running
    finally:
        os.kill(guest.pid, signal.SIGCONT)
    assert guest.run("echo", "back").stdout == "back\n"
    os.kill(guest.pid, signal.SIGKILL)
    with pytest.raises(HostError, match="QEMU ended with exit code -9"):
        guest.run("true")


def test_a_closed_guest_is_gone(doomed, left_behind):
    guest = doomed
    pid = guest.pid
    guest.close()
    guest.close()
    assert not Path(f"/proc/{pid}").exists()
    assert str(pid) not in left_behind()["guests"]
    with pytest.raises(GuestError, match="has been ended already"):
        guest.run("true")


def test_the_same_package_as_a_file(cloud, tmp_path):
    subprocess.run(
        ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", cloud.name.split()[0]),
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    (package,) = tmp_path.glob("*.deb")
    found = kernel_build(package, cache=tmp_path / "cache")
    elsewhere = {"source": "", "image": Path(), "modules": None, "config": None, "symbols": None, "folder": None}
    assert dataclasses.replace(found, **elsewhere) == dataclasses.replace(cloud, **elsewhere)
