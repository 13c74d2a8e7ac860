"""Kernels on a machine of metal that is made of scripts: installed, started once, gone again, and its default kept."""

from __future__ import annotations

import dataclasses
import struct
import tarfile
from pathlib import Path

import pytest
from fake_machine import DEFAULT, FakeMachine, FullSink, TornSink

from pdrgate.bare_metal import BareMetal
from pdrgate.bare_metal.booting import RestartError, choose_loader, wait_for_boot
from pdrgate.bare_metal.grub import MenuEntry, default_of, parse_config
from pdrgate.bare_metal.host_files import packed_modules
from pdrgate.bare_metal.installation import InstallError
from pdrgate.bare_metal.layout import Layout
from pdrgate.bare_metal.loader import LoaderError, LoaderName
from pdrgate.bare_metal.systemd_boot import SystemdBoot
from pdrgate.builds.kernel_build import BuildError, KernelBuild, kernel_build
from pdrgate.values.errors import TestbedError

RELEASE = "6.12.1-test"
POWER_CYCLE = f"power-cycle it, by its management controller or by hand: it then starts {DEFAULT}"


def bzimage(release: str) -> bytes:
    text = f"{release} (builder@host) #1 SMP\0".encode()
    head = bytearray(0x400 + len(text))
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x200)
    head[0x400:] = text
    return bytes(head)


def unpacked(folder: Path, release: str = RELEASE) -> KernelBuild:
    """A build as a package has it."""
    modules = folder / "lib/modules" / release
    (modules / "kernel/net").mkdir(parents=True)
    (modules / "kernel/net/veth.ko.xz").write_bytes(b"a module")
    (modules / "kernel/net/dummy.ko").write_bytes(b"another")
    (modules / "modules.order").write_text("kernel/net/veth.ko\nkernel/net/dummy.ko\n")
    (modules / "modules.builtin").write_text("kernel/fs/ext4.ko\n")
    (modules / "modules.dep").write_text("made when the package was built\n")
    (modules / "build").symlink_to("/usr/src")
    (folder / "boot").mkdir()
    (folder / f"boot/vmlinuz-{release}").write_bytes(bzimage(release))
    (folder / f"boot/config-{release}").write_text("CONFIG_X86_64=y\n")
    (folder / f"boot/System.map-{release}").write_text("0 A start\n")
    return kernel_build(folder)


@pytest.fixture
def build(tmp_path: Path) -> KernelBuild:
    return unpacked(tmp_path / "build")


class Bench:
    """A machine, what may be done to it, and the sentences that were told."""

    def __init__(self, root: Path, *loaders: str, wanted: LoaderName = "auto", deadline: float = 5.0) -> None:
        self.machine = FakeMachine(root, *loaders)
        self.sentences: list[str] = []
        self.waits: list[float] = []
        self._wanted: LoaderName = wanted
        self._deadline = deadline

    def metal(self) -> BareMetal:
        return BareMetal(
            self.machine, self.machine, loader=self._wanted, layout=Layout(str(self.machine.root)),
            deadline=self._deadline, report=self.sentences.append, pause=self.waits.append,
        )  # fmt: skip


@pytest.fixture
def grub(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "sut", "grub", "kexec")


# --- Files ---


def test_a_build_lies_beside_the_default_kernel_and_leaves_no_trace(grub: Bench, build: KernelBuild) -> None:
    before = grub.machine.files()
    metal = grub.metal()
    kernel = metal.install(build)
    assert (kernel.release, kernel.image) == (RELEASE, f"{grub.machine.root}/boot/vmlinuz-{RELEASE}")
    modules = f"lib/modules/{RELEASE}"
    assert grub.machine.files() - before == {
        f"boot/vmlinuz-{RELEASE}", f"boot/config-{RELEASE}", f"boot/System.map-{RELEASE}", f"boot/initrd.img-{RELEASE}",
        f"{modules}/kernel/net/veth.ko.xz", f"{modules}/kernel/net/dummy.ko", f"{modules}/modules.order",
        f"{modules}/modules.builtin", f"{modules}/modules.dep", f"{modules}/pdrgate.installed",
    }  # fmt: skip
    assert (grub.machine.root / "boot" / f"vmlinuz-{RELEASE}").read_bytes() == bzimage(RELEASE)
    assert (grub.machine.root / modules / "modules.dep").read_text() == ""  # depmod's, not the package's
    assert (grub.machine.root / "boot" / f"vmlinuz-{DEFAULT}").read_text() == "the default kernel\n"
    metal.uninstall(kernel)
    assert grub.machine.files() == before
    assert f"vmlinuz-{RELEASE}" not in (grub.machine.root / "boot/grub/grub.cfg").read_text()
    assert grub.sentences == [
        f"installed {RELEASE} on ssh:sut, beside {DEFAULT}; started by grub",
        f"removed {RELEASE} from ssh:sut",
    ]


