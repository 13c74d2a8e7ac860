"""From the section `sut.knobs` of a testbed file to knobs, and a host that is as it was whatever a file asked for."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_host import CPU, FakeHost, machine
from hypothesis import given, settings
from hypothesis import strategies as st
from knob_snapshot import snapshot

from pdrgate.hosts.host import HostError
from pdrgate.knobs import (
    Knob,
    KnobSet,
    PlannedKnob,
    RootQdisc,
    each,
    in_turn,
    knob_from_record,
    knobs_text,
    offloads,
    plan_knobs,
    put_back,
    rings,
    rps,
    sysctl,
)
from pdrgate.knobs.cpu import Governor, Smt, Turbo, idle_latency
from pdrgate.knobs.ethtool import channels, coalescing, pause_frames
from pdrgate.knobs.file_knob import mtu
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.neighbours import neighbours
from pdrgate.knobs.queues import xps
from pdrgate.testbeds.testbed_file import load_testbed
from pdrgate.values.errors import TestbedError

FULL = """\
missing: skip
net.core.netdev_budget: 600
sysctls: {net/ipv4/ip_forward: 1}
ports:
  interrupts: {in_turn: [1, 0]}
  offloads: {gro: false, lro: false}
  channels: {combined: 1}
  rings: {rx: 512, tx: 512}
  coalescing: {adaptive-rx: false, rx-usecs: 50}
  pause: {autoneg: false}
  mtu: 1400
  rss: {weight: [3, 1]}
  flow_hash: {udp4: sdfn}
  gro_flush_timeout: 20000
  napi_defer_hard_irqs: 2
  threaded_napi: false
  qdisc: pfifo limit 100
  rps: []
  xps: {in_turn: [0, 1]}
  rfs: false
