"""The CPUs that a network device interrupts.

A device's interrupts are those that its bus gave it, wherever in /proc/interrupts they stand and whatever its driver
calls them. A virtio port has them by the PCI device that it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pdrgate.hosts.cpus import format_cpu_list, parse_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.knobs.cpu_shares import absent_cpus, is_share, shares, shares_in_words
from pdrgate.knobs.device_knob import DeviceKnob
from pdrgate.knobs.file_set_knob import FileSetKnob
from pdrgate.knobs.interrupt_names import served_queues
from pdrgate.knobs.states import parse_state


@dataclass(frozen=True, slots=True)
class InterruptAffinity(DeviceKnob, FileSetKnob):
    """The CPUs of a device's interrupts; ``value`` shares them out, see `pdrgate.knobs.cpu_shares`.

    The parts of a state are ``IRQ/QUEUE=CPUS``. In turn, the interrupts of one queue get the same CPU, so that what it
    receives and what it has sent is worked on in one place.
    """

    kind = "interrupts"

    device: str
    value: str

    def describe(self) -> str:
        return f"interrupts of {self.device}: {shares_in_words(self.value)}"

    def _lacking(self, host: Host) -> str | None:
        if not device_interrupts(host, self.device):
            return (
                f"{self.device} on {host.name} has no interrupts of its own: it is no physical or virtio device, or is "
                "not up"
            )
        return absent_cpus(self.value, host)

    def _paths(self, host: Host) -> dict[str, str]:
        found = {}
        for number, queue in served_queues(device_interrupts(host, self.device), self.device).items():
            part = str(number) if queue is None else f"{number}/{queue}"
            found[part] = f"/proc/irq/{number}/smp_affinity_list"
        return found

    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        if not is_share(wanted):
            return parse_state(wanted)
        return shares(wanted, {name: int(name.partition("/")[2]) if "/" in name else None for name in names})

    def _what(self) -> str:
        return f"the affinity of {self.device}"

    def _means(self, text: str) -> str:
        return format_cpu_list(parse_cpu_list(text))


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
    around = [f"{folder}/msi_irqs" for folder in (bus, f"{bus}/..")]
    # By one command, which heads each of several folders and says of most devices that one is not there.
    listed = host.run("ls", *around, check=False).stdout
    for folder in around:
        if match := re.search(rf"^{re.escape(folder)}:\n((?:\d+\n)+)", listed, re.MULTILINE):
            return {int(name) for name in match[1].split()}
    for folder in (bus, f"{bus}/.."):
        if host.exists(f"{folder}/irq") and (number := int(host.read(f"{folder}/irq"))):
            return {number}
    return set()