def test_a_second_installation_replaces_the_first(grub: Bench, build: KernelBuild) -> None:
    metal = grub.metal()
    metal.install(build)
    stray = grub.machine.root / f"lib/modules/{RELEASE}/kernel/old.ko"
    stray.write_text("of the first build")
    metal.install(build)
    assert not stray.exists()


@pytest.mark.parametrize("path", [f"boot/vmlinuz-{RELEASE}", f"lib/modules/{RELEASE}/modules.dep"])
def test_a_kernel_of_somebody_else_is_not_touched(grub: Bench, build: KernelBuild, path: str) -> None:
    theirs = grub.machine.root / path
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("theirs")
    before = grub.machine.files()
    with pytest.raises(
        InstallError, match="already, and not from pdrgate; give the build a name of its own with CONFIG"
    ):
        grub.metal().install(build)
    assert grub.machine.files() == before
    assert theirs.read_text() == "theirs"


def test_the_kernel_that_runs_is_not_overwritten(grub: Bench, tmp_path: Path) -> None:
    with pytest.raises(InstallError) as error:
        grub.metal().install(unpacked(tmp_path / "same", DEFAULT))
    assert str(error.value) == (
        f"ssh:sut runs a kernel {DEFAULT} right now, and it would be overwritten; give the build a name of its own "
        "with CONFIG_LOCALVERSION"
    )


@pytest.mark.parametrize(
    ("state", "value", "why"),
    [
        ("uid", "1000", "installing a kernel on ssh:sut takes root there; log in as root, or use sudo"),
        ("machine", "aarch64", f"linux {RELEASE} is a kernel for x86_64, and ssh:sut is aarch64"),
        ("free", str(20 << 20), "/boot on ssh:sut has 20 MiB free, and the kernel needs 100 MiB; remove kernels there "
                                "that nobody needs"),
    ],
)  # fmt: skip
def test_what_a_host_must_have(grub: Bench, build: KernelBuild, state: str, value: str, why: str) -> None:
    grub.machine.state(state, value)
    before = grub.machine.files()
    with pytest.raises(InstallError) as error:
        grub.metal().install(dataclasses.replace(build, name=f"linux {RELEASE}"))
    assert str(error.value).removeprefix(str(grub.machine.root)) == why
    assert grub.machine.files() == before


@pytest.mark.parametrize("tool", ["depmod", "update-initramfs", "update-grub"])
def test_a_tool_that_fails_leaves_nothing_behind(grub: Bench, build: KernelBuild, tool: str) -> None:
    metal = grub.metal()
    before = grub.machine.files()
    grub.machine.fails(tool, "out of luck")
    with pytest.raises(TestbedError, match=f"`{tool}.*failed with exit code 1: out of luck"):
        metal.install(build)
    assert grub.machine.files() == before


def test_a_transfer_that_is_torn_or_refused(grub: Bench, build: KernelBuild) -> None:
    before = grub.machine.files()
    for sink, why in ((TornSink(), "is not what was sent"), (FullSink(), "No space left on device")):
        metal = BareMetal(grub.machine, sink, layout=Layout(str(grub.machine.root)))
        with pytest.raises(InstallError, match=rf"^cannot install .* on ssh:sut: .*{why}"):
            metal.install(build)
        assert grub.machine.files() == before


def test_a_tool_that_makes_no_ramdisk_and_says_nothing(grub: Bench, build: KernelBuild) -> None:
    grub.machine.script("update-initramfs", "true")
    with pytest.raises(
        InstallError, match=r"made no initial RAM disk .*/boot/initrd\.img-6\.12\.1-test, and its tool r"
    ):
        grub.metal().install(build)


def test_other_distributions_make_it_by_dracut(grub: Bench, build: KernelBuild) -> None:
    grub.machine.remove("update-initramfs")
    with pytest.raises(InstallError, match="has no update-initramfs, dracut or mkinitcpio to make an initial RAM disk"):
        grub.metal().install(build)
    grub.machine.script("dracut", 'echo ramdisk >"$4"')
    assert grub.metal().install(build).ramdisk == f"{grub.machine.root}/boot/initramfs-{RELEASE}.img"
    assert ("dracut", "--force", "--kver", RELEASE, f"{grub.machine.root}/boot/initramfs-{RELEASE}.img") in (
        grub.machine.told
    )


