"""Settings as hosts have them: state that moves by itself, words that we do not know, what excludes one another."""

from __future__ import annotations

from pathlib import Path

import fake_host
import pytest
from fake_host import machine

from pdrgate.knobs import KnobSet
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.interrupt_names import served_queues
from pdrgate.knobs.rss import flow_hash
from pdrgate.values.errors import TestbedError

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


def _ruleset(rule: str, chain: str = "input", more: str = "") -> str:
    return f"table inet filter {{\n{more}\tchain {chain} {{\n\t\t{rule}\n\t}}\n}}"


def _set(*lines: str) -> str:
    return "\tset s {\n" + "".join(f"\t\t{line}\n" for line in ("type ipv4_addr", *lines)) + "\t}\n"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (_ruleset("counter packets 1 bytes 60 accept"), _ruleset("counter packets 900 bytes 54000 accept"), True),
        (_ruleset("udp dport 9 last used 1s28ms accept"), _ruleset("udp dport 9 last used never accept"), True),
        (_ruleset("quota 5 mbytes used 29 bytes"), _ruleset("quota 5 mbytes used 4 kbytes"), True),
        (_ruleset("quota over 5 mbytes used 29 bytes drop"), _ruleset("quota over 5 mbytes drop"), True),
        (_ruleset("quota 5 mbytes used 29 bytes"), _ruleset("quota 6 mbytes used 29 bytes"), False),
        (_ruleset("udp dport 9 last used 1s"), _ruleset("udp dport 10 last used 1s"), False),
        (_ruleset("accept", more="\tquota q {\n\t\tover 5 mbytes used 1 bytes\n\t}\n"),
         _ruleset("accept", more="\tquota q {\n\t\tover 5 mbytes used 2 bytes\n\t}\n"), True),
        (_ruleset("accept", more=_set("flags dynamic,timeout", "elements = { 10.0.0.1 expires 9s, 10.0.0.2 }")),
         _ruleset("accept", more=_set("flags dynamic,timeout")), True),
        (_ruleset("accept", more=_set("flags timeout", "elements = { 10.0.0.1 timeout 1m expires 9s, 10.0.0.2 }")),
         _ruleset("accept", more=_set("flags timeout", "elements = { 10.0.0.2 }")), True),
        (_ruleset("accept", more=_set("elements = { 10.0.0.1 counter packets 1 bytes 2,\n\t\t\t     10.0.0.2 }")),
         _ruleset("accept", more=_set("elements = { 10.0.0.1 counter packets 3 bytes 4, 10.0.0.2 }")), True),
        (_ruleset("accept", more=_set("elements = { 10.0.0.1, 10.0.0.2 }")),
         _ruleset("accept", more=_set("elements = { 10.0.0.1 }")), False),
        (_ruleset('log prefix "last used 1s"'), _ruleset('log prefix "last used 2s"'), False),
    ],
)  # fmt: skip
def test_rules_that_nobody_touched_are_the_same_rules(before: str, after: str, same: bool) -> None:
    assert FirewallRules("none").holds(after, before) is same


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
def test_listings_of_rules_as_they_were_reported() -> None:
    before, after = (CASES / "nft-moving-state/two-listings.txt").read_text().split("---\n")
    assert FirewallRules("none").holds(after, before)


# --- The fields of a hash ---


@pytest.mark.parametrize("had", ["sdl", "sde", "sdfnl", "vsd"])
def test_fields_that_newer_ethtools_know_go_back(had: str) -> None:
    host, knobs = machine(), KnobSet()
    host.devices["eth0"].hashes["udp6"] = had
    knob = flow_hash("eth0", {"udp6": "sdfn"})
    assert not knob.holds(knob.read(host), knob.value)
    knobs.apply(host, knob)
    assert host.devices["eth0"].hashes["udp6"] == "sdfn"
    knobs.restore()
    assert sorted(host.devices["eth0"].hashes["udp6"]) == sorted(had)


