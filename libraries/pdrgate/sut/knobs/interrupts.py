"""Which CPUs a network device interrupts.

A device's interrupts are those that its bus gave it, wherever in /proc/interrupts they stand and whatever its driver
calls them. A virtio port has them by the PCI device that it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.sut.cpus import format_cpu_list, parse_cpu_list
from pdrgate.sut.host import Host
from pdrgate.sut.knobs.cpu_shares import absent_cpus, is_share, last_number, shares, words
from pdrgate.sut.knobs.file_sets import read_set, write_set
from pdrgate.sut.knobs.knob import ANY
from pdrgate.sut.knobs.states import includes, mixture, parse_state, state_text


@dataclass(frozen=True, slots=True)
class InterruptAffinity:
    """The CPUs of a device's interrupts; ``value`` shares them out, see `pdrgate.sut.knobs.cpu_shares`.

    The parts of a state are ``IRQ/QUEUE=CPUS``. In turn, the interrupts of one queue get the same CPU, so that what it
    receives and what it has sent is worked on in one place.
    """

    device: str
    value: str

    def describe(self) -> str:
        return f"interrupts of {self.device}: {words(self.value)}"

    def lacking(self, host: Host) -> str | None:
        if self.gone(host):
            return f"{host.name} has no interface {self.device}"
        if not device_interrupts(host, self.device):
            return (
                f"{self.device} on {host.name} has no interrupts of its own: it is no physical or virtio device, or is "
                "not up"
            )
        return absent_cpus(self.value, host)

    def gone(self, host: Host) -> bool:
        return not host.exists(f"/sys/class/net/{self.device}")

    def read(self, host: Host) -> str:
        texts = read_set(host, _paths(device_interrupts(host, self.device)))
        return state_text({name: _cpus(text) for name, text in texts.items()})

    def apply(self, host: Host) -> None:
        self._write(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        self._write(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        have = parse_state(actual)
        return includes(have, _parts(wanted, have))

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        have = parse_state(actual)
        return wanted != ANY and mixture(have, parse_state(old), _parts(wanted, have))

    def to_record(self) -> dict[str, str]:
        return {"kind": "interrupts", "device": self.device}

    def _write(self, host: Host, value: str) -> None:
        paths = _paths(device_interrupts(host, self.device))
        write_set(host, paths, _parts(value, paths), what=f"the affinity of {self.device}", means=_cpus)


def device_interrupts(host: Host, device: str) -> dict[int, str]:
    """The numbers and names of the interrupts in use of a network device; none of a device without hardware."""
    numbers = _numbers(host, f"/sys/class/net/{device}/device")
    if not numbers:
        return {}
    named = {
        int(match[1]): match[2]
        for line in host.read("/proc/interrupts").splitlines()
        if (match := re.match(r"\s*(\d+):.*\s(\S+)$", line))
    }
    return {number: named[number] for number in sorted(numbers) if number in named}


def _numbers(host: Host, bus: str) -> set[int]:
    """Message-signalled interrupts of the device or, of a virtio device, of the one around it; else its one line."""
    for folder in (bus, f"{bus}/.."):
        listed = host.run("ls", f"{folder}/msi_irqs", check=False)
        if listed.exit_code == 0 and listed.stdout.split():
            return {int(name) for name in listed.stdout.split()}
    for folder in (bus, f"{bus}/.."):
        if host.exists(f"{folder}/irq") and (number := int(host.read(f"{folder}/irq"))):
            return {number}
    return set()


def _paths(interrupts: Mapping[int, str]) -> dict[str, str]:
    """The file of each, by the name of its part in a state."""
    found = {}
    for number, name in interrupts.items():
        queue = last_number(name)
        part = str(number) if queue is None else f"{number}/{queue}"
        found[part] = f"/proc/irq/{number}/smp_affinity_list"
    return found


def _parts(text: str, names: Mapping[str, str]) -> dict[str, str]:
    if not is_share(text):
        return parse_state(text)
    return shares(text, {name: int(name.partition("/")[2]) if "/" in name else None for name in names})


def _cpus(text: str) -> str:
    return format_cpu_list(parse_cpu_list(text))