def test_modules_of_a_build_tree_are_packed_as_they_are_installed(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    (tree / "arch/x86/boot").mkdir(parents=True)
    (tree / "arch/x86/boot/bzImage").write_bytes(bzimage(RELEASE))
    (tree / "drivers/net").mkdir(parents=True)
    (tree / "drivers/net/veth.ko").write_bytes(b"no ELF file, so strip leaves it")
    (tree / "modules.order").write_text("drivers/net/veth.o\n")
    for name in ("Makefile", "System.map"):
        (tree / name).touch()
    with packed_modules(kernel_build(tree)) as archive:
        assert archive is not None
        with tarfile.open(archive) as tar:
            members = {member.name: (member.uid, member.mode, member.size) for member in tar}
    assert members == {"kernel/drivers/net/veth.ko": (0, 0o644, 31), "modules.order": (0, 0o644, 19)}
    assert not archive.exists()
    (tree / "drivers/net/veth.ko").unlink()
    with (
        pytest.raises(BuildError, match=r"veth\.ko is listed and not there; run make modules"),
        packed_modules(kernel_build(tree)),
    ):
        pass


def test_a_kernel_without_modules_needs_none(grub: Bench, tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage(RELEASE))
    with grub.metal().running(kernel_build(image)):
        assert grub.machine.running == RELEASE
    assert not any(command[0] == "depmod" for command in grub.machine.told)


def test_an_image_whose_modules_are_elsewhere_is_not_installed(grub: Bench, tmp_path: Path) -> None:
    """It would start without a driver for its disk, far away."""
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage(RELEASE))
    (tmp_path / f"config-{RELEASE}").write_text("CONFIG_EXT4_FS=y\nCONFIG_NVME_CORE=m\nCONFIG_VETH=m\n")
    before = grub.machine.files()
    with pytest.raises(InstallError) as error:
        grub.metal().install(kernel_build(image))
    assert str(error.value) == (
        f"bzImage was handed over without modules, and its configuration has 2 of them: ssh:sut might not come back; "
        f"name them too, as {image},modules=lib/modules/{RELEASE}, or run make modules"
    )
    assert grub.machine.files() == before


# --- One start, and back ---


@pytest.mark.parametrize("loader", ["grub", "systemd-boot", "kexec"])
def test_a_build_runs_once_and_the_default_kernel_comes_back(tmp_path: Path, build: KernelBuild, loader: str) -> None:
    bench = Bench(tmp_path / "sut", loader)
    before = bench.machine.files()
    metal = bench.metal()
    with metal.running(build) as boot:
        assert bench.machine.running == RELEASE
        assert (bench.machine.root / "proc/sys/kernel/random/boot_id").read_text().strip() == boot
    assert bench.machine.starts == [DEFAULT, RELEASE, DEFAULT]
    assert bench.machine.files() == before
    assert bench.sentences == [
        f"installed {RELEASE} on ssh:sut, beside {DEFAULT}; started by {loader}",
        f"restarting ssh:sut into {RELEASE}, selected for this start only",
        f"ssh:sut runs {RELEASE}",
        f"restarting ssh:sut into its default kernel {DEFAULT}",
        f"ssh:sut is back at {DEFAULT}",
        f"removed {RELEASE} from ssh:sut",
    ]


def test_what_grub_is_told(grub: Bench, build: KernelBuild) -> None:
    with grub.metal().running(build):
        pass
    reads = ("cat", "rm", "mkdir", "tar", "depmod", "update-initramfs")
    commands = [c for c in grub.machine.told if c[0] not in reads and c[2:] != ("list",)]
    assert commands == [
        ("update-grub",),
        ("grub-reboot", f"--boot-directory={grub.machine.root}/boot",
         f"gnulinux-advanced-12>gnulinux-{RELEASE}-advanced-12"),
        ("systemctl", "reboot"),
        ("systemctl", "reboot"),
        ("update-grub",),
    ]  # fmt: skip


