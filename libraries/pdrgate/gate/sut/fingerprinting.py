"""The fingerprint of what is measured here and now; `pdrgate.results.fingerprint` says what two of them mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pdrgate.hosts.kernel_parameters import KernelParameters
from pdrgate.observers.environment import Environment, PortEnvironment
from pdrgate.results.fingerprint import UNKNOWN, differences_of
from pdrgate.traffic.generator import generator_identity

_BORING_WORDS = frozenset({
    "BOOT_IMAGE", "initrd", "root", "rootfstype", "rootflags", "rootwait", "rootdelay", "ro", "rw", "init", "rdinit",
    "resume", "resume_offset", "noresume", "quiet", "splash", "loglevel", "ignore_loglevel", "log_buf_len", "console",
    "earlycon", "earlyprintk", "panic", "oops", "reboot", "crashkernel", "net.ifnames", "biosdevname", "ip", "nfsroot",
    "BOOTIF", "hostname", "video", "nomodeset", "fbcon", "vga", "cryptdevice", "no_timer_check",
})  # fmt: skip
"""Words of a kernel's command line that say how to start, where to print and what disk to take. All others are taken to
matter: a comparison that is refused says why, and one that is wrong says nothing."""
_BORING_PARTS = ("systemd", "rd", "vt", "plymouth", "luks", "fsck", "printk")
"""Boring, too, is what begins with one of these and a dot."""

_OFFLOADS = {
    "rx-checksumming": "rx", "tx-checksumming": "tx", "scatter-gather": "sg", "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso", "generic-receive-offload": "gro", "large-receive-offload": "lro",
    "rx-vlan-offload": "rxvlan", "tx-vlan-offload": "txvlan", "ntuple-filters": "ntuple", "receive-hashing": "rxhash",
    "rx-gro-hw": "rx-gro-hw", "rx-gro-list": "rx-gro-list", "rx-udp-gro-forwarding": "rx-udp-gro-forwarding",
    "hw-tc-offload": "hw-tc-offload",
}  # fmt: skip
"""The features that change how packets are forwarded, with ethtool's short names; kernels add others all the time."""


METHOD = "2"
"""How loss and rates are counted. Method 1 took what a queue gave back after sending had ended for throughput."""


def fingerprint(
    scenario: str,
    profile: str,
    testbed: str,
    testbed_facts: Mapping[str, str],
    generator: Mapping[str, str],
    environment: Environment,
) -> dict[str, str]:
    """All entries as text; what the host does not report is ``unknown``, and equal to another unknown."""
    return {
        "scenario": scenario,
        "method": METHOD,
        "profile": profile,
        "testbed": testbed,
        **{f"testbed_{key}": value for key, value in testbed_facts.items()},
        "generator": generator_identity(generator),
        "kernel": environment.kernel_release or UNKNOWN,
        "kernel_version": environment.kernel_version or UNKNOWN,
        "config": environment.config_sha256 or UNKNOWN,
        "cpu_model": environment.cpu_model or UNKNOWN,
        "cpus": str(environment.cpus or UNKNOWN),
        **_settings(environment),
    }


def _settings(environment: Environment) -> dict[str, str]:
    return {
        "cmdline": UNKNOWN if environment.cmdline is None else _words(environment.cmdline),
        "mitigations": _mitigations(environment.mitigations),
        "microcode": environment.microcode or UNKNOWN,
        "governor": environment.governor or UNKNOWN,
        "turbo": _on_off(environment.turbo),
        "smt": _on_off(environment.smt),
        "frequency_driver": environment.frequency_driver or UNKNOWN,
        "idle_driver": environment.idle_driver or UNKNOWN,
        # The same counter, before and after the kernel has measured its frequency.
        "clocksource": (environment.clocksource or UNKNOWN).removesuffix("-early"),
        "sysctls": _listed(environment.sysctls),
        "drivers": _of_ports(environment.ports, lambda port: port.driver),
        "firmware": _of_ports(environment.ports, lambda port: port.firmware),
        "mtu": _of_ports(environment.ports, lambda port: None if port.mtu is None else str(port.mtu)),
        "offloads": _of_ports(environment.ports, _offloads),
    }


def _words(cmdline: str) -> str:
    """The words that matter, sorted; what stands behind ``--`` is for init."""
    words = [word for word in KernelParameters.parse(cmdline).kernel if not _boring(word)]
    return "; ".join(sorted(words)) or "nothing"


def _boring(word: str) -> bool:
    name = word.partition("=")[0]
    return name in _BORING_WORDS or name.partition(".")[0] in _BORING_PARTS


def _mitigations(found: Mapping[str, str] | None) -> str:
    """Mitigations of the vulnerabilities that the CPU has, by vulnerability.

    The kernel's own semicolons become commas, for semicolons separate the entries.
    """
    if found is None:
        return UNKNOWN
    affected = {name: text.replace("; ", ", ") for name, text in found.items() if text != "Not affected"}
    return _listed(affected) if affected else "not affected"


def _listed(values: Mapping[str, str] | None) -> str:
    return "; ".join(f"{name}={value}" for name, value in sorted(values.items())) if values else UNKNOWN


def _on_off(state: bool | None) -> str:
    return UNKNOWN if state is None else "on" if state else "off"


def _offloads(port: PortEnvironment) -> str | None:
    if port.offloads is None:
        return None
    return " ".join(sorted(_OFFLOADS[name] for name in port.offloads if name in _OFFLOADS)) or "none"


def _of_ports(ports: tuple[PortEnvironment, ...], tell: Callable[[PortEnvironment], str | None]) -> str:
    """What the ports say, once where they agree, else by their order: names of interfaces may differ by kernel."""
    told = [tell(port) or UNKNOWN for port in ports]
    return " | ".join(told if len(set(told)) > 1 else told[:1]) or UNKNOWN


def fingerprint_differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Entries in which two fingerprints differ, in words; nothing where one is not known."""
    return differences_of(theirs, ours, "nothing") if theirs else []
