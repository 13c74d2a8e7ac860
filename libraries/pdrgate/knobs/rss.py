"""Spread of received packets over a device's queues: the RSS indirection table, and the fields that are hashed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import DeviceKnob, includes, parse_state, state_text
from pdrgate.values.errors import TestbedError

DEFAULT = "default"

_FIELDS = {
    "L2DA": "m", "VLAN tag": "v", "L3 proto": "t", "IP SA": "s", "IP DA": "d",
    "L4 bytes 0 & 1 [TCP/UDP src port]": "f", "L4 bytes 2 & 3 [TCP/UDP dst port]": "n", "GTP TEID": "e",
    "IPv6 Flow Label": "l",
}  # fmt: skip
"""Fields of a hash as ethtool shows them, with the letters by which it takes them."""
_FIELDLESS = ("None", "All matching flows discarded on RX")
_MIRRORED = ("sd", "fn")
"""Pairs of fields that a symmetric hash takes together. It takes no others."""
_NO_FIELDS, _DISCARD = "none", "r"
"""State without hashed fields, and the letter by which ethtool takes it."""


@dataclass(frozen=True, slots=True)
class IndirectionTable(DeviceKnob):
    """The receive queue of each hash value; ``value`` is ``default``, ``equal=4`` or ``weight=3,1``.

    A state has the table in the same words, as short as they can be, with the number of receive queues and of entries.
    Of other tables ethtool can make none, so they are not replaced.
    """

    kind = "rss-table"

    device: str
    value: str

    def describe(self) -> str:
        return f"RSS table of {self.device}: {self.value}"

    def _lacking(self, host: Host) -> str | None:
        shown = self._ethtool(host, "-x")
        if (table := _Table.parse(shown.stdout)) is None:
            return f"{self.device} on {host.name} has no RSS indirection table"
        if table.spread().startswith("table="):
            raise TestbedError(
                f"the RSS indirection table of {self.device} on {host.name} was made entry by entry, and ethtool could "
                f"not put it back; give it up with ethtool -X {self.device} default"
            )
        if self.value != DEFAULT and max(_entries(self.value, table)) >= table.rings:
            return f"{self.device} on {host.name} has {table.rings} receive queues, too few for {self.value}"
        return None

    def read(self, host: Host) -> str:
        table = _Table.parse(self._ethtool(host, "-x").stdout)
        if table is None:
            raise TestbedError(f"{self.device} on {host.name} has no RSS indirection table any more; see ethtool -x")
        return f"{table.spread()} rings={table.rings} entries={len(table.entries)}"

    def apply(self, host: Host) -> None:
        # The kernel lets queues go only while the table is not of somebody's making, however it looks: the driver's own
        # is asked for although it may be there, and any other is not asked for when it is there.
        if self.value == DEFAULT or not self.holds(self.read(host), self.value):
            self._set(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        if self._set_default(host, old):
            return
        self._set(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        have = parse_state(actual)
        table = _Table(int(have["rings"]), (0,) * int(have["entries"]))
        return _entries(actual, table) == _entries(wanted, table)

    def _set_default(self, host: Host, old: str) -> bool:
        """Whether the driver's own table is the old one: then the device may change its queues freely again."""
        host.run("ethtool", "-X", self.device, DEFAULT, check=False)
        return self.holds(self.read(host), old)

    def _set(self, host: Host, wanted: str) -> None:
        how, _, numbers = wanted.split()[0].partition("=")
        host.run("ethtool", "-X", self.device, how, *numbers.split(",") if numbers else ())
        self._read_back(host, wanted, f"the RSS table of {self.device}", "does the driver bound it?")


@dataclass(frozen=True, slots=True)
class _Table:
    rings: int
    entries: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> _Table | None:
        """The table in the output of ``ethtool -x``; None without a table."""
        head = re.search(r"with (\d+) RX ring", text)
        rows = re.findall(r"^\s*\d+:((?:\s+\d+)+)\s*$", text, re.MULTILINE)
        if head is None or not rows:
            return None
        return cls(int(head[1]), tuple(int(entry) for row in rows for entry in row.split()))

    def spread(self) -> str:
        """The words that make this table."""
        queues, size = max(self.entries) + 1, len(self.entries)
        if self.entries == _equal(queues, size):
            return f"equal={queues}"
        weights = [self.entries.count(queue) for queue in range(queues)]
        if self.entries == _weighted(weights, size):
            return f"weight={','.join(map(str, weights))}"
        return f"table={','.join(map(str, self.entries))}"


def _entries(text: str, table: _Table) -> tuple[int, ...]:
    """The table that words or a state mean, on a device with that many queues and entries."""
    size = len(table.entries)
    how, _, numbers = text.split()[0].partition("=")
    if how == DEFAULT:
        return _equal(table.rings, size)
    listed = [int(number) for number in numbers.split(",")]
    if how == "equal":
        return _equal(listed[0], size)
    return tuple(listed) if how == "table" else _weighted(listed, size)