neighbours: {eth0: {192.0.2.1: '02:00:00:00:00:01'}}
cpu: {governor: performance, turbo: off, max_idle_latency: 2, smt: off}
irqbalance: off
firewall: none
"""


def words(planned: tuple[PlannedKnob, ...]) -> list[str]:
    return [one.knob.describe() for one in planned if not one.keeps]


def test_a_full_section_becomes_knobs_in_the_order_that_lets_them_live() -> None:
    planned = plan_knobs(yaml.safe_load(FULL), ["eth0"])
    assert words(planned) == [
        "SMT: off",
        "turbo: off",
        "CPU frequency governor: performance",
        "idle states: those left within 2 us",
        "irqbalance: off",
        "net.core.netdev_budget = 600",
        "net.ipv4.ip_forward = 1",
        "firewall rules: none",
        "channels of eth0: combined=1",
        "rings of eth0: rx=512 tx=512",
        "/sys/class/net/eth0/mtu = 1400",
        "interrupt coalescing of eth0: adaptive-rx=off rx-usecs=50",
        "pause frames of eth0: autoneg=off",
        "offloads of eth0: gro=off lro=off",
        "RSS table of eth0: weight=3,1",
        "RSS hash of eth0: udp4=sdfn",
        "/sys/class/net/eth0/gro_flush_timeout = 20000",
        "/sys/class/net/eth0/napi_defer_hard_irqs = 2",
        "/sys/class/net/eth0/threaded = 0",
        "qdisc of eth0: pfifo limit 100",
        "RPS of eth0: no CPU",
        "XPS of eth0: CPU 0,1 in turn",
        "RFS flows of eth0: each 0",
        "interrupts of eth0: CPU 1,0 in turn",
        "static neighbours of eth0: 192.0.2.1=02:00:00:00:00:01",
    ]
    assert {one.missing for one in planned if not one.keeps} == {"skip"}
    # What goes with queues or CPUs is noted before these go, so that it comes back after them.
    assert [one.knob.describe() for one in planned[:7]] == [
        "CPU frequency governor: any", "idle states any", "RSS table of eth0: default", "RPS of eth0: as they are",
        "XPS of eth0: as they are", "RFS flows of eth0: any", "interrupts of eth0: as they are",
    ]  # fmt: skip


def test_a_ports_interrupts_are_set_where_the_port_is() -> None:
    planned = plan_knobs({"ports": {"interrupts": [0]}, "cpu": {"turbo": False}, "net.a.b": 1}, ["eth0"])
    assert [(one.knob.describe(), one.of_whole_machine, one.of_port) for one in planned] == [
        ("turbo: off", True, False),
        ("net.a.b = 1", False, False),
        ("interrupts of eth0: CPU 0 for each", False, True),
    ]


def test_what_only_keeps_is_lacking_in_silence() -> None:
    host, knobs = machine(), KnobSet()
    for one in plan_knobs({"ports": {"channels": {"rx": 1}}}, ["v0"]):
        knobs.apply(host, one.knob, one.missing)
    assert knobs.skipped == []


def test_sysctls_alone_are_a_section_too() -> None:
    planned = plan_knobs({"net.ipv4.ip_forward": 1, "vm.swappiness": 10}, ["eth0", "eth1"])
    assert planned == (
        PlannedKnob(sysctl("net.ipv4.ip_forward", 1)),
        PlannedKnob(sysctl("vm.swappiness", 10)),
    )
    assert [one.of_whole_machine for one in planned] == [False, True]
    assert plan_knobs({}, ["eth0"]) == ()


def test_every_port_gets_the_knobs_of_ports() -> None:
    planned = plan_knobs({"ports": {"rings": {"rx": 512}, "rss": "default"}, "missing": "skip"}, ["a", "b"])
    assert words(planned) == [
        "rings of a: rx=512",
        "RSS table of a: default",
        "rings of b: rx=512",
        "RSS table of b: default",
    ]
    assert all(one.of_port for one in planned)


def test_neighbours_of_a_port_that_is_not_there() -> None:
    with pytest.raises(TestbedError) as error:
        plan_knobs({"neighbours": {"eth9": {"192.0.2.1": "02:00:00:00:00:01"}}}, ["eth0", "eth1"])
    assert str(error.value) == "sut.knobs.neighbours: eth9 is no port of this SUT; write eth0 or eth1"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"sysctls": {"nope": 1}}, "sut.knobs.sysctls.nope: 'nope' is no sysctl name; write one such as"),
        ({"a.b": 1, "sysctls": {"a.b": 2}}, "sut.knobs.a.b: stands below sysctls too; keep one"),
        ({"neighbours": {"eth0": {"192.0.2.300": "02:00:00:00:00:01"}}}, "sut.knobs.neighbours.eth0: '192.0.2.300' "
         "does not appear to be an IPv4 or IPv6 address; write addresses such as"),
        ({"ports": {"rss": {"weight": [0, 0]}}}, "sut.knobs.ports.rss.weight: all weights are 0; give one queue more"),
    ],
)  # fmt: skip
def test_a_section_that_contradicts_itself(section: dict[str, Any], message: str) -> None:
    with pytest.raises(TestbedError) as error:
        plan_knobs(section, ["eth0"])
    assert str(error.value).startswith(message)


def test_equal_sections_are_equal_words_and_no_other() -> None:
    section = yaml.safe_load(FULL)
    text = knobs_text(section)
    assert text.startswith("cpu.governor=performance; cpu.max_idle_latency=2; ")
    assert "net/ipv4/ip_forward=1" in text
    assert knobs_text(dict(reversed(section.items()))) == text
    assert knobs_text(section | {"irqbalance": True}) != text
    assert knobs_text({}) == ""


# --- In a testbed file ---

FILE = "name: lab\nkind: local-netns\ngenerator: {kind: embedded}\nsut:\n  hops: 1\n  knobs:\n"


def load(folder: Path, section: str, head: str = FILE) -> Any:
    path = folder / "x.yaml"
    path.write_text(head + "".join(f"    {line}\n" for line in section.splitlines()))
    return load_testbed(path).knobs


def test_a_file_may_have_all_of_it(tmp_path: Path) -> None:
    assert load(tmp_path, FULL) == yaml.safe_load(FULL)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("missing: skip", "missing: ignore", "7: sut.knobs.missing: 'ignore' is not one of error, skip"),
        ("ports:", "prots:", "10: sut.knobs.prots: unknown key; did you mean ports?"),
        ("firewall: none", "42: x", "30: sut.knobs.42: unknown key; write sysctls by name (net.ipv4.ip_for"),
        ("firewall: none", "firewall: off", "30: sut.knobs.firewall: False is not one of none"),
        ("  rings:", "  ring:", "14: sut.knobs.ports.ring: unknown key; did you mean rings?"),
        ("rx: 512", "rxx: 512", "14: sut.knobs.ports.rings.rxx: unknown key; did you mean rx?"),
        ("rx: 512", "rx: many", "14: sut.knobs.ports.rings.rx: 'many' is not of type 'integer'; write a whole number "
         "of packets"),
        ("rx-usecs: 50", "rx-nsecs: 50", "15: sut.knobs.ports.coalescing.rx-nsecs: unknown key; write settings of "
         "ethtool -C by name, such as adaptive-rx: false and rx-usecs: 50"),
        ("adaptive-rx: false", "adaptive-rx: 3", "15: sut.knobs.ports.coalescing.adaptive-rx: 3 is not of type "
         "'boolean'; write true or false"),
        ("gro: false", "gro: 1", "12: sut.knobs.ports.offloads.gro: 1 is not of type 'boolean'; write true or false"),
        ("mtu: 1400", "mtu: 900", "17: sut.knobs.ports.mtu: 900 is less than the minimum of 1280; write a whole number "
         "of bytes from 1280 (below that IPv6 is gone) to 65535"),
        ("weight: [3, 1]", "weights: [3, 1]", "18: sut.knobs.ports.rss: {'weights': [3, 1]} does not fit; write "
         "default, equal: a number of queues, or weight: a list of one weight a queue"),
        ("weight: [3, 1]", "weight: [0]", "18: sut.knobs.ports.rss.weight: all weights are 0; give one queue more"),
        ("udp4: sdfn", "udp4: sdd", "19: sut.knobs.ports.flow_hash.udp4: 'sdd' does not fit; write letters of m, v, t, "
         "s, d, f, n, e and l, each once"),
        ("udp4: sdfn", "udp: sd", "19: sut.knobs.ports.flow_hash.udp: unknown key; write letters of ethtool -N "
         "rx-flow-hash by kind of traffic, such as udp4: sdfn"),
        ("pfifo limit 100", "pfifo limit 100p", "23: sut.knobs.ports.qdisc: 'pfifo limit 100p' does not fit; write a "
         "queueing discipline and its options in plain numbers, such as pfifo or fq limit 1000"),
        ("rps: []", "rps: [a]", "24: sut.knobs.ports.rps: ['a'] does not fit; write a list of CPU numbers for all "
         "queues ([] for none), or in_turn: such a list, one CPU a queue"),
        ("rfs: false", "rfs: true", "26: sut.knobs.ports.rfs: False was expected; write false: no flow steering"),
        ("'02:00:00:00:00:01'", "12:34:56:12:34:56", "27: sut.knobs.neighbours.eth0.192.0.2.1: "),
        ("192.0.2.1", "192.0.2.x", "27: sut.knobs.neighbours.eth0: '192.0.2.x' does not appear to be an IPv4 or IPv6 "
         "address; write addresses such as 192.0.2.1 or 2001:db8::1"),
        ("turbo: off", "turbo: none", "28: sut.knobs.cpu.turbo: 'none' is not of type 'boolean'; write true or false"),
        ("max_idle_latency: 2", "max_idle_latency: 2us", "28: sut.knobs.cpu.max_idle_latency: '2us' is not of type "
         "'integer'; write a whole number of microseconds from 0 on"),
        ("net/ipv4/ip_forward: 1", "vm.swappiness: 1", "9: sut.knobs.sysctls: vm.swappiness is a setting of the whole "
         "machine; only those of net. belong to the SUT's namespace"),
        ("net/ipv4/ip_forward: 1", "ip_forward: 1", "9: sut.knobs.sysctls.ip_forward: 'ip_forward' is no sysctl name; "
         "write one such as net.ipv4.ip_forward"),
    ],
)  # fmt: skip
def test_an_error_names_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FULL
    with pytest.raises(TestbedError) as error:
        load(tmp_path, FULL.replace(old, new, 1))
    assert str(error.value).startswith(f"{tmp_path}/x.yaml:{message}")


def test_a_guest_has_its_rings_from_its_boot(tmp_path: Path) -> None:
    head = "name: a\nkind: local-vm\ngenerator: {kind: embedded}\nsut:\n  vcpus: 1\n  knobs:\n"
    with pytest.raises(TestbedError, match=r"x.yaml:8: sut.knobs.ports.rings: a guest's rings are made when it boots"):
        load(tmp_path, "ports:\n  rings: {rx: 512}\n", head)


# --- Nothing stays ---


def machine_with_history(data: st.DataObject) -> FakeHost:
    """A machine that was not in its first state when pdrgate came."""
    host = machine(queues=data.draw(st.integers(1, 3)))
    eth0 = host.devices["eth0"]
    host.service = data.draw(st.sampled_from(["active", "inactive", None]))
    if data.draw(st.booleans()):
        host.rules = "table ip t {\n\tcounter packets 3 bytes 9\n}\n"
    if data.draw(st.booleans()):
        eth0.neighbours["192.0.2.1"] = ("02:00:00:00:00:99", "permanent")
    if data.draw(st.booleans()):
        eth0.qdisc = [{"kind": "pfifo", "handle": "8001:", "root": True, "options": {"limit": 7}}]
    assert eth0.table is not None
    cut = data.draw(st.integers(0, len(eth0.table)))
    if eth0.queues > 1 and data.draw(st.booleans()):
        eth0.table, eth0.table_is_set = [0] * cut + [1] * (len(eth0.table) - cut), True
    for path in sorted(host.files):
        if path.endswith(("rps_cpus", "xps_cpus")):
            host.files[path] = data.draw(st.sampled_from(["0", "1", "a"]))
        if path.endswith("/smp_affinity_list"):
            host.files[path] = data.draw(st.sampled_from(["0-3", "2"]))
        if path.endswith("/disable"):
            host.files[path] = data.draw(st.sampled_from(["0", "1"]))
    host.files[f"{CPU}/smt/control"] = data.draw(st.sampled_from(["on", "off", "notsupported"]))
    return host


CPUS = st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True)
SHARES = st.one_of(st.just([]), CPUS, st.fixed_dictionaries({"in_turn": CPUS}))
ON = st.booleans()


def some(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name.replace("_", "-"): value for name, value in values.items()})


SECTIONS = st.fixed_dictionaries(
    {"missing": st.just("skip")},
    optional={
        "net.core.netdev_max_backlog": st.integers(1, 9999),
        "net.nowhere": st.just(1),
        "ports": st.fixed_dictionaries(
            {},
            optional={
                "channels": some(combined=st.integers(1, 5)),
                "rings": some(rx=st.integers(1, 2000), tx=st.integers(1, 1024)),
                "coalescing": some(adaptive_rx=ON, rx_usecs=st.integers(0, 9)),
                "pause": some(autoneg=ON, rx=ON),
                "mtu": st.integers(1280, 9000),
                "offloads": some(gro=ON, tx=ON, tso=st.just(False), lro=ON, rx_gro_hw=st.just(False)),
                "rss": st.one_of(
                    st.just("default"),
                    st.fixed_dictionaries({"equal": st.integers(1, 4)}),
                    st.fixed_dictionaries({"weight": st.lists(st.integers(1, 5), min_size=1, max_size=3)}),
                ),
                "flow_hash": some(udp4=st.sampled_from(["sd", "sdfn"]), tcp6=st.just("sd")),
                "threaded_napi": ON,
                "qdisc": st.sampled_from(["pfifo", "bfifo limit 9", "noqueue", "cake"]),
                "rps": SHARES,
                "xps": SHARES,
                "rfs": st.just(False),
                "interrupts": SHARES.filter(bool),
            },
        ),
        "neighbours": st.just({"eth0": {"192.0.2.1": "02:00:00:00:00:01", "2001:db8::1": "02:00:00:00:00:02"}}),
        "cpu": st.fixed_dictionaries(
            {},
            optional={
                "governor": st.sampled_from(["performance", "ondemand"]),
                "turbo": ON,
                "max_idle_latency": st.integers(0, 200),
                "smt": ON,
            },
        ),
        "irqbalance": ON,
        "firewall": st.just("none"),
    },
)


@given(section=SECTIONS, data=st.data())
@settings(deadline=None, max_examples=60)
def test_whatever_a_file_asks_for_the_host_is_as_it_was(section: dict[str, Any], data: st.DataObject) -> None:
    host = machine_with_history(data)
    before, all_knobs = host.state(), snapshot(host, ["eth0", "v0"])
    knobs = KnobSet()
    for one in plan_knobs(section, ["eth0", "v0"]):
        if knobs.apply(host, one.knob, one.missing) and not one.keeps:
            assert one.knob.holds(one.knob.read(host), one.knob.value)
    knobs.restore()
    assert host.state() == before
    assert snapshot(host, ["eth0", "v0"]) == all_knobs


KNOBS = st.lists(
    st.one_of(
        st.builds(lambda n: rings("eth0", {"rx": n}), st.integers(1, 1100)),
        st.builds(lambda on, n: coalescing("eth0", {"adaptive-rx": on, "rx-usecs": n}), ON, st.integers(0, 9)),
        st.builds(lambda on: pause_frames("eth0", {"rx": on}), ON),
        st.builds(lambda name, on: offloads("eth0", {name: on}), st.sampled_from(["gro", "tx", "tso"]), ON),
        st.builds(lambda n: mtu("v0", n), st.integers(1280, 9000)),
        st.builds(lambda n: RootQdisc("eth0", f"pfifo limit {n}"), st.integers(1, 9)),
        st.builds(lambda cpus: rps("eth0", each(cpus)), CPUS),
        st.builds(lambda cpus: xps("eth0", in_turn(cpus)), CPUS),
        st.builds(lambda mac: neighbours("eth0", {"192.0.2.1": f"02:00:00:00:00:0{mac}"}), st.integers(0, 9)),
        st.builds(idle_latency, st.sampled_from([0, 2, 200])),
        st.sampled_from(
            [FirewallRules("none"), Governor("performance"), Turbo("off"), Turbo("on"), Smt("off"), Smt("on"),
             Irqbalance("off"), Irqbalance("on")]
        ),
    ),
    max_size=12,
)  # fmt: skip


QUEUES = st.lists(st.builds(lambda n: channels("eth0", {"combined": n}), st.integers(1, 4)), max_size=3)


@given(queues=QUEUES, knobs=KNOBS)
@settings(deadline=None, max_examples=60)
def test_any_order_of_knobs_is_undone(queues: list[Knob], knobs: list[Knob]) -> None:
    """Queues that go take their settings with them, so their number is set first."""
    host = machine()
    before = host.state()
    turned = KnobSet()
    for knob in (*queues, *knobs):
        # What cannot be had after what was set before, TSO without checksums for one, leaves nothing behind either.
        with contextlib.suppress(TestbedError):
            turned.apply(host, knob, "skip")
    turned.restore()
    assert host.state() == before


class DiesAt:
    """A journal whose process is killed in the middle of a change: with so many files written."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[dict[str, str], str, str]] = {}
        self.count = 0

    def change(self, host: str, knob: Any, old: str, new: str) -> int:
        self.count += 1
        self.open[self.count] = (dict(knob), old, new)
        return self.count

    def undone(self, number: int) -> None:
        del self.open[number]