def test_what_kexec_is_told(tmp_path: Path, build: KernelBuild) -> None:
    bench = Bench(tmp_path / "sut", "kexec")
    with bench.metal().running(build):
        pass
    boot = f"{bench.machine.root}/boot"
    assert [command for command in bench.machine.told if command[0] in ("kexec", "systemctl")] == [
        ("kexec", "-a", "-l", f"{boot}/vmlinuz-{RELEASE}", f"--initrd={boot}/initrd.img-{RELEASE}",
         "--command-line=root=/dev/sda2 ro panic=30"),
        ("systemctl", "kexec"),
        ("systemctl", "reboot"),
    ]  # fmt: skip


def test_a_kernel_that_panics_leaves_the_host_at_its_default(grub: Bench, build: KernelBuild) -> None:
    grub.machine.fates[RELEASE] = "panics"
    before = grub.machine.files()
    with pytest.raises(RestartError) as error, grub.metal().running(build):
        pytest.fail("it does not run")
    assert str(error.value) == (
        f"ssh:sut came back with {DEFAULT} and not with {RELEASE}: it did not start, or ended early and the host "
        f"restarted by itself; see its console; {DEFAULT} runs there now"
    )
    assert grub.machine.starts == [DEFAULT, RELEASE, DEFAULT]
    assert grub.machine.files() == before


def test_a_kernel_that_hangs_takes_a_power_cycle_which_brings_the_default_back(
    tmp_path: Path, build: KernelBuild
) -> None:
    bench = Bench(tmp_path / "sut", "grub", deadline=0.0)
    bench.machine.fates[RELEASE] = "hangs"
    with pytest.raises(RestartError) as error, bench.metal().running(build):
        pytest.fail("it does not run")
    assert str(error.value) == (
        "ssh:sut did not come back within 0 s of its restart (`sh` on ssh:sut got no answer: No route to host); "
        + POWER_CYCLE
    )
    bench.machine.power_cycle()
    assert bench.machine.running == DEFAULT
    # The next run finds the files of that kernel, knows them for its own, and goes on.
    bench.machine.fates.clear()
    with BareMetal(
        bench.machine, bench.machine, layout=Layout(str(bench.machine.root)), pause=bench.waits.append
    ).running(build):
        assert bench.machine.running == RELEASE
    assert not any(RELEASE in path for path in bench.machine.files())


def test_a_host_that_dies_while_it_is_measured(grub: Bench, build: KernelBuild) -> None:
    with pytest.raises(RestartError) as error, grub.metal().running(build):
        grub.machine.away = True
        grub.machine.run("true")
    assert str(error.value) == (
        f"ssh:sut cannot be made to go back to {DEFAULT} (`sh` on ssh:sut got no answer: No route to host); "
        + POWER_CYCLE
    )
    assert isinstance(error.value.__context__, TestbedError)


def test_a_crash_under_measurement_that_restarts_the_host_needs_no_further_restart(
    grub: Bench, build: KernelBuild
) -> None:
    with grub.metal().running(build):
        grub.machine.power_cycle()
    assert grub.machine.starts == [DEFAULT, RELEASE]
    assert grub.machine.running == DEFAULT
    assert not any(RELEASE in path for path in grub.machine.files())


def test_a_host_that_never_restarts_does_not_start_the_build_later(tmp_path: Path, build: KernelBuild) -> None:
    bench = Bench(tmp_path / "sut", "grub", deadline=0.0)
    bench.machine.fates[RELEASE] = "never restarts"
    metal = bench.metal()
    with pytest.raises(
        RestartError, match=r"^ssh:sut did not restart within 0 s: its boot id is still boot-1; does someth"
    ):
        metal.boot(metal.install(build))
    assert "next_entry" not in (bench.machine.root / "boot/grub/grubenv").read_text()


@pytest.mark.parametrize("loader", ["grub", "systemd-boot", "kexec"])
def test_a_restart_that_is_refused_takes_the_selection_back(tmp_path: Path, build: KernelBuild, loader: str) -> None:
    bench = Bench(tmp_path / "sut", loader)
    metal = bench.metal()
    kernel = metal.install(build)
    bench.machine.fails("systemctl", "Call failed: inhibited")
    with pytest.raises(TestbedError, match="Call failed: inhibited"):
        metal.boot(kernel)
    assert "next_entry" not in (bench.machine.root / "boot/grub/grubenv").read_text()
    assert not list((bench.machine.root / "sys/firmware/efi/efivars").iterdir())
    assert (bench.machine.root / "sys/kernel/kexec_loaded").read_text() == "0\n"
    assert bench.machine.running == DEFAULT


