"""KVM that is slow, that hangs, that dies half-way or never brings a kernel to speak: guests are emulated then.

A program that is called like QEMU stands before it on PATH and plays such a KVM; by emulation it is QEMU itself, but
for a probe that need only be slower.
"""

import dataclasses
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.emulator import accelerator
from pdrgate.guests.emulator.accelerator import AcceleratorChoice, KvmRecord, choose_accelerator
from pdrgate.guests.guest import GuestError
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.values.errors import TestbedError

QEMU = X86_64.qemu
pytestmark = pytest.mark.guest

WRAPPER = """\
#!/bin/sh
folder=FOLDER kvm=false probe=true accelerated=false console=
for word; do
    case $word in
        kvm) kvm=true ;;
        -kernel) probe=false ;;
        -accel) accelerated=true ;;
        fd=*,set=1) console=${word#fd=} console=/proc/self/fd/${console%,set=1} ;;
    esac
    shift
    case $word in
        kvm) set -- "$@" tcg ;;
        host) set -- "$@" max ;;
        *) set -- "$@" "$word" ;;
    esac
done
if $accelerated; then
    by=tcg what=kernel
    if $kvm; then by=kvm; fi
    if $probe; then what=probe; fi
    echo "$by $what" >>"$folder/started"
fi
BEHAVIOUR
exec QEMU "$@"
"""
"""In a language that starts at once: beside others it takes Python a second or two."""

PROBE_AT_ONCE = """
if $probe; then
    if ! $kvm; then sleep 1; fi  # however busy this machine is
    exit 33
fi
"""
PATIENCE = 2
"""Seconds, for guests that say something."""
SILENCE = 1
"""Seconds, for those that never do."""
SILENT = PROBE_AT_ONCE + "if $kvm; then exec sleep 600; fi"


class FakeQemu:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.real = shutil.which(QEMU)

    def behave(self, behaviour: str) -> None:
        path = self.folder / QEMU
        text = WRAPPER.replace("BEHAVIOUR", behaviour).replace("FOLDER", str(self.folder))
        path.write_text(text.replace("QEMU", str(self.real)))
        path.chmod(0o755)

    @property
    def started(self) -> list[str]:
        """What QEMU was started for so far: ``kvm probe``, ``tcg kernel`` and so on."""
        return (self.folder / "started").read_text().splitlines()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A QEMU with a KVM that can be made to behave, on a machine that has /dev/kvm."""
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not installed")
    fake = FakeQemu(tmp_path / "qemu")
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    monkeypatch.setattr(accelerator, "DEVICE", "/dev/null")
    return fake


@pytest.fixture
def auto(config):
    return dataclasses.replace(config, accelerator="auto")


@pytest.fixture
def impatient(monkeypatch):
    """With guests by KVM that have still to show that it boots kernels."""
    monkeypatch.setattr(accelerator, "_PATIENCE_MULTIPLE", 0.0)
    monkeypatch.setattr(accelerator, "_LEAST_PATIENCE", float(SILENCE))


# --- The probe -------------------------------------------------------------------------------------------------------

SLOW = """
if $probe && $kvm; then
    sleep "$(cat "$folder/longer")"
    exit 33
elif $probe; then
    began=$(date +%s%N)
    QEMU "$@"
    code=$?
    awk "BEGIN { print 2.5 * ($(date +%s%N) - $began) / 1e9 }" >"$folder/longer"
    exit $code