class Killed(BaseException):
    pass


@given(section=SECTIONS, writes=st.integers(0, 60), data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_killed_run_is_undone_by_its_journal(section: dict[str, Any], writes: int, data: st.DataObject) -> None:
    host = machine_with_history(data)
    before, journal, left = host.state(), DiesAt(), [writes]
    write = host.write

    def counted(path: str, text: str) -> None:
        if not path.startswith("/run/"):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
        write(path, text)

    host.write = counted  # type: ignore[method-assign]
    with contextlib.suppress(Killed):
        for one in plan_knobs(section, ["eth0", "v0"]):
            KnobSet(journal).apply(host, one.knob, one.missing)
    host.write = write  # type: ignore[method-assign]
    for record, old, new in reversed(journal.open.values()):
        put_back(host, knob_from_record(record, new), old, new)
    assert host.state() == before


# --- What there is ---


def test_a_snapshot_has_everything_that_knobs_can_turn() -> None:
    host = machine()
    host.rules = "table ip t {\n}\n"
    also = [sysctl("net.core.of_no_use_to_others", 1)]
    host.files[also[0].path] = "5"
    found = snapshot(host, ["eth0", "v0"], also)
    assert found[also[0].path] == "5"
    assert found["ethtool eth0 rings"] == "rx=256 tx=256 tx-push=off"
    assert found["/proc/sys/net/core/netdev_max_backlog"] == "1000"
    assert found["interrupts eth0"] == "26=0-3 27/0=0-3 28/0=0-3 29/1=0-3 30/1=0-3"
    assert found["rss-hash eth0 udp4"] == "udp4=sd"
    assert found["firewall"] == "table ip t {\n}"
    assert list(found) == sorted(found)
    assert not [name for name in found if "v0 rings" in name]
    for one in plan_knobs(yaml.safe_load(FULL), ["eth0"]):
        with KnobSet() as knobs:
            before = host.state()
            knobs.apply(host, one.knob, "skip")
            if host.state() != before:
                assert snapshot(host, ["eth0", "v0"], also) != found, one.knob.describe()
        assert snapshot(host, ["eth0", "v0"], also) == found


def test_a_snapshot_of_a_host_without_tools_has_what_files_tell() -> None:
    host = machine()
    host.lacks = frozenset({"ethtool", "tc", "nft", "systemctl"})
    found = snapshot(host, ["eth0"])
    assert "governor" in found
    assert "firewall" not in found


def test_a_snapshot_of_a_host_that_does_not_answer() -> None:
    host = machine()

    def dead(*argv: str, **options: Any) -> Any:
        raise HostError("gone")

    host.run = dead  # type: ignore[method-assign]
    with pytest.raises(HostError):
        snapshot(host, ["eth0"])