def test_a_host_without_systemd_is_restarted_all_the_same(grub: Bench, build: KernelBuild) -> None:
    grub.machine.remove("systemctl")
    with grub.metal().running(build):
        assert grub.machine.running == RELEASE
    assert [command for command in grub.machine.told if command[0] == "reboot"] == [("reboot",), ("reboot",)]


def test_a_panic_that_would_stay_is_told_before(grub: Bench, build: KernelBuild) -> None:
    (grub.machine.root / "proc/cmdline").write_text("root=/dev/sda2 ro\n")
    with grub.metal().running(build):
        pass
    assert (
        f"ssh:sut starts its kernels without panic=SECONDS: should {RELEASE} panic, it stays there until it is "
        "power-cycled"
    ) in grub.sentences


def test_the_kernel_that_runs_is_not_removed(grub: Bench, build: KernelBuild) -> None:
    metal = grub.metal()
    kernel = metal.install(build)
    metal.boot(kernel)
    with pytest.raises(InstallError, match=f"^ssh:sut runs {RELEASE} right now; let it go back first$"):
        metal.uninstall(kernel)


def test_going_back_believes_no_one_but_uname(grub: Bench, build: KernelBuild) -> None:
    metal = grub.metal()
    metal.boot(metal.install(build))
    metal.default = "6.0-gone"
    with pytest.raises(
        RestartError, match=f"^ssh:sut went back to {DEFAULT} and not to 6.0-gone, which ran before; look at"
    ):
        metal.go_back()


def test_waiting_is_for_a_boot_id_and_not_for_an_answer(grub: Bench) -> None:
    attempts = 0

    def pause(seconds: float) -> None:
        nonlocal attempts
        attempts += 1
        grub.machine.away = attempts in (2, 3)
        if attempts == 5:
            grub.machine.power_cycle()

    assert wait_for_boot(grub.machine, "boot-1", 3600, pause=pause) == "boot-2"
    assert attempts == 5


# --- Which loader, and what makes it unfit ---


def test_the_first_that_can_is_taken(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path, "grub", "systemd-boot", "kexec")
    layout = Layout(str(tmp_path))
    assert choose_loader(machine, layout).name == "grub"
    assert choose_loader(machine, layout, "kexec").name == "kexec"
    (tmp_path / "etc/default/grub").write_text("GRUB_DEFAULT=0\n")
    machine.run("update-grub")
    assert choose_loader(machine, layout).name == "systemd-boot"
    machine.script("bootctl", "echo no")
    assert choose_loader(machine, layout).name == "kexec"
    (tmp_path / "proc/sys/kernel/kexec_load_disabled").write_text("1\n")
    with pytest.raises(LoaderError) as error:
        choose_loader(machine, layout)
    assert str(error.value) == (
        "ssh:sut cannot start a kernel for once; "
        f"grub: the default of {tmp_path}/boot/grub/grub.cfg is 0, a number that a new kernel shifts; see that "
        f"GRUB_DEFAULT=saved is the last that {tmp_path}/etc/default/grub and {tmp_path}/etc/default/grub.d/*.cfg say, "
        "run update-grub, then save an entry of the present kernel with grub-set-default; "
        "systemd-boot: it is not this host's boot loader (bootctl is-installed); "
        "kexec: kernel.kexec_load_disabled is set until the next restart"
    )


