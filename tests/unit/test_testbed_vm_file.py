"""Testbed files of kind local-vm."""

from pathlib import Path

import pytest

from pdrgate.guests.emulator.qemu import RINGS
from pdrgate.testbeds import LocalVm, load_testbed
from pdrgate.testbeds.config import GeneratorConfig
from pdrgate.values.errors import TestbedError

SHIPPED = Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml"

VALID = """\
name: vm-1
kind: local-vm
generator: {kind: embedded, cpu: 0}
sut:
  kernel: linux-image-amd64
  vcpus: 2
  memory: 1024
  accelerator: tcg
  ring: 512
  cpus: [3, 2]
  isolate: false
  cmdline: mitigations=off
  knobs: {net.core.netdev_budget: 600}
"""


def test_the_shipped_testbed_is_all_defaults():
    testbed = load_testbed(SHIPPED)
    assert testbed == LocalVm(name="local-vm", source=SHIPPED, generator=GeneratorConfig("embedded"), accelerator="tcg")


def test_a_full_file_becomes_values(load):
    testbed = load(VALID)
    assert testbed == LocalVm(
        name="vm-1",
        source=Path("x.yaml"),
        generator=GeneratorConfig("embedded", cpu=0),
        cpus=(2, 3),
        isolate=False,
        knobs={"net.core.netdev_budget": 600},
        kernel="linux-image-amd64",
        vcpus=2,
        memory=1024,
        accelerator="tcg",
        ring=512,
        cmdline="mitigations=off",
    )


@pytest.mark.parametrize(
    ("written", "speed"),
    [
        ("auto", "auto"),
        ("full", "full"),
        ("100 MIPS", 100_000_000),
        ("50MIPS", 50_000_000),
        ("125000000", 125_000_000),
        ("125000000.0", 125_000_000),
    ],
)
def test_a_speed_is_instructions_a_second(load, written, speed):
    assert load(VALID.replace("memory: 1024", f"cpu_speed: {written}")).cpu_speed == speed


def test_all_may_be_left_out(load):
    testbed = load("name: a\nkind: local-vm\ngenerator: {kind: embedded}\n")
    assert testbed == LocalVm(name="a", source=Path("x.yaml"), generator=GeneratorConfig("embedded"))
    assert load("name: a\nkind: local-vm\ngenerator: {kind: embedded}\nsut: {}\n") == testbed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ring: 512", "ring: 500", "x.yaml:9: sut.ring: 500 is not one of 256, 512, 1024; "),
        ("vcpus: 2", "vcpus: 0", "x.yaml:6: sut.vcpus: 0 is less than the minimum of 1; write a whole number from 1 to "
         "64, the guest's virtual CPUs"),
        ("vcpus: 2", "sharing_vcpus: 5", "x.yaml:6: sut.sharing_vcpus: 5 is greater than the maximum of 4; "
         "write 2, 3 or 4"),
        ("memory: 1024", "memory: 1G", "x.yaml:7: sut.memory: '1G' is not of type 'integer'; write a whole number of "
         "MiB from 256 to 65536"),
        ("accelerator: tcg", "accelerator: kmv", "x.yaml:8: sut.accelerator: 'kmv' is not one of auto, kvm, tcg; did "
         "you mean kvm?"),
        ("vcpus: 2", "hops: 2", "x.yaml:6: sut.hops: unknown key; known are kernel, vcpus, sharing_vcpus, memory, "
         "accelerator, cpu, cpu_speed, ring, "
         "cpus, isolate, caches, model, cmdline, knobs"),
        ("memory: 1024", "model: znver9", "x.yaml:7: sut.model: 'znver9' is not one of amd-epyc-25-17; "),
        ("cpus: [3, 2]", "cpus: [0]", "x.yaml:10: sut.cpus: CPU 0 is the generator's too (generator.cpu); the two must "
         "not share one"),
        ("net.core.netdev_budget", "kernel.panic", "x.yaml:13: sut.knobs: kernel.panic is a setting of the whole "
         "machine; only those of net. belong to the SUT's namespace"),
        ("memory: 1024", "cpu: amd-milano", "x.yaml:7: sut.cpu: 'amd-milano' is not one of server, amd-milan, "
         "amd-genoa, intel-skylake, intel-sapphire-rapids, neoverse-n1, cortex-a76; did you mean amd-milan?"),
        ("memory: 1024", "cpu_speed: 2 GHz", "x.yaml:7: sut.cpu_speed: '2 GHz' does not fit; write auto, full, or "
         "instructions a second such as 100 MIPS"),
        ("kind: local-vm", "kind: local-vn", "x.yaml:2: kind: 'local-vn' is not one of local-netns, local-vm, rack; "
         "did you mean local-vm?"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_key(load, old, new, message):
    assert old in VALID
    with pytest.raises(TestbedError) as error:
        load(VALID.replace(old, new, 1))
    assert str(error.value).startswith(message)


def test_the_rings_of_the_schema_are_those_of_qemu(load):
    for ring in RINGS:
        assert load(VALID.replace("512", str(ring))).ring == ring
