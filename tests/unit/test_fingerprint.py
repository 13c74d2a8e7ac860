"""What of a machine goes into the fingerprint, and what of it may differ between two builds."""

from __future__ import annotations

import dataclasses

import pytest

from pdrgate.gate.sut.fingerprinting import METHOD, fingerprint
from pdrgate.observers.environment import Environment, PortEnvironment
from pdrgate.results.fingerprint import (
    CHOSEN_BY_KERNEL,
    OF_THE_KERNEL,
    SET_BY_OPERATOR,
    difference,
    digest,
    may_differ,
)

PORT = PortEnvironment(
    "eth0", driver="ice", driver_version="6.12.1", firmware="4.40", bus="0000:b1:00.0", mtu=1500, speed=25000,
    offloads=("generic-receive-offload", "highdma", "rx-checksumming", "tx-udp-segmentation"),
)  # fmt: skip
MACHINE = Environment(
    kernel_release="6.12.1",
    kernel_version="#1 SMP",
    config_sha256="cd" * 32,
    cmdline="BOOT_IMAGE=/vmlinuz-6.12.1 root=UUID=12-34 ro quiet rd.luks=0 mitigations=off isolcpus=1 -- -x",
    mitigations={"meltdown": "Not affected", "spectre_v2": "Mitigation: Retpolines; STIBP: disabled"},
    cpu_model="a CPU",
    cpus=4,
    governor="performance",
    smt=False,
    boot_id="0f9a",
    microcode="0xd0003a5",
    frequency_driver="intel_pstate",
    turbo=True,
    clocksource="tsc",
    sysctls={"net.core.netdev_budget": "300", "kernel.nmi_watchdog": "0"},
    ports=(PORT, dataclasses.replace(PORT, interface="eth1", bus="0000:b1:00.1")),
)


def of(environment: Environment) -> dict[str, str]:
    return fingerprint("s", "quick", "rack", {"hops": "1"}, {"name": "trex", "engine": "stl"}, environment)


def test_the_machines_settings() -> None:
    assert of(MACHINE) == {
        "scenario": "s", "method": METHOD, "profile": "quick", "testbed": "rack",
        "testbed_hops": "1", "generator": "trex/stl",
        "kernel": "6.12.1", "kernel_version": "#1 SMP", "config": "cd" * 32, "cpu_model": "a CPU", "cpus": "4",
        "cmdline": "isolcpus=1; mitigations=off",
        "mitigations": "spectre_v2=Mitigation: Retpolines, STIBP: disabled",
        "microcode": "0xd0003a5", "governor": "performance", "turbo": "on", "smt": "off",
        "frequency_driver": "intel_pstate", "idle_driver": "unknown", "clocksource": "tsc",
        "sysctls": "kernel.nmi_watchdog=0; net.core.netdev_budget=300",
        "drivers": "ice", "firmware": "4.40", "mtu": "1500", "offloads": "gro rx",
    }  # fmt: skip


def test_what_is_not_told_is_unknown() -> None:
    entries = of(Environment())
    assert {entries[key] for key in OF_THE_KERNEL | CHOSEN_BY_KERNEL | SET_BY_OPERATOR} == {"unknown"}


def test_a_start_of_the_same_machine_changes_nothing() -> None:
    again = dataclasses.replace(
        MACHINE, boot_id="77aa", memory_bytes=1, cmdline=f"{MACHINE.cmdline} console=ttyS1", clocksource="tsc-early"
    )
    assert of(again) == of(MACHINE)


def test_ports_that_are_not_alike_are_told_in_their_order() -> None:
    other = dataclasses.replace(PORT, driver="ixgbe", firmware=None, offloads=())
    entries = of(dataclasses.replace(MACHINE, ports=(PORT, other)))
    assert (entries["drivers"], entries["firmware"], entries["offloads"]) == (
        "ice | ixgbe", "4.40 | unknown", "gro rx | none"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({"mitigations": "spectre_v2=Mitigation: Enhanced IBRS"}, False),
        ({"kernel": "6.13", "mitigations": "spectre_v2=Mitigation: Enhanced IBRS", "offloads": "rx"}, True),
        ({"kernel_version": "#2 SMP", "sysctls": "kernel.nmi_watchdog=0"}, True),
        ({"kernel": "6.13", "cmdline": "isolcpus=1"}, False),
        ({"kernel": "6.13", "governor": "powersave"}, False),
        ({"kernel": "6.13", "firmware": "4.41"}, False),
        ({"kernel": "6.13", "governor": "unknown", "smt": "unknown"}, True),  # that kernel cannot tell
        ({"governor": "unknown"}, False),
        ({"kernel": "6.13", "cpu_model": "another CPU"}, False),
    ],
)
def test_what_may_differ_from_a_baseline_that_was_named(change: dict[str, str], may: bool) -> None:
    ours = of(MACHINE)
    theirs = ours | change
    assert (change.keys() <= may_differ(theirs, ours)) is may
    assert (change.keys() <= may_differ(ours, theirs)) is may


def test_parts_of_an_entry_that_differ() -> None:
    assert difference("a", "b") == ("a", "b")
    assert difference("a; b", "a") == ("b", "nothing more")


def test_a_digest_tells_fingerprints_apart_and_not_their_order() -> None:
    ours = of(MACHINE)
    assert digest(ours) == digest(dict(reversed(ours.items())))
    assert len({digest(ours | {key: "other"}) for key in ours}) == len(ours)