def test_a_machine_with_no_tools_at_all(tmp_path: Path) -> None:
    with pytest.raises(LoaderError) as error:
        choose_loader(FakeMachine(tmp_path), Layout(str(tmp_path)))
    assert str(error.value).endswith(
        "grub: there is no grub-reboot, GRUB 2 is not installed; systemd-boot: there is no bootctl, install "
        "systemd-boot; kexec: there is no kexec, install kexec-tools"
    )


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("boot/grub/grubenv", "", "no default entry is saved; save an entry of the present kernel with grub-set-d"),
        ("boot/grub/grubenv", "saved_entry=1>2", "the saved default is 1>2, a number that a new kernel shifts"),
        ("boot/grub/grubenv", "saved_entry=gone", "the saved default gone is no entry of "),
        ("boot/grub/grubenv", "saved_entry=uefi-firmware", "the saved default uefi-firmware is no entry of "),
        # GRUB looks for a name at the top level only, unless it has the submenu's before it.
        ("boot/grub/grubenv", f"saved_entry=gnulinux-{DEFAULT}-advanced-12", "is no entry of "),
        ("boot/grub/grub.cfg", "insmod blscfg\nblscfg\n", "Boot Loader Specification, which is not supported yet; "),
        ("state/mount", "btrfs /dev/sda1[/@boot]", "GRUB cannot write "),
        ("state/mount", "ext4 /dev/mapper/vg-root", "(ext4 on /dev/mapper/vg-root), and so would start the "),
        ("state/mount", "", "findmnt does not say what "),
    ],
)  # fmt: skip
def test_where_grub_would_not_keep_the_default(tmp_path: Path, path: str, text: str, why: str) -> None:
    machine = FakeMachine(tmp_path, "grub")
    (tmp_path / path).write_text(f"{text}\n")
    with pytest.raises(LoaderError) as error:
        choose_loader(machine, Layout(str(tmp_path)), "grub")
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("defaults", "drop_in", "fit"),
    [
        ("saved", "0", False),
        ("saved", "", True),
        ("0", "saved", True),
        ("0", "", False),
        (f"'gnulinux-advanced-12>gnulinux-{DEFAULT}-advanced-12'", "", True),
        ("gnulinux-simple-13", "", False),
        (f"'1>Debian GNU/Linux, with Linux {DEFAULT}'", "", False),
    ],
)
def test_what_counts_is_what_grub_starts_and_not_one_of_the_files_that_it_comes_from(
    tmp_path: Path, build: KernelBuild, defaults: str, drop_in: str, fit: bool
) -> None:
    """As cloud images have them: GRUB_DEFAULT once in /etc/default/grub, and again in a file of /etc/default/grub.d."""
    bench = Bench(tmp_path / "sut", "grub")
    (bench.machine.root / "etc/default/grub").write_text(f"GRUB_DEFAULT={defaults}\n")
    (bench.machine.root / "etc/default/grub.d").mkdir()
    if drop_in:
        (bench.machine.root / "etc/default/grub.d/50-cloudimg-settings.cfg").write_text(f"GRUB_DEFAULT={drop_in}\n")
    bench.machine.run("update-grub")
    if not fit:
        with pytest.raises(LoaderError, match="cannot start a kernel for once; grub: the default of "):
            bench.metal()
        return
    with bench.metal().running(build):
        assert bench.machine.running == RELEASE
    assert bench.machine.starts == [DEFAULT, RELEASE, DEFAULT]


def test_a_default_that_changes_as_grub_is_told_of_the_build_is_refused_and_undone(
    grub: Bench, build: KernelBuild
) -> None:
    """Somebody wrote it, and did not make grub.cfg anew."""
    metal = grub.metal()
    (grub.machine.root / "etc/default/grub").write_text("GRUB_DEFAULT=0\n")
    with pytest.raises(LoaderError, match=f"would start {RELEASE} by default as soon as {RELEASE} is there, and"):
        metal.install(build)
    assert RELEASE not in (grub.machine.root / "boot/grub/grub.cfg").read_text()


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("boot/grub/custom.cfg", "set default=0", "what {}/boot/grub/grub.cfg starts by default depends on more than"),
        ("boot/grub/grub.cfg", "set default='${saved_entry}'", "does not look at next_entry"),
        ("boot/grub/grub.cfg", "# ${next_entry}", "the default of {}/boot/grub/grub.cfg is 0, a number"),
        ("boot/grub/grub.cfg", "# ${next_entry}\nset default=$button", "depends on more than the saved entry"),
        ("boot/grub/grubenv", "prev_saved_entry=0", "the saved default is 0, a number"),
    ],
)
def test_other_ways_to_another_default(tmp_path: Path, path: str, text: str, why: str) -> None:
    machine = FakeMachine(tmp_path, "grub")
    (tmp_path / path).write_text(f"{text}\n")
    with pytest.raises(LoaderError) as error:
        choose_loader(machine, Layout(str(tmp_path)), "grub")
    assert why.format(tmp_path) in str(error.value)


def test_titles_name_an_entry_as_well(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path, "grub")
    (tmp_path / "boot/grub/grubenv").write_text(
        f"saved_entry=Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux {DEFAULT}\n"
    )
    assert choose_loader(machine, Layout(str(tmp_path)), "grub").name == "grub"


def test_a_default_that_means_the_newest_kernel_is_refused_and_undone(grub: Bench, build: KernelBuild) -> None:
    (grub.machine.root / "boot/grub/grubenv").write_text("saved_entry=gnulinux-simple-12\n")
    metal = grub.metal()
    before = grub.machine.files()
    with pytest.raises(LoaderError) as error:
        metal.install(build)
    assert str(error.value) == (
        f"GRUB on ssh:sut would start {RELEASE} by default as soon as {RELEASE} is there, and {DEFAULT} before; "
        "save an entry of that very kernel with grub-set-default"
    )
    assert grub.machine.files() == before
    assert RELEASE not in (grub.machine.root / "boot/grub/grub.cfg").read_text()


