"""Static neighbours of a network device, so that no address is resolved while packets flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import DeviceKnob, KnobOfParts, parse_state, state_text

_NONE = "none"


@dataclass(frozen=True, slots=True)
class StaticNeighbours(DeviceKnob, KnobOfParts):
    """MAC addresses by IP address, ``192.0.2.1=02:00:00:00:00:01``; ``none`` where no static one is.

    What the kernel learned about such an address is forgotten: it learns it again. Neighbours not named stay as they
    are. The device must be up, for the kernel forgets all neighbours of one that goes down.
    """

    kind = "neighbours"

    device: str
    value: str

    def describe(self) -> str:
        return f"static neighbours of {self.device}: {self.value}"

    def read(self, host: Host) -> str:
        known = static_neighbours(host, self.device)
        return state_text({address: known.get(address, _NONE) for address in parse_state(self.value)})

    def _set(self, host: Host, wanted: str) -> None:
        known = static_neighbours(host, self.device)
        for address, mac in parse_state(wanted).items():
            entry = (address, "dev", self.device)
            if mac == _NONE and address in known:
                host.run("ip", "neighbour", "delete", *entry)
            elif mac not in (_NONE, known.get(address)):
                host.run("ip", "neighbour", "replace", *entry, "lladdr", mac, "nud", "permanent")
        remedy = "is the device up, and does a service there remove static neighbours?"
        self._read_back(host, wanted, f"the neighbours of {self.device}", remedy)


def static_neighbours(host: Host, device: str) -> dict[str, str]:
    """The MAC addresses of the permanent neighbours of a device, by IP address."""
    known = host.run_json("ip", "-j", "neighbour", "show", "dev", device, "nud", "permanent")
    return {one["dst"]: one["lladdr"].lower() for one in known if "lladdr" in one}


def neighbours(device: str, macs: Mapping[str, str]) -> StaticNeighbours:
    """Static neighbours by IP address.

    Raises:
        ValueError: a key is no IP address.
    """
    return StaticNeighbours(
        device, state_text({str(ip_address(address)): mac.lower() for address, mac in macs.items()})
    )