def _equal(queues: int, size: int) -> tuple[int, ...]:
    return tuple(entry % queues for entry in range(size))


def _weighted(weights: Sequence[int], size: int) -> tuple[int, ...]:
    """Queue by queue a run of entries in proportion to its weight, its end rounded down, as ethtool fills it."""
    total = sum(weights)
    ends = [size * reached // total for reached in accumulate(weights)]
    return tuple(next(queue for queue, end in enumerate(ends) if entry < end) for entry in range(size))


@dataclass(frozen=True, slots=True)
class FlowHash(DeviceKnob):
    """The header fields that choose a queue, by kind of traffic; ``value`` is text such as ``udp4=sdfn udp6=sd``.

    The letters are ethtool's: ``s`` and ``d`` for the addresses, ``f`` and ``n`` for the ports.
    """

    kind = "rss-hash"

    device: str
    value: str

    def describe(self) -> str:
        return f"RSS hash of {self.device}: {self.value}"

    def _lacking(self, host: Host) -> str | None:
        for flow in parse_state(self.value):
            shown = self._ethtool(host, "-n", "rx-flow-hash", flow)
            if shown.exit_code != 0:
                reason = (shown.stderr.strip().splitlines() or ["ethtool does not say why"])[-1]
                return f"{self.device} on {host.name} has no RSS hash of {flow} ({reason})"
            self._letters(host, flow, shown.stdout)
        return self._kept_symmetric(host)

    def _kept_symmetric(self, host: Host) -> str | None:
        """Why the device refuses a hash that is not the same in both directions; None if it does not."""
        uneven = [f"{flow}={fields}" for flow, fields in parse_state(self.value).items() if not _is_symmetric(fields)]
        shown = self._ethtool(host, "-x").stdout if uneven else ""
        if (on := re.search(r"^\s*(symmetric[\w-]*): on$", shown, re.MULTILINE)) is None:
            return None
        return (
            f"{self.device} on {host.name} hashes with {on[1]} and so takes no {uneven[0]}, but sd, fn or sdfn; switch "
            f"that off with ethtool -X {self.device} xfrm none"
        )

    def _letters(self, host: Host, flow: str, shown: str) -> str:
        """The hashed fields. Raises TestbedError for a field without a known letter: it could not be put back."""
        lines = [line for line in map(str.strip, shown.splitlines()) if line and not line.endswith(":")]
        if unknown := [line for line in lines if line not in (*_FIELDS, *_FIELDLESS)]:
            raise TestbedError(
                f"{self.device} on {host.name} hashes {unknown[0]!r} of {flow}, which could not be put back; take that "
                f"field out with ethtool -N {self.device} rx-flow-hash {flow}, or leave flow_hash out"
            )
        return "".join(letter for label, letter in _FIELDS.items() if label in lines) or _NO_FIELDS

    def read(self, host: Host) -> str:
        found = {}
        for flow in parse_state(self.value):
            shown = host.run("ethtool", "-n", self.device, "rx-flow-hash", flow)
            found[flow] = self._letters(host, flow, shown.stdout)
        return state_text(found)

    def holds(self, actual: str, wanted: str) -> bool:
        have = {flow: "".join(sorted(fields)) for flow, fields in parse_state(actual).items()}
        return includes(have, {flow: "".join(sorted(fields)) for flow, fields in parse_state(wanted).items()})

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        have, was, new = parse_state(actual), parse_state(old), parse_state(wanted)
        return all(sorted(fields) in (sorted(was.get(f, "")), sorted(new.get(f, ""))) for f, fields in have.items())

    def _set(self, host: Host, wanted: str) -> None:
        have = parse_state(self.read(host))
        for flow, fields in parse_state(wanted).items():
            if sorted(have.get(flow, "")) != sorted(fields):
                letters = _DISCARD if fields == _NO_FIELDS else fields
                host.run("ethtool", "-N", self.device, "rx-flow-hash", flow, letters)
        remedy = "does the driver tie the two kinds of traffic together?"
        self._read_back(host, wanted, f"the RSS hash of {self.device}", remedy)


def flow_hash(device: str, fields: Mapping[str, str]) -> FlowHash:
    """The hashed fields by kind of traffic: ``{"udp4": "sdfn"}``."""
    return FlowHash(device, state_text(fields))


def _is_symmetric(fields: str) -> bool:
    pairs = [pair for pair in _MIRRORED if set(pair) <= set(fields)]
    return fields in (_NO_FIELDS, "r") or set(fields) == set("".join(pairs))
