"""The CPUs that an emulated guest can have, as QEMU and the kernel are told of them."""

import json
import stat
from pathlib import Path

import pytest

import pdrgate
from pdrgate.builds.architecture import ARCHITECTURES, ARM64, X86_64
from pdrgate.guests.emulator import qemu
from pdrgate.guests.emulator.server_cpus import SERVER_CPUS, ServerCpu, chosen_cpu, known_flags
from pdrgate.values.errors import TestbedError

OLD = frozenset({"fsrm", "ibpb", "ibrs", "stibp", "spec-ctrl", "ssbd", "amd-ssbd", "md-clear", "svm", "mpx", "3dnow"})
NEW = OLD | {"fsrs", "fzrm", "fsrc", "auto-ibrs", "bhi-ctrl", "sbpb"}


def test_the_schema_offers_those_that_there_are() -> None:
    schema = json.loads((Path(pdrgate.__file__).parent / "schemas" / "testbed.schema.json").read_text())
    assert schema["$defs"]["vm-sut"]["properties"]["cpu"]["enum"] == list(SERVER_CPUS)


@pytest.mark.parametrize("name", X86_64.cpus)
def test_only_flags_that_a_qemu_knows_are_asked_of_it(name: ServerCpu) -> None:
    """It would not start otherwise."""
    for known in (frozenset(), OLD, NEW):
        words = SERVER_CPUS[name].text(known).split(",")
        assert words[0] == "max" and "x-force-features=on" in words
        flags = {word[1:] for word in words if word[0] in "+-"}
        assert flags <= known
        assert {f"+{flag}" for flag in flags} & {f"-{flag}" for flag in flags} == set()


def test_a_cpu_has_the_flags_that_its_kernel_decides_by() -> None:
    milan, rapids = (SERVER_CPUS[name].text(NEW).split(",") for name in ("amd-milan", "intel-sapphire-rapids"))
    assert {"vendor=AuthenticAMD", "family=25", "model=1", "+fsrm", "-fsrs", "-auto-ibrs"} <= set(milan)
    assert {"vendor=GenuineIntel", "family=6", "model=143", "+fsrm", "+fsrs", "+auto-ibrs", "-svm"} <= set(rapids)


def test_the_default_is_a_milan_without_the_strings_that_an_emulator_is_slow_at() -> None:
    default, milan = (set(SERVER_CPUS[name].text(NEW | {"erms"}).split(",")) for name in ("server", "amd-milan"))
    assert default - milan == {"-erms", "-fsrm"}
    assert milan - default == {"+fsrm"}


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("server", OLD, "server"), ("amd-genoa", OLD, "amd-genoa without auto-ibrs"), ("amd-genoa", NEW, "amd-genoa"),
        ("intel-skylake", frozenset(), "intel-skylake"),
        ("intel-sapphire-rapids", OLD, "intel-sapphire-rapids without fsrs, auto-ibrs"),
    ],
)  # fmt: skip
def test_what_a_qemu_cannot_offer_is_told(
    monkeypatch: pytest.MonkeyPatch, name: ServerCpu, known: frozenset[str], told: str
) -> None:
    monkeypatch.setattr(qemu, "find_qemu", lambda architecture: "/usr/bin/qemu")
    monkeypatch.setattr(qemu, "known_flags", lambda path: known)
    assert qemu.cpu_in_words(X86_64, "tcg", name) == told
    assert qemu.cpu_in_words(X86_64, "kvm", name) == "host"


def test_a_qemu_says_which_flags_it_knows(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    program.write_text(
        "#!/bin/sh\nprintf 'Available CPUs:\\nx86 erms\\n\\nRecognized CPUID flags:\\n  abm fsrm\\n  xop\\n'\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert known_flags(str(program)) == {"abm", "fsrm", "xop"}


def test_each_architecture_has_cpus_of_its_own() -> None:
    assert [chosen_cpu(one, "server")[0] for one in ARCHITECTURES] == ["server", "neoverse-n1"]
    assert chosen_cpu(ARM64, "cortex-a76")[1].text(frozenset(), "7.2.22") == "cortex-a76"
    assert sorted(name for one in ARCHITECTURES for name in one.cpus) == sorted(SERVER_CPUS)
    with pytest.raises(TestbedError, match=r"^amd-milan is no CPU for arm64 kernels; write sut.cpu: server, or one of"):
        chosen_cpu(ARM64, "amd-milan")
