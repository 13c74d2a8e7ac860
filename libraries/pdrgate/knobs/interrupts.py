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
from pdrgate.knobs.file_set_knob import FileSetKnob
from pdrgate.knobs.knob import DeviceKnob, parse_state

_NO_QUEUE = re.compile(
    r"(?<![a-z])(?:mgmn?t|management|hwc|async|admin|adminq|ctrl|control|config|misc|mbx|mbox|mailbox|event|fdir|pages"
    r"|lsc|link|service|exn|aux|fw|err|error|ptp|other)(?![a-z])",
    re.IGNORECASE,
)
"""Words of interrupts by which a card is managed, whatever number stands at their end."""
_ADDRESS = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_BLOCK = re.compile(r"gve-ntfy-blk")


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
        names = device_interrupts(host, self.device)
        for number, queue in queues_of(names, self.device).items():
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


def queues_of(names: Mapping[int, str], device: str) -> dict[int, int | None]:
    """The queue that each interrupt serves; None for one that serves none.

    Its number ends the name, in front of the bus address behind ``@``: ``virtio2-input.1``, ``mlx5_comp0@pci:…``. The
    one interrupt of a device that has no more serves its queue 0.

    Args:
        names: the interrupts' names, by number.
        device: the network device that they are of, whose own name may end with a digit.
    """
    found: dict[int, int | None] = {}
    for number, name in names.items():
        rest = _ADDRESS.sub("", name.partition("@")[0].replace(device, ""))
        queue = None if _NO_QUEUE.search(rest) else re.search(r"(\d+)\)?$", rest)
        found[number] = int(queue[1]) if queue is not None else None
    if blocks := [number for number, name in names.items() if _BLOCK.match(name)]:
        # gve: the first half of its blocks send, the other half receive.
        half = max(1, len(blocks) // 2)
        found |= {number: own % half for number in blocks if (own := found[number]) is not None}
    return dict.fromkeys(found, 0) if len(found) == 1 else found


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