def test_an_entry_that_grub_does_not_make(grub: Bench, build: KernelBuild) -> None:
    grub.machine.state("left-out", RELEASE)
    before = grub.machine.files()
    with pytest.raises(
        LoaderError, match=f"^update-grub on ssh:sut made no entry for {RELEASE}; does its configuration"
    ):
        grub.metal().install(build)
    assert grub.machine.files() == before


def test_a_selection_that_does_not_stick(grub: Bench, build: KernelBuild) -> None:
    grub.machine.script("grub-reboot", "true")
    metal = grub.metal()
    kernel = metal.install(build)
    with pytest.raises(
        LoaderError, match=r"^grub-reboot on ssh:sut selected gnulinux.*, and next_entry reads back empty$"
    ):
        metal.boot(kernel)
    assert grub.machine.starts == [DEFAULT]


def test_kexec_that_loads_nothing(tmp_path: Path, build: KernelBuild) -> None:
    bench = Bench(tmp_path / "sut", "kexec")
    bench.machine.state("loads", "0")
    metal = bench.metal()
    with pytest.raises(LoaderError, match=f"^kexec loaded {RELEASE} on ssh:sut without an error, and it is not there$"):
        metal.boot(metal.install(build))


def test_a_default_of_systemd_boot_that_means_the_newest_kernel_is_refused(tmp_path: Path, build: KernelBuild) -> None:
    bench = Bench(tmp_path / "sut", "systemd-boot")
    bench.machine.state("efi-default", "newest")
    before = bench.machine.files()
    with pytest.raises(LoaderError) as error:
        bench.metal().install(build)
    assert str(error.value) == (
        f"systemd-boot on ssh:sut would start 0123abcd-{RELEASE}.conf by default as soon as {RELEASE} is there; fix "
        f"the default with: bootctl set-default 0123abcd-{DEFAULT}.conf"
    )
    assert bench.machine.files() == before


def test_an_entry_of_systemd_boot_must_be_the_only_one(tmp_path: Path, build: KernelBuild) -> None:
    bench = Bench(tmp_path / "sut", "systemd-boot")
    metal = bench.metal()
    kernel = metal.install(build)
    other = bench.machine.root / f"efi/loader/entries/4567-{RELEASE}+3-1.conf"
    other.touch()
    with pytest.raises(LoaderError, match=f"names 2 entries of {RELEASE}, and it must be one"):
        metal.boot(kernel)
    assert not [command for command in bench.machine.told if command[:2] == ("bootctl", "set-oneshot")]


@pytest.mark.parametrize("tries", ["", "+3", "+2-1"])
def test_an_image_of_kernel_and_ram_disk_is_an_entry_too(tmp_path: Path, build: KernelBuild, tries: str) -> None:
    """kernel-install with the layout uki."""
    bench = Bench(tmp_path / "sut", "systemd-boot")
    metal = bench.metal()
    kernel = metal.install(build)
    listed = f"id: 0123abcd-{RELEASE}.other.efi\n  id: 0123abcd-{DEFAULT}.efi\n  id: 0123abcd-{RELEASE}{tries}.efi"
    bench.machine.script("bootctl", f'[ "$1" != list ] || {{ echo "  {listed}"; exit; }}')
    assert SystemdBoot(bench.machine, Layout())._entry(kernel.release) == f"0123abcd-{RELEASE}{tries}.efi"


QUOTED = r"""
menuentry 'Kim'\''s Linux' --class os $menuentry_id_option 'simple-7' {
	linux	/boot/vmlinuz-6.1.0-1-amd64 ro
}
submenu "Kim's \"other\" kernels > 6" --id more {
	menuentry Kim\'s\ own {
		linux	'/boot/kernel-6.6.1-gentoo' ro
	}
	menuentry "Price: \$5" {
		linux	/boot/vmlinuz-6.7 ro
	}
}
"""


