"""A filter at the egress of a port that matches no packet: work that is known, in the way of every packet."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import DeviceKnob, KnobOfParts, parse_state, state_text

MOST_INSTRUCTIONS = 1500
"""Instructions that a filter has at most: tc puts no longer program into its message to the kernel."""

_PLACE = ("pref", "21121")
"""A place that nobody else's filter has."""
_NONE = "none"
_LOAD, _NO_MATCH = "0 0 0 0", "6 0 0 0"
"""Classic BPF: a constant into the accumulator, and the end, with no match."""


@dataclass(frozen=True, slots=True)
class EgressFilter(DeviceKnob, KnobOfParts):
    """A classifier of a number of BPF instructions for all packets that leave by a device: ``clsact=yes filter=300``.

    The qdisc clsact, which such filters hang on, is added where it is not there, and taken away with them again.
    """

    kind = "egress-filter"

    device: str
    value: str

    def describe(self) -> str:
        return f"filter at the egress of {self.device}: {self.value}"

    def read(self, host: Host) -> str:
        return state_text(self._read(host))

    def _read(self, host: Host) -> dict[str, str]:
        qdiscs = host.run_json("tc", "-j", "qdisc", "show", "dev", self.device)
        if not any(one["kind"] == "clsact" for one in qdiscs):
            return {"clsact": "no", "filter": _NONE}
        known = host.run_json("tc", "-j", "filter", "show", "dev", self.device, "egress", *_PLACE)
        lengths = [one["options"]["bytecode"]["length"] for one in known if "bytecode" in one.get("options", {})]
        return {"clsact": "yes", "filter": str(lengths[0]) if lengths else _NONE}

    def _set(self, host: Host, wanted: str) -> None:
        now, parts = self._read(host), parse_state(wanted)
        hook = ("dev", self.device, "egress")
        if now["filter"] not in (_NONE, parts["filter"]):
            host.run("tc", "filter", "delete", *hook, *_PLACE)
        if (now["clsact"], parts["clsact"]) == ("no", "yes"):
            host.run("tc", "qdisc", "add", "dev", self.device, "clsact")
        if parts["filter"] not in (_NONE, now["filter"]):
            program = ",".join([parts["filter"], *[_LOAD] * (int(parts["filter"]) - 1), _NO_MATCH])
            host.run(
                "tc", "filter", "add", *hook, "protocol", "all", *_PLACE, "handle", "1", "bpf", "bytecode", program
            )
        if (now["clsact"], parts["clsact"]) == ("yes", "no"):
            host.run("tc", "qdisc", "delete", "dev", self.device, "clsact")
        what = f"the filter at the egress of {self.device}"
        self._read_back(host, wanted, what, "does a service there set tc filters?")


def egress_filter(device: str, instructions: int) -> EgressFilter:
    """A filter of 1 to `MOST_INSTRUCTIONS` instructions."""
    return EgressFilter(device, f"clsact=yes filter={instructions}")
