"""Counters of which a part cannot be read, and names that one tool resolves and another does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from pdrgate.hosts.host import Host
from pdrgate.observers.counters import parse_qdiscs, qdisc_drops
from pdrgate.observers.reading import nested
from pdrgate.testbeds.rack.traffic_source import link_address
from pdrgate.values.errors import TestbedError

FQ = '{"kind":"fq","handle":"1:","dev":"eth1","root":true,"options":{"limit":1000},"drops":7}'
BROKEN = '{"kind":"cake","handle":"2:","dev":"eth2","root":true,"options":{"bandwidth":unlimited,"x":{}},"drops":3}'
PFIFO = '{"kind":"pfifo","handle":"3:","dev":"eth1","parent":"9:1","options":{},"drops":5}'


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"[{FQ},{PFIFO}]", ["fq", "pfifo"]),
        (f"[{FQ},{BROKEN},{PFIFO}]", ["fq", "pfifo"]),
        (f"[{BROKEN},{FQ}]", ["fq"]),
        (f"[{FQ},{BROKEN[:40]}", ["fq"]),
        (f'[{FQ},{{"options":{{}}}},7]', ["fq"]),
        ("qdisc fq 1: dev eth1 root", []),
        ('{"kind":"fq"}', []),
        ("", []),
    ],
)
def test_an_entry_of_tc_that_is_no_json_takes_no_other_with_it(text: str, kinds: list[str]) -> None:
    found = parse_qdiscs(text)
    assert [one["kind"] for one in found] == kinds
    if "fq" in kinds:
        assert nested(qdisc_drops(("eth1",), found))["eth1/qdisc"]["fq"] == 7


@dataclass
class FakeIp:
    """A host with one interface, as ``ip -j link show dev`` has it whatever name was asked for."""

    name: str = "sut"

    def run_json(self, *_: str) -> list[dict[str, Any]]:
        return [{"ifname": "enp1s0f0np0", "flags": ["UP", "LOWER_UP"], "address": "02:00:00:00:00:01",
                 "altnames": ["enp1s0f0", "enxb0"]}]  # fmt: skip


@pytest.mark.parametrize("other", ["enp1s0f0", "enxb0"])
def test_a_former_name_of_an_interface_is_refused_with_the_present_one(other: str) -> None:
    host = cast("Host", FakeIp())
    assert link_address(host, "enp1s0f0np0", "sut.ingress") == "02:00:00:00:00:01"
    with pytest.raises(
        TestbedError, match=rf"^sut.ingress: {other} on sut is enp1s0f0np0 now, and .*; name enp1s0f0np0$"
    ):
        link_address(host, other, "sut.ingress")
