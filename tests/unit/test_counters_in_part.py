"""Counters of which a part cannot be read."""

from __future__ import annotations

import pytest

from pdrgate.observers.counters import parse_qdiscs, qdisc_drops
from pdrgate.observers.reading import nested

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