def test_a_title_is_what_its_quotes_stand_for() -> None:
    entries = parse_config(QUOTED)
    assert [(entry.names[-1], entry.release) for entry in entries] == [
        (("simple-7", "Kim's Linux"), "6.1.0-1-amd64"),
        (("Kim's own", "Kim's own"), "6.6.1-gentoo"),
        (("Price: $5", "Price: $5"), "6.7"),
    ]
    assert entries[0].is_named("Kim's Linux")
    assert entries[1].is_named("Kim's \"other\" kernels >> 6>Kim's own")
    assert entries[2].path == "more>Price: $5"
    assert default_of("set default='Kim'\\''s Linux'") == "Kim's Linux"
    assert default_of('set default="${saved_entry}"') == "${saved_entry}"


def test_the_menu_of_a_real_grub_cfg() -> None:
    text = """
set default="${saved_entry}"
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
menuentry 'Ubuntu' --class ubuntu --class os $menuentry_id_option 'gnulinux-simple-5f' {
\trecordfail
\tif [ x$feature_platform_search_hint = xy ]; then
\t  search --no-floppy --fs-uuid --set=root 5f
\tfi
\tlinux\t/boot/vmlinuz-6.8.0-45-generic root=UUID=5f ro  quiet
}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-5f' {
\tmenuentry 'Ubuntu, with Linux 6.8.0-45-generic' --class os $menuentry_id_option 'gnulinux-6.8.0-45-advanced-5f' {
\t\tlinux\t/boot/vmlinuz-6.8.0-45-generic root=UUID=5f ro
\t}
\tmenuentry 'Ubuntu, with Linux 6.8.0-45-generic (recovery mode)' $menuentry_id_option 'x-recovery-5f' {
\t\tlinux\t/vmlinuz-6.8.0-45-generic root=UUID=5f ro recovery nomodeset
\t}
}
menuentry "Memory test (memtest86+)" {
\tlinux16\t/boot/memtest86+.bin
}
"""
    entries = parse_config(text)
    assert [(entry.path, entry.release, entry.for_rescue) for entry in entries] == [
        ("gnulinux-simple-5f", "6.8.0-45-generic", False),
        ("gnulinux-advanced-5f>gnulinux-6.8.0-45-advanced-5f", "6.8.0-45-generic", False),
        ("gnulinux-advanced-5f>x-recovery-5f", "6.8.0-45-generic", True),
        ("Memory test (memtest86+)", None, False),
    ]
    assert MenuEntry((("a", "A"), ("b", "B")), None).is_named("A>b")
    assert not MenuEntry((("a", "A"), ("b", "B")), None).is_named("b")
    assert [entry.numbers for entry in entries] == [(0,), (1, 0), (1, 1), (2,)]
    assert [entry.is_named("1>0") for entry in entries] == [False, True, False, False]


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (
            "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.1 root=/dev/sda1 ro console=ttyS0 -- single",
            "root=/dev/sda1 ro console=ttyS0 panic=30 -- single",
        ),
        ('root="PARTLABEL=A panic=0 B" ro panic=5', 'root="PARTLABEL=A panic=0 B" ro panic=30'),
        ('root=/dev/sda1 "panic=0" dyndbg="file a.c -- +p"', 'root=/dev/sda1 dyndbg="file a.c -- +p" panic=30'),
        ("panic=5 -- panic=0 initrd=x", "panic=30 -- panic=0 initrd=x"),
        ("root=/dev/sda1 --", "root=/dev/sda1 panic=30"),
        ("oops=panic hung_task_panic=1 initrd=\\\\x", "oops=panic hung_task_panic=1 panic=30"),
    ],
)
def test_what_is_the_kernels_stands_before_what_is_inits(
    tmp_path: Path, build: KernelBuild, before: str, told: str
) -> None:
    bench = Bench(tmp_path / "sut", "kexec")
    (bench.machine.root / "proc/cmdline").write_text(f"{before}\n")
    with bench.metal().running(build):
        pass
    (load,) = [command for command in bench.machine.told if command[:2] == ("kexec", "-a")]
    assert load[-1] == f"--command-line={told}"


@pytest.mark.parametrize("words", ["panic=0", "oops=panic hung_task_panic=1", "quiet -- panic=5", 'x="a panic=5 b"'])
def test_a_panic_that_would_stay_is_told_whatever_looks_like_it(grub: Bench, build: KernelBuild, words: str) -> None:
    (grub.machine.root / "proc/cmdline").write_text(f"root=/dev/sda2 {words}\n")
    with grub.metal().running(build):
        pass
    assert any("without panic=SECONDS" in sentence for sentence in grub.sentences)


def test_the_fake_machine_cannot_restart_this_one(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.remove("systemctl")
    assert machine.run("systemctl", "reboot", check=False).exit_code == 127