fi
"""


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (SLOW, r"KVM is no faster here: a probe took [\d.]+ s by /dev/null and took [\d.]+ s by emulation"),
        ("if $kvm; then exec sleep 600; fi",
         r"/dev/null opens but runs nothing: a probe did not end within [\d.]+ s by it and took [\d.]+ s by emulation"),
        ("if $kvm; then echo failed to initialize kvm >&2; exit 1; fi",
         r".* a probe ended QEMU with exit code 1 \(failed to initialize kvm\) by it and took [\d.]+ s by emulation"),
        ("if $kvm; then kill -KILL $$; fi", r".* a probe ended QEMU with exit code -9 by it and took .*"),
        # Zero is what QEMU ends with, too, when it gives up.
        ("if $kvm; then exit 0; fi", r".* a probe ended QEMU with exit code 0 by it and took .*"),
    ],
    ids=["slow", "hangs", "dies", "killed", "gives up"],
)  # fmt: skip
def test_kvm_that_is_no_faster_is_not_taken(fake, behaviour, why):
    fake.behave(behaviour)
    choice = choose_accelerator(X86_64, "auto")
    assert choice.name == "tcg"
    assert re.fullmatch(why, choice.why)
    # Where it only took longer it is asked twice: somebody else may have had the CPU.
    probes = ["tcg probe", "kvm probe", *["kvm probe"] * (behaviour == SLOW)]
    assert fake.started == probes
    # Asked for by name, it is an error and never emulation.
    with pytest.raises(TestbedError, match=rf"^no guest can run by KVM here: {why}; use accelerator: auto or tcg"):
        choose_accelerator(X86_64, "kvm")
    assert fake.started == probes  # once per process


def test_kvm_that_is_faster_is_taken(fake):
    fake.behave(PROBE_AT_ONCE)
    choice = choose_accelerator(X86_64, "auto")
    assert choice.name == "kvm"
    assert choice.why.startswith("a probe took ")
    assert choice.why.endswith(" s by emulation")
    assert choice.patience is not None and choice.patience >= 10.0
    assert choose_accelerator(X86_64, "kvm") == AcceleratorChoice("kvm", "asked for")
    assert choose_accelerator(X86_64, "tcg") == AcceleratorChoice("tcg", "asked for")


def test_kvm_is_taken_where_emulation_fails(fake):
    fake.behave("if $probe && ! $kvm; then echo no TCG here >&2; exit 1; fi" + PROBE_AT_ONCE)
    choice = choose_accelerator(X86_64, "auto")
    assert (choice.name, choice.patience) == ("kvm", None)
    assert "ended QEMU with exit code 1 (no TCG here) by emulation" in choice.why


def test_kvm_that_is_not_there_or_may_not_be_opened(fake, monkeypatch):
    fake.behave(PROBE_AT_ONCE)
    monkeypatch.setattr(accelerator, "DEVICE", "/dev/nonesuch")
    assert choose_accelerator(X86_64, "auto").why == "there is no /dev/nonesuch"
    monkeypatch.setattr(accelerator, "DEVICE", "/dev/null")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != "/dev/null" and may(path, mode))
    assert choose_accelerator(X86_64, "auto").why == "/dev/null may not be opened by this user"
    with pytest.raises(TestbedError, match=r"^no guest can run by KVM here: /dev/null may not be opened"):
        choose_accelerator(X86_64, "kvm")
    assert not (fake.folder / "started").exists()


def test_this_machine_chooses_what_it_has():
    assert choose_accelerator(X86_64, "auto").name in ("kvm", "tcg")
    assert choose_accelerator(X86_64, "tcg").why == "asked for"


def test_what_guests_have_shown_is_kept_until_the_next_start_of_the_machine(fake, tmp_path):
    fake.behave(PROBE_AT_ONCE)
    record = KvmRecord(tmp_path / "state")
    assert record.read() is None
    record.write(False, "it was silent")
    assert choose_accelerator(X86_64, "auto", record).why == (
        f"it was silent; remembered in {record.path} until this machine is restarted"
    )
    record.write(True, "it has booted")
    choice = choose_accelerator(X86_64, "auto", record)
    assert (choice.name, choice.why, choice.patience) == ("kvm", "it has booted", None)
    assert not (fake.folder / "started").exists()
    assert [path.name for path in record.folder.iterdir()] == ["kvm.json"]
    record.write(False, "it was silent")
    # By name, only the probe counts.
    assert choose_accelerator(X86_64, "kvm", record).name == "kvm"
    record.path.write_text(json.dumps(json.loads(record.path.read_text()) | {"boot": "another"}))
    assert choose_accelerator(X86_64, "auto", record).name == "kvm"
    for damaged in ("", "[]", "{", '{"boot": 1}'):
        record.path.write_text(damaged)
        assert record.read() is None


# --- Guests ----------------------------------------------------------------------------------------------------------


def kernels(fake):
    return [words.split()[0] for words in fake.started if words.endswith("kernel")]


@pytest.mark.usefixtures("impatient")
def test_a_pair_that_is_silent_by_kvm_is_emulated_and_so_is_the_next(
    boot_testbed, fake, auto, cloud, journal, tmp_path
):
    fake.behave(SILENT)
    pair = [
        VmTestbed(cloud, plan_cpus(None, None), journal, tmp_path / "consoles", machine=auto, patience=180.0)
        for _ in range(2)
    ]
    try:
        assert [testbed.guest.accelerator.name for testbed in pair] == ["kvm", "kvm"]
        for testbed in pair:
            testbed.ready()
        assert [testbed.describe()["accelerator"] for testbed in pair] == ["tcg", "tcg"]
        # Only the first was waited for.
        assert kernels(fake) == ["kvm", "kvm", "tcg", "tcg"]
    finally:
        for testbed in pair:
            testbed.close()
    told = KvmRecord(journal.path.parent).read()
    assert told is not None
    assert not told[0]
    testbed = VmTestbed(cloud, plan_cpus(None, None), journal, tmp_path / "consoles", machine=auto)
    try:
        assert testbed.guest.accelerator.name == "tcg"
        assert testbed.guest.accelerator.why.startswith("by KVM, chosen because a probe took ")
        assert f"{cloud.name} gave no sign of life within {SILENCE} s of its start" in testbed.sentence()
        assert "\n" not in testbed.sentence()
    finally:
        testbed.close()


def test_kvm_that_dies_half_way_through_a_kernel(boot_testbed, fake, auto, cloud):
    fake.behave(
        PROBE_AT_ONCE
        + "if $kvm; then printf '[    0.000000] Linux version' >$console; echo 'KVM: entry failed' >&2; exit 1; fi"
    )
    testbed = boot_testbed(cloud, machine=auto)
    assert testbed.guest.accelerator.name == "tcg"
    assert f"{cloud.name}: QEMU ended with exit code 1: KVM: entry failed" in testbed.sentence()
    assert kernels(fake) == ["kvm", "tcg"]


@pytest.mark.usefixtures("impatient")
def test_a_build_that_comes_up_by_neither_says_nothing_of_kvm(boot_testbed, fake, auto, cloud):
    fake.behave(SILENT)
    with pytest.raises(GuestError, match=r"QEMU ended with exit code 1: .*memory"):
        boot_testbed(cloud, machine=dataclasses.replace(auto, memory=1 << 40))
    assert kernels(fake) == ["kvm", "tcg"]
    assert not list(fake.folder.parent.glob("state/kvm.json"))


def test_kvm_that_has_booted_a_guest_is_not_to_blame_for_a_silent_one(boot_testbed, fake, auto, cloud):
    fake.behave(PROBE_AT_ONCE + "if $kvm && [ -e $folder/silent ]; then exec sleep 600; fi")
    testbed = boot_testbed(cloud, machine=auto)
    assert testbed.describe()["accelerator"] == "kvm"
    (fake.folder / "silent").touch()
    with pytest.raises(GuestError, match=rf"gave no sign of life within {SILENCE} s of its start and does not answer"):
        boot_testbed(cloud, machine=auto, patience=SILENCE)
    assert kernels(fake) == ["kvm", "kvm", "kvm"]  # the start is tried twice, never by emulation


def test_a_guest_by_kvm_that_was_asked_for_is_never_emulated(boot_testbed, fake, auto, cloud):
    fake.behave(SILENT)
    with pytest.raises(GuestError, match=rf"gave no sign of life within {SILENCE} s of its start and does not answer"):
        boot_testbed(cloud, machine=dataclasses.replace(auto, accelerator="kvm"), patience=SILENCE)
    assert kernels(fake) == ["kvm", "kvm"]


# --- Patience --------------------------------------------------------------------------------------------------------

TALKS = """
if ! $probe; then
    for number in $(seq LINES); do
        sleep 0.25
        echo "line $number" >>"$console"
    done
    exec sleep 600
fi
"""


@pytest.mark.usefixtures("capable")
def test_a_slow_guest_is_waited_for_until_it_is_silent(fake, boot, cloud):
    fake.behave(TALKS.replace("LINES", "12"))
    told = rf"no sign of life within {PATIENCE} s of its last word .* ends with: .*line 12; "
    with pytest.raises(GuestError, match=told):
        boot(cloud, patience=PATIENCE)


@pytest.mark.usefixtures("capable")
def test_a_guest_that_talks_for_ever_is_not_waited_for_for_ever(fake, boot, cloud, monkeypatch):
    monkeypatch.setattr("pdrgate.guests.guest._LONGEST", 2)
    fake.behave(TALKS.replace("LINES", "10000"))
    told = rf"was not up {2 * PATIENCE} s after its start, though its console went on, and does not"
    with pytest.raises(GuestError, match=told):
        boot(cloud, patience=PATIENCE)