def test_a_field_that_is_not_known_is_refused_before_anything_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    host = machine()
    before = host.state()
    monkeypatch.setitem(fake_host._HASH_LABELS, "s", "Outer IP SA")
    with pytest.raises(TestbedError, match="has the field 'Outer IP SA', which pdrgate does not know"):
        KnobSet().apply(host, flow_hash("eth0", {"udp6": "sd"}))
    assert host.state() == before


@pytest.mark.parametrize("kind", ["symmetric-xor", "symmetric-or-xor"])
def test_a_symmetric_hash_takes_both_sides_or_none(kind: str) -> None:
    host = machine()
    others = "".join(f"    {one}: off\n" for one in ("symmetric-xor", "symmetric-or-xor") if one != kind)
    host.devices["eth0"].transformation = f"RSS input transformation:\n    {kind}: on\n{others}"
    for fields in ("s", "sdf", "sdl", "n"):
        lacks = flow_hash("eth0", {"udp4": fields}).lacking(host)
        assert lacks is not None
        assert lacks.startswith(f"eth0 on fake has the RSS input transformation {kind}, which takes both addresses")
        assert lacks.endswith("ethtool -X eth0 xfrm none")
    for fields in ("sd", "nf", "sdfn"):
        assert flow_hash("eth0", {"udp4": fields}).lacking(host) is None
    host.devices["eth0"].transformation = host.devices["eth0"].transformation.replace(": on", ": off")
    assert flow_hash("eth0", {"udp4": "s"}).lacking(host) is None


# --- Interrupts ---


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("virtio2-input.1", 1), ("virtio2-config", None), ("i40e-eth1-TxRx-12", 12), ("eth1-rx-2", 2), ("eth1", None),
        ("mlx5_comp3@pci:0000:3b:00.0", 3), ("mlx5_async0@pci:0000:3b:00.0", None), ("eth1-Tx-Rx-7", 7),
        ("ice-0000:01:00.0:misc", None), ("ena-mgmnt@pci:0000:00:05.0", None), ("mana_hwc@pci:7870:00:00.0", None),
        ("mana_q3@pci:7870:00:00.0", 3), ("hclge-misc-0000:7d:00.0", None), ("hns3-0000:7d:00.0-eth1-TxRx-5", 5),
        ("i40e-0000:02:00.0:fdir-TxRx-0", None), ("idpf-eth1-Mailbox-0", None), ("eth1-event-4", None),
        ("ionic-0000:04:00.0-adminq-0", None), ("hinic_rxq3", 3), ("eth1-fp-3", 3), ("enp1s0f1", None),
    ],
)  # fmt: skip
def test_the_queue_of_an_interrupt(name: str, queue: int | None) -> None:
    device = "enp1s0f1" if name == "enp1s0f1" else "eth1"
    assert served_queues({30: name, 31: "another-9"}, device)[30] == queue


def test_a_device_of_one_interrupt_has_one_queue() -> None:
    assert served_queues({30: "enp1s0f3"}, "enp1s0f3") == {30: 0}


def test_half_of_the_blocks_of_gve_send() -> None:
    names = {30 + block: f"gve-ntfy-blk{block}@pci:0000:00:04.0" for block in range(4)} | {34: "gve-mgmnt@pci:0000:4.0"}
    assert served_queues(names, "eth1") == {30: 0, 31: 1, 32: 0, 33: 1, 34: None}


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
@pytest.mark.parametrize(("card", "queues"), [("ena", [None, 0, 1]), ("gve", [0, 1, 2, 0, 1, 2, None])])
def test_interrupts_as_they_were_reported(card: str, queues: list[int | None]) -> None:
    lines = (CASES / f"irq-no-queue/interrupts-{card}.txt").read_text().splitlines()[1:]
    names = {int(line.split(":")[0]): line.split()[-1] for line in lines}
    assert list(served_queues(names, "eth1").values()) == queues
