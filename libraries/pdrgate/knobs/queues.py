"""The CPUs that work for the queues of a network device (RPS and XPS), and flow steering (RFS) by queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pdrgate.hosts.cpus import cpu_mask, format_cpu_list, parse_cpu_list, parse_cpu_mask
from pdrgate.hosts.host import Host
from pdrgate.knobs.cpu_shares import NONE, absent_cpus, each, is_share, shares, shares_in_words
from pdrgate.knobs.file_set_knob import FileSetKnob, read_set
from pdrgate.knobs.knob import DeviceKnob, parse_state

Attribute = Literal["rps_cpus", "xps_cpus", "rps_flow_cnt"]
_SIDES: dict[Attribute, str] = {"rps_cpus": "rx-", "xps_cpus": "tx-", "rps_flow_cnt": "rx-"}
_WORDS: dict[Attribute, str] = {"rps_cpus": "RPS", "xps_cpus": "XPS", "rps_flow_cnt": "RFS flows"}


@dataclass(frozen=True, slots=True)
class QueueFiles(DeviceKnob, FileSetKnob):
    """An attribute of all queues of a device.

    ``value`` shares out CPUs, see `pdrgate.knobs.cpu_shares`; of ``rps_flow_cnt`` it is ``each N``, the flows whose
    CPU is remembered for a queue, with 0 for no flow steering.
    """

    kind = "queues"

    device: str
    attribute: Attribute
    value: str

    def describe(self) -> str:
        flows = self.attribute == "rps_flow_cnt"
        return f"{_WORDS[self.attribute]} of {self.device}: {self.value if flows else shares_in_words(self.value)}"

    def _lacking(self, host: Host) -> str | None:
        if not read_set(host, self._paths(host)):
            return (
                f"{self.device} on {host.name} has no {self.attribute} that can be read: it has one such queue only, "
                "or its kernel does without"
            )
        return None if self.attribute == "rps_flow_cnt" else absent_cpus(self.value, host)

    def _parts(self, wanted: str, names: Mapping[str, str]) -> dict[str, str]:
        if not is_share(wanted):
            return parse_state(wanted)
        return shares(wanted, {name: int(name.rpartition("-")[2]) for name in names})

    def _what(self) -> str:
        return f"{_WORDS[self.attribute]} of {self.device}"

    def _means(self, text: str) -> str:
        return text if self.attribute == "rps_flow_cnt" else format_cpu_list(parse_cpu_mask(text)) or NONE

    def _kernel(self, value: str) -> str:
        if self.attribute == "rps_flow_cnt":
            return value
        return cpu_mask(() if value == NONE else parse_cpu_list(value))

    def _paths(self, host: Host) -> dict[str, str]:
        names = _queues(host, self.device, _SIDES[self.attribute])
        return {name: f"/sys/class/net/{self.device}/queues/{name}/{self.attribute}" for name in names}


def rps(device: str, share: str) -> QueueFiles:
    """Receive packet steering of all queues; ``each none`` switches it off."""
    return QueueFiles(device, "rps_cpus", share)


def xps(device: str, share: str) -> QueueFiles:
    """The CPUs that send by each transmit queue; ``each none`` leaves it to a hash."""
    return QueueFiles(device, "xps_cpus", share)


def rfs_off(device: str) -> QueueFiles:
    """State without flow steering: packets are not moved to the CPU where a program reads them."""
    return QueueFiles(device, "rps_flow_cnt", "each 0")


def rps_off(device: str) -> QueueFiles:
    """State without receive packet steering."""
    return rps(device, each(()))


def _queues(host: Host, device: str, side: str) -> list[str]:
    names = host.run("ls", f"/sys/class/net/{device}/queues").stdout.split()
    return sorted((name for name in names if name.startswith(side)), key=lambda name: int(name.removeprefix(side)))
