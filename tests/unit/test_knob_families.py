"""Each family of knobs against a host that exists only here: applied, read back, put back, lacking, and lied to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_host import CPU, FakeHost, ToolError, machine

from pdrgate.knobs import (
    InterruptAffinity,
    Knob,
    KnobSet,
    RootQdisc,
    device_interrupts,
    each,
    egress_filter,
    in_turn,
    knob_from_record,
    of_whole_machine,
    offloads,
    put_back,
    rings,
    rps,
    side_routes,
    sysctl,
)
from pdrgate.knobs.cpu import Governor, Smt, Turbo, idle_latency
from pdrgate.knobs.ethtool import channels, coalescing, pause_frames
from pdrgate.knobs.file_knob import mtu
from pdrgate.knobs.firewall import FirewallRules
from pdrgate.knobs.interrupts import queues_of
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.knob import ANY
from pdrgate.knobs.knob_set import Undone
from pdrgate.knobs.neighbours import neighbours
from pdrgate.knobs.queues import QueueFiles, rfs_off, xps
from pdrgate.knobs.rss import FlowHash, IndirectionTable, flow_hash
from pdrgate.values.errors import TestbedError

MAC = "02:00:00:00:00:01"
RULES = "table inet t {\n\tchain c {\n\t\tudp dport 53 counter packets 7 bytes 99 drop\n\t}\n}\n"

EVERY_KNOB: list[tuple[Knob, str]] = [
    (rings("eth0", {"rx": 512}), "rings of eth0: rx=512"),
    (channels("eth0", {"combined": 1}), "channels of eth0: combined=1"),
    (
        coalescing("eth0", {"adaptive-rx": True, "tx-usecs": 5}),
        "interrupt coalescing of eth0: adaptive-rx=on tx-usecs=5",
    ),
    (pause_frames("eth0", {"autoneg": False, "rx": False}), "pause frames of eth0: autoneg=off rx=off"),
    (offloads("eth0", {"gro": False}), "offloads of eth0: gro=off"),
    (mtu("eth0", 1400), "/sys/class/net/eth0/mtu = 1400"),
    (IndirectionTable("eth0", "weight=3,1"), "RSS table of eth0: weight=3,1"),
    (flow_hash("eth0", {"udp4": "sdfn", "tcp4": "sd"}), "RSS hash of eth0: udp4=sdfn tcp4=sd"),
    (rps("eth0", each([0, 2, 3])), "RPS of eth0: CPU 0,2-3 for each"),
    (xps("eth0", in_turn([1, 0])), "XPS of eth0: CPU 1,0 in turn"),
    (QueueFiles("eth0", "rps_flow_cnt", "each 4096"), "RFS flows of eth0: each 4096"),
    (InterruptAffinity("eth0", in_turn([3, 1])), "interrupts of eth0: CPU 3,1 in turn"),
    (RootQdisc("eth0", "pfifo limit 77"), "qdisc of eth0: pfifo limit 77"),
    (neighbours("eth0", {"192.0.2.1": MAC, "2001:DB8::1": MAC}), "static neighbours of eth0: 192.0.2.1=02"),
    (FirewallRules("none"), "firewall rules: none"),
    (egress_filter("eth0", 57), "filter at the egress of eth0: clsact=yes filter=57"),
    (side_routes("2001:2:0:1::/64", 48), "routes beside those to 2001:2:0:1::/64: 48"),
    (side_routes("198.18.0.0/16", 3), "routes beside those to 198.18.0.0/16: 3"),
    (Governor("performance"), "CPU frequency governor: performance"),
    (idle_latency(2), "idle states: those left within 2 us"),
    (Turbo("off"), "turbo: off"),
    (Smt("off"), "SMT: off"),
    (Irqbalance("off"), "irqbalance: off"),
    (sysctl("net.ipv4.ip_forward", 1), "net.ipv4.ip_forward = 1"),
]
BY_NAME = pytest.mark.parametrize("knob", [knob for knob, _ in EVERY_KNOB], ids=[words for _, words in EVERY_KNOB])


@pytest.fixture
def host() -> FakeHost:
    host = machine()
    host.rules = RULES
    host.devices["eth0"].neighbours["192.0.2.1"] = ("02:00:00:00:00:99", "permanent")
    return host


@BY_NAME
def test_it_is_applied_read_back_and_put_back(host: FakeHost, knob: Knob) -> None:
    before = host.state()
    with KnobSet() as knobs:
        assert knobs.apply(host, knob)
        assert knob.holds(knob.read(host), knob.value)
        assert host.state() != before
    assert host.state() == before


@BY_NAME
def test_applied_twice_it_still_goes_all_the_way_back(host: FakeHost, knob: Knob) -> None:
    before = host.state()
    knobs = KnobSet()
    knobs.apply(host, knob)
    knobs.apply(host, knob)
    assert knobs.restore() == []
    assert host.state() == before


@BY_NAME
def test_a_recovery_knows_it_by_its_record(host: FakeHost, knob: Knob) -> None:
    before = host.state()
    old = knob.read(host)
    knob.apply(host)
    found = knob_from_record(knob.to_record(), knob.value)
    assert found == knob
    undone = put_back(host, found, old, knob.value)
    assert undone is not None
    assert undone.is_back
    assert undone.sentence.startswith("put back ")
    assert undone.sentence.endswith(" on fake")
    assert "\n" not in undone.sentence
    assert host.state() == before
    assert put_back(host, found, old, knob.value) is None


@pytest.mark.parametrize(("knob", "words"), EVERY_KNOB, ids=[words for _, words in EVERY_KNOB])
def test_it_says_in_words_what_it_does(knob: Knob, words: str) -> None:
    assert knob.describe().startswith(words)


@BY_NAME
def test_what_belongs_to_the_machine_is_told_from_what_is_a_namespaces(knob: Knob) -> None:
    expected = isinstance(knob, Governor | Turbo | Smt | Irqbalance | InterruptAffinity | type(idle_latency(0)))
    assert of_whole_machine(knob.to_record()) is expected


@pytest.mark.parametrize(
    ("knob", "lack"),
    [
        (rings("v0", {"rx": 512}), "v0 on fake has no rings that can be set (Operation not supported)"),
        (rings("eth0", {"rx": 2048}), "eth0 on fake takes at most rx=1024 of rings"),
        (rings("eth0", {"rx-jumbo": 1}), "eth0 on fake has no rx-jumbo among its rings"),
        (rings("x9", {"rx": 512}), "fake has no interface x9"),
        (channels("v0", {"rx": 2}), "v0 on fake takes at most rx=1 of channels"),
        (channels("v0", {"combined": 1}), "v0 on fake has no combined among its channels"),
        (coalescing("v0", {"rx-usecs": 1}), "v0 on fake has no interrupt coalescing that can be set"),
        (coalescing("eth0", {"tx-frames": 1}), "eth0 on fake has no tx-frames among its interrupt coalescing"),
        (pause_frames("v0", {"rx": True}), "v0 on fake has no pause frames that can be set"),
        (IndirectionTable("v0", "equal=1"), "v0 on fake has no RSS indirection table"),
        (IndirectionTable("eth0", "equal=3"), "eth0 on fake has 2 receive queues, too few for equal=3"),
        (flow_hash("eth0", {"sctp4": "sd"}), "eth0 on fake has no RSS hash of sctp4 (Cannot get RX network flow"),
        (xps("v0", each([0])), "v0 on fake has no xps_cpus that can be read: it has one such queue only"),
        (rps("x9", each([0])), "fake has no interface x9"),
        (rps("eth0", each([2, 7])), "fake has no CPU 7 online, only CPU 0-3"),
        (InterruptAffinity("v0", each([0])), "v0 on fake has no interrupts of its own"),
        (InterruptAffinity("eth0", in_turn([0, 9])), "fake has no CPU 9 online"),
        (RootQdisc("x9", "pfifo"), "fake has no interface x9"),
        (egress_filter("x9", 1), "fake has no interface x9"),
        (side_routes("2001:2:0:1::/64", 49), "there are at most 48 of them"),
        (neighbours("x9", {"192.0.2.1": MAC}), "fake has no interface x9"),
        (Governor("ondemand"), "fake has no frequency governor ondemand for policy0, only performance powersave"),
    ],
    ids=str,
)
def test_what_a_host_lacks_is_an_error_or_a_skip_and_changes_nothing(host: FakeHost, knob: Knob, lack: str) -> None:
    before = host.state()
    knobs = KnobSet()
    with pytest.raises(TestbedError) as error:
        knobs.apply(host, knob)
    assert f"cannot set {knob.describe()}: {lack}" in str(error.value)
    assert str(error.value).endswith("; take it out or let missing knobs be skipped")
    assert not knobs.apply(host, knob, missing="skip")
    assert knobs.skipped[0].startswith(f"skipped {knob.describe()}: {lack}")
    assert host.state() == before


@pytest.mark.parametrize("knob", [Governor("performance"), Turbo("off"), idle_latency(0)], ids=str)
def test_a_virtual_machine_lacks_what_its_hypervisor_keeps(knob: Knob) -> None:
    bare = FakeHost({f"{CPU}/online": "0-1"})
    knobs = KnobSet()
    assert not knobs.apply(bare, knob, missing="skip")
    assert knobs.skipped


def test_a_device_that_tells_only_when_it_is_set_lacks_it_as_well(host: FakeHost) -> None:
    before = host.state()
    knobs = KnobSet()
    with pytest.raises(TestbedError, match=r"Specified qdisc kind is unknown"):
        knobs.apply(host, RootQdisc("eth0", "cake"))
    assert not knobs.apply(host, RootQdisc("eth0", "cake"), missing="skip")
    assert knobs.skipped == [
        "skipped qdisc of eth0: cake: `tc qdisc replace dev eth0 root cake` on fake failed with exit code 1: Error: "
        "Specified qdisc kind is unknown."
    ]
    assert host.state() == before


@pytest.mark.parametrize(
    ("program", "knob"),
    [
        ("ethtool", rings("eth0", {"rx": 512})),
        ("ethtool", IndirectionTable("eth0", "equal=1")),
        ("ethtool", flow_hash("eth0", {"udp4": "sd"})),
        ("tc", RootQdisc("eth0", "pfifo")),
        ("nft", FirewallRules("none")),
        ("ip", neighbours("eth0", {"192.0.2.1": MAC})),
    ],
    ids=str,
)
def test_a_missing_tool_is_no_lack_of_the_device(host: FakeHost, program: str, knob: Knob) -> None:
    host.lacks = frozenset({program})
    with pytest.raises(TestbedError, match=r"exit code 127: .*not found; is it installed there\?"):
        KnobSet().apply(host, knob, missing="skip")


# --- Knobs that do not stick ---


def test_a_ring_that_the_driver_rounds(host: FakeHost) -> None:
    host.devices["eth0"].rounds = lambda name, value: 1 << (value - 1).bit_length()
    with pytest.raises(TestbedError) as error:
        KnobSet().apply(host, rings("eth0", {"rx": 500, "tx": 512}))
    assert str(error.value) == (
        "set rx of the rings of eth0 on fake to 500, but it reads back 512; does the driver round or bound it?"
    )
    assert host.devices["eth0"].rings == {"rx": 256, "tx": 256}


@pytest.mark.parametrize(
    ("knob", "path", "message"),
    [
        (Governor("performance"), f"{CPU}/cpufreq/policy2/scaling_governor", "wrote performance to {} on fake, but it "
         "reads back powersave; does the kernel or the driver bound the governor, or does a service set it?"),
        (InterruptAffinity("eth0", each([1])), "/proc/irq/29/smp_affinity_list", "wrote 1 to {} on fake, but it reads "
         "back 0-3; does the kernel or the driver bound the affinity of eth0, or does a service set it?"),
        (rps("eth0", each([0, 1])), "/sys/class/net/eth0/queues/rx-1/rps_cpus", "wrote 3 to {} on fake, but it reads "
         "back none; does"),
        (idle_latency(0), f"{CPU}/cpu1/cpuidle/state2/disable", "wrote 1 to {} on fake, but it reads back 0"),
        (Turbo("off"), f"{CPU}/intel_pstate/no_turbo", "switched turbo off on fake, but {} says on; does its BIOS"),
        (Smt("off"), f"{CPU}/smt/control", "switched SMT off on fake, but it reads back on; does its BIOS forbid?"),
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_takes_a_value_and_keeps_its_own(host: FakeHost, knob: Knob, path: str, message: str) -> None:
    before = {name: text for name, text in host.files.items() if name != path}
    host.shows[path] = host.files[path]
    with pytest.raises(TestbedError) as error:
        KnobSet().apply(host, knob)
    assert str(error.value).startswith(message.format(path))
    # The other files of the set had taken it.
    assert {name: text for name, text in host.files.items() if name != path} == before


def _shown(host: FakeHost, monkeypatch: pytest.MonkeyPatch, option: str, more: str) -> None:
    """Let ethtool print more at the end of what an option shows."""
    real = host._ethtool

    def shown(*words: str) -> str:
        return real(*words).rstrip("\n") + more if words[0] == option else real(*words)

    monkeypatch.setattr(host, "_ethtool", shown)


def test_fields_of_newer_kernels_are_read_and_put_back(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    _shown(host, monkeypatch, "-n", "\nGTP TEID\nIPv6 Flow Label\n\n")
    host.devices["eth0"].hashes["udp6"] = "sd"
    knob = FlowHash("eth0", "udp6=sdfn")
    assert knob.read(host) == "udp6=sdel"
    assert not knob.holds("udp6=sdfnl", "udp6=sdfn")


def test_a_field_that_nobody_knows_is_refused_before_anything_is_set(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shown(host, monkeypatch, "-n", "\nMPLS label\n\n")
    before = host.state()
    with pytest.raises(TestbedError, match=r"^eth0 on fake hashes 'MPLS label' of udp4, which could not be put back; "):
        KnobSet().apply(host, FlowHash("eth0", "udp4=sdfn"))
    assert host.state() == before


@pytest.mark.parametrize(
    ("fields", "taken"), [("s", False), ("sdf", False), ("sdfnv", False), ("sd", True), ("nf", True), ("sdfn", True)]
)
def test_a_symmetric_hash_takes_pairs_of_fields_alone(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, fields: str, taken: bool
) -> None:
    words = "\nRSS input transformation:\n    symmetric-xor: {}\n    symmetric-or-xor: {}\n"
    _shown(host, monkeypatch, "-x", words.format("off", "on"))
    lack = FlowHash("eth0", f"udp4={fields}").lacking(host)
    refusal = f"eth0 on fake hashes with symmetric-or-xor and so takes no udp4={fields}, but sd, fn or sdfn; "
    remedy = "switch that off with ethtool -X eth0 xfrm none"
    assert lack == (None if taken else refusal + remedy)
    monkeypatch.undo()
    _shown(host, monkeypatch, "-x", words.format("off", "off"))
    assert FlowHash("eth0", f"udp4={fields}").lacking(host) is None


@pytest.mark.parametrize(
    ("knob", "option", "message"),
    [
        (pause_frames("eth0", {"tx": True}), "-A",
         "set tx of the pause frames of eth0 on fake to on, but it reads back off"),
        (IndirectionTable("eth0", "equal=1"), "-X",
         "set the RSS table of eth0 on fake to equal=1, but it reads back equal=2 rings=2 entries=16"),
        (FlowHash("eth0", "udp4=sdfn"), "-N",
         "set the RSS hash of eth0 on fake to udp4=sdfn, but it reads back udp4=sd"),
    ],
    ids=str,
)  # fmt: skip
def test_a_driver_that_says_yes_and_does_nothing(
    host: FakeHost, knob: Knob, option: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = host._ethtool
    monkeypatch.setattr(host, "_ethtool", lambda *words: "" if words[0] == option else real(*words))
    before = host.state()
    with pytest.raises(TestbedError) as error:
        KnobSet().apply(host, knob)
    assert str(error.value).startswith(message)
    assert host.state() == before


@pytest.mark.parametrize(
    ("knob", "option"),
    [
        (channels("eth0", {"combined": 1}), "-L"),
        (rings("eth0", {"rx": 512}), "-G"),
        (coalescing("eth0", {"rx-usecs": 50}), "-C"),
        (pause_frames("eth0", {"tx": True}), "-A"),
        (offloads("eth0", {"gro": False}), "-K"),
        (IndirectionTable("eth0", "equal=1"), "-X"),
        (FlowHash("eth0", "udp4=sdfn udp6=sdfn"), "-N"),
    ],
    ids=str,
)
def test_a_driver_that_refuses_in_words_what_it_does(
    host: FakeHost, knob: Knob, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ENA 2.16 does with channels: what reads back decides."""
    real = host._ethtool

    def refuse(*words: str) -> str:
        told = real(*words)
        if words[0] == option:
            raise ToolError("netlink error: Invalid argument")
        return told

    before = host.state()
    knobs = KnobSet()
    monkeypatch.setattr(host, "_ethtool", refuse)
    assert knobs.apply(host, knob)
    assert knob.holds(knob.read(host), knob.value)
    assert knobs.restore() == []
    assert host.state() == before


def test_a_driver_that_refuses_and_does_nothing_is_told_in_its_own_words(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = host._ethtool

    def refuse(*words: str) -> str:
        if words[0] == "-L":
            raise ToolError("netlink error: Invalid argument")
        return real(*words)

    before = host.state()
    monkeypatch.setattr(host, "_ethtool", refuse)
    with pytest.raises(TestbedError) as error:
        KnobSet().apply(host, channels("eth0", {"combined": 1}))
    assert str(error.value) == (
        "`ethtool -L eth0 combined 1` on fake failed with exit code 1: netlink error: Invalid argument"
    )
    assert host.state() == before


# --- What is special about a family ---


def test_a_filter_hangs_on_what_is_there_and_takes_away_no_more_than_itself(host: FakeHost) -> None:
    host.devices["eth0"].clsact = True
    with KnobSet() as knobs:
        knobs.apply(host, egress_filter("eth0", 8))
        knobs.apply(host, egress_filter("eth0", 300))
        assert host.devices["eth0"].egress_filter == 300
    assert (host.devices["eth0"].clsact, host.devices["eth0"].egress_filter) == (True, None)


def test_routes_beside_a_network_are_for_other_addresses_or_other_services(host: FakeHost) -> None:
    knobs = KnobSet()
    for network, count in (("2001:2:0:1::/64", 2), ("198.18.0.0/16", 2), ("2001:2:0:1::/64", 1)):
        knobs.apply(host, side_routes(network, count))
    assert host.routes == {
        "2001:2:0:1::/64": ["2001:2:0:1:8000::/65"],
        "198.18.0.0/16": ["198.18.0.0/16 tos 0x04", "198.18.0.0/16 tos 0x08"],
    }


def test_interrupts_are_those_of_the_device_and_shared_out_by_queue(host: FakeHost) -> None:
    host.files["/proc/irq/99/smp_affinity_list"] = "0-3"
    host.files["/proc/interrupts"] += "\n 99:  0  0  PCI-MSI 1-edge      eth0-looks-like-it.0"
    assert device_interrupts(host, "eth0") == {
        26: "virtio1-config", 27: "virtio1-input.0", 28: "virtio1-output.0", 29: "virtio1-input.1",
        30: "virtio1-output.1",
    }  # fmt: skip
    KnobSet().apply(host, InterruptAffinity("eth0", in_turn([3, 1])))
    now = {number: host.files[f"/proc/irq/{number}/smp_affinity_list"] for number in (1, 24, 26, 27, 28, 29, 30, 99)}
    assert now == {1: "0-3", 24: "0-3", 26: "1,3", 27: "3", 28: "3", 29: "1", 30: "1", 99: "0-3"}


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("virtio2-input.1", 1), ("virtio2-config", None), ("i40e-ens1f0-TxRx-12", 12),
        ("mlx5_comp3@pci:0000:3b:00.0", 3), ("eth0-rx-2", 2), ("ens5-Tx-Rx-7", 7), ("ice-0000:01:00.0:misc", None),
        ("ena-mgmnt@pci:0000:00:05.0", None), ("mana_hwc@pci:7870:00:00.0", None), ("mana_q2@pci:7870:00:00.0", 2),
        ("mlx5_async0@pci:0000:3b:00.0", None), ("hclge-misc-0000:7d:00.0", None), ("hns3-0000:7d:00.0-TxRx-1", 1),
        ("i40e-0000:01:00.0:fdir-TxRx-0", None), ("ens1f0", None), ("ens1f0-event-2", None), ("idpf-Mailbox-0", None),
        ("ens1f0:tx-3", 3), ("4)", 4), ("ens1f0-rxtx-1", 1),
    ],
)  # fmt: skip
def test_the_queue_of_an_interrupt(name: str, queue: int | None) -> None:
    assert queues_of({30: name, 31: "virtio2-config"}, "ens1f0")[30] == queue


def test_of_gve_half_of_the_blocks_send_and_half_receive() -> None:
    names = {30 + block: f"gve-ntfy-blk{block}@pci:0000:00:04.0" for block in range(4)}
    assert queues_of(names | {34: "gve-mgmnt@pci:0000:00:04.0"}, "ens4") == {30: 0, 31: 1, 32: 0, 33: 1, 34: None}


def test_the_only_interrupt_of_a_device_is_its_queue_s() -> None:
    assert queues_of({11: "eth0"}, "eth0") == {11: 0}


def test_a_device_with_one_line_interrupt(host: FakeHost) -> None:
    for path in [path for path in host.files if "msi_irqs" in path]:
        del host.files[path]
    host.files["/proc/interrupts"] += "\n 11:  0  0  IO-APIC 11-fasteoi   eth0"
    host.files["/proc/irq/11/smp_affinity_list"] = "0-3"
    KnobSet().apply(host, InterruptAffinity("eth0", each([2])))
    assert host.files["/proc/irq/11/smp_affinity_list"] == "2"


def test_queues_get_their_cpus_in_turn_or_all(host: FakeHost) -> None:
    knobs = KnobSet()
    knobs.apply(host, xps("eth0", in_turn([1, 0])))
    knobs.apply(host, rps("eth0", each([0, 3])))
    knobs.apply(host, rfs_off("eth0"))
    shown = {path.partition("queues/")[2]: text for path, text in host.files.items() if "/eth0/queues/" in path}
    assert shown == {
        "rx-0/rps_cpus": "9", "rx-1/rps_cpus": "9", "rx-0/rps_flow_cnt": "0", "rx-1/rps_flow_cnt": "0",
        "tx-0/xps_cpus": "2", "tx-1/xps_cpus": "1",
    }  # fmt: skip


def test_what_a_kill_left_half_done_goes_back(host: FakeHost) -> None:
    before = host.state()
    knob = rps("eth0", each([1]))
    old = knob.read(host)
    host.files["/sys/class/net/eth0/queues/rx-0/rps_cpus"] = "2"
    undone = put_back(host, knob, old, knob.value)
    assert undone == Undone(True, "put back RPS of eth0: rx-0=none rx-1=none on fake")
    assert host.state() == before


def test_what_somebody_else_has_set_in_one_queue_is_left_and_told(host: FakeHost) -> None:
    knobs = KnobSet()
    knobs.apply(host, rps("eth0", each([1])))
    host.files["/sys/class/net/eth0/queues/rx-0/rps_cpus"] = "8"
    (sentence,) = knobs.restore()
    assert sentence == (
        "left alone RPS of eth0: rx-0=3 rx-1=1 on fake: pdrgate had set each 1 in place of rx-0=none rx-1=none, and "
        "somebody else has changed it since"
    )
    assert host.files["/sys/class/net/eth0/queues/rx-0/rps_cpus"] == "8"


def test_queues_that_went_come_back_with_their_settings(host: FakeHost) -> None:
    device = host.devices["eth0"]
    host.files["/sys/class/net/eth0/queues/rx-1/rps_cpus"] = "4"
    device.table, device.table_is_set = [0] * 12 + [1] * 4, True
    before = host.state()
    with pytest.raises(TestbedError, match="Invalid argument"):
        KnobSet().apply(host, channels("eth0", {"combined": 1}))
    with KnobSet() as knobs:
        for knob in (IndirectionTable("eth0", "default"), rps("eth0", ANY), channels("eth0", {"combined": 1})):
            knobs.apply(host, knob)
        assert device.table == [0] * 16
    assert host.state() == before


def test_a_knob_that_keeps_changes_nothing_and_says_nothing_when_nothing_was_spoilt(host: FakeHost) -> None:
    before = host.state()
    knobs = KnobSet()
    for knob in (
        rps("eth0", ANY), xps("eth0", ANY), InterruptAffinity("eth0", ANY), Governor(ANY),
        knob_from_record({"kind": "idle-latency"}, ANY),
    ):  # fmt: skip
        assert knobs.apply(host, knob)
    assert host.state() == before
    assert knobs.restore() == []


@pytest.mark.parametrize(
    ("weights", "entries"),
    [("3,1", [0] * 12 + [1] * 4), ("1,1", [0] * 8 + [1] * 8), ("0,1", [1] * 16), ("1,0", [0] * 16), ("5,2", None)],
)
def test_an_rss_table_by_weights(host: FakeHost, weights: str, entries: list[int] | None) -> None:
    before = host.state()
    with KnobSet() as knobs:
        knobs.apply(host, IndirectionTable("eth0", f"weight={weights}"))
        assert entries is None or host.devices["eth0"].table == entries
    assert host.state() == before


def test_an_rss_table_with_weights_comes_back(host: FakeHost) -> None:
    host.devices["eth0"].table = [0] * 11 + [1] * 5
    before = host.state()
    with KnobSet() as knobs:
        knobs.apply(host, IndirectionTable("eth0", "default"))
        assert host.devices["eth0"].table == [0, 1] * 8
    assert host.state() == before


def test_an_rss_table_that_ethtool_could_not_make_again_is_not_touched(host: FakeHost) -> None:
    host.devices["eth0"].table = [0, 1, 1, 0] * 4
    for missing in ("error", "skip"):
        with pytest.raises(TestbedError, match=r"was made entry by entry, and ethtool could not put it back"):
            KnobSet().apply(host, IndirectionTable("eth0", "default"), missing)  # type: ignore[arg-type]
    assert host.devices["eth0"].table == [0, 1, 1, 0] * 4


def test_coalescing_that_the_driver_adapts_needs_not_read_back(host: FakeHost) -> None:
    device = host.devices["eth0"]
    assert device.coalescing is not None
    device.coalescing["adaptive-rx"] = "on"
    knobs = KnobSet()
    knobs.apply(host, coalescing("eth0", {"adaptive-rx": False, "rx-usecs": 50}))
    assert device.coalescing["rx-usecs"] == "50"

    def adapting(name: str, *words: str, real: Callable[..., str] = host._ethtool) -> str:
        told = real(name, *words)
        assert device.coalescing is not None
        if device.coalescing["adaptive-rx"] == "on":
            device.coalescing["rx-usecs"] = "17"
        return told

    host._ethtool = adapting  # type: ignore[method-assign]
    assert knobs.restore() == []
    assert device.coalescing["adaptive-rx"] == "on"


def test_names_that_ethtool_shows_otherwise_than_it_takes_them(host: FakeHost) -> None:
    KnobSet().apply(host, coalescing("eth0", {"rx-frames-low": 3}))
    assert ("ethtool", "-C", "eth0", "rx-frames-low", "3") in host.asked


def test_only_what_differs_is_asked_of_a_driver(host: FakeHost) -> None:
    KnobSet().apply(host, rings("eth0", {"rx": 256, "tx": 512}))
    assert [words[1:] for words in host.asked if words[:2] == ("ethtool", "-G")] == [("-G", "eth0", "tx", "512")]
    host.asked.clear()
    KnobSet().apply(host, rings("eth0", {"rx": 256}))
    assert not [words for words in host.asked if words[:2] == ("ethtool", "-G")]


def test_a_default_qdisc_comes_back_by_deleting_ours(host: FakeHost) -> None:
    knobs = KnobSet()
    knobs.apply(host, RootQdisc("eth0", "pfifo limit 5"))
    knobs.apply(host, RootQdisc("eth0", "bfifo limit 9000"))
    assert knobs.restore() == []
    assert host.devices["eth0"].qdisc == []


def test_a_qdisc_that_somebody_has_set_up_is_not_replaced(host: FakeHost) -> None:
    tree = [{"kind": "htb", "handle": "1:", "root": True, "options": {"r2q": 10}}]
    host.devices["eth0"].qdisc = tree
    with pytest.raises(TestbedError, match=r"the qdisc htb 1: of eth0 on fake was set up by somebody and could not be"):
        KnobSet().apply(host, RootQdisc("eth0", "pfifo"), missing="skip")
    assert host.devices["eth0"].qdisc == tree
    host.devices["eth0"].qdisc = [
        {"kind": "mq", "handle": "1:", "root": True, "options": {}},
        {"kind": "fq", "handle": "10:", "parent": "1:1", "options": {}},
    ]
    with pytest.raises(TestbedError, match=r"mq 1: of eth0 on fake was set up by somebody"):
        KnobSet().apply(host, RootQdisc("eth0", "pfifo"))


def test_incoming_qdiscs_do_not_count(host: FakeHost) -> None:
    ingress = {"kind": "clsact", "handle": "ffff:", "parent": "ffff:fff1", "options": {}}
    root = {"kind": "pfifo", "handle": "8001:", "root": True, "options": {"limit": 5}}
    host.devices["eth0"].qdisc = [ingress, root]
    assert RootQdisc("eth0", "pfifo").read(host) == "pfifo limit 5"


def test_rules_come_back_whatever_they_have_counted(host: FakeHost) -> None:
    with KnobSet() as knobs:
        knobs.apply(host, FirewallRules("none"))
        assert host.rules == ""
    assert host.rules == RULES
    knob = FirewallRules("none")
    assert knob.holds(RULES.replace("7 bytes 99", "8 bytes 199"), RULES)
    assert not knob.holds(RULES.replace("53", "54"), RULES)
    assert not [path for path in host.files if "pdrgate-rules" in path]


MOVING = """table inet t {
	set seen {
		type ipv4_addr
		size 65535
		flags dynamic,timeout
		timeout 1m%s
	}

	quota daily {
		over 25 mbytes%s
	}

	chain c {
		udp dport 53 last used %s accept
		udp dport 54 quota over 500 mbytes%s drop comment "used 5 bytes"
	}
}
"""


def test_rules_are_as_they_were_whatever_packets_did_to_their_state() -> None:
    knob = FirewallRules("none")
    early = MOVING % ("", "", "never", "")
    elements = "\n\t\telements = { 10.0.0.1 expires 59s992ms,\n\t\t\t     10.0.0.2 expires 3s }"
    late = MOVING % (elements, " used 29 bytes", "1h2m3s4ms", " used 4 kbytes")
    assert knob.holds(late, early)
    assert not knob.holds(late.replace("over 500 mbytes", "over 400 mbytes"), early)
    assert not knob.holds(late.replace('"used 5 bytes"', '"used 6 bytes"'), early)
    assert not knob.holds(late.replace("flags dynamic,timeout", "flags timeout"), early)


def test_the_elements_of_a_set_that_nobody_adds_to_by_packets_are_rules() -> None:
    rules = "table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 }\n\t}\n}"
    assert not FirewallRules("none").holds(rules.replace("0.1", "0.2"), rules)


def test_elements_that_stand_in_other_lines_are_the_same_rules() -> None:
    rules = (
        "table ip t {\n\tset s {\n\t\telements = { 10.0.0.1 counter packets 1 bytes 2,\n\t\t\t     10.0.0.2 }\n\t}\n}"
    )
    again = "table ip t {\n\tset s {\n\t\telements = { 10.0.0.1 counter packets 3 bytes 4, 10.0.0.2 }\n\t}\n}"
    assert FirewallRules("none").holds(again, rules)
    assert not FirewallRules("none").holds(again.replace("0.2", "0.3"), rules)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "unloadable",
            r"has nftables rules that nft itself would not take again \(.*syntax error.*\); save",
        ),
        (
            "table inet firewalld { # progname firewalld\n\tflags owner,persist\n\n}",
            r"own program may change \(flags owner: "
            r"inet firewalld\); stop it",
        ),
        ('table ip filter {\n chain c {\n xt match "comment" drop\n}\n}', r"has rules made by iptables-nft, which nft"),
    ],
)
def test_rules_that_could_not_be_put_back_are_not_removed(host: FakeHost, rules: str, message: str) -> None:
    host.rules = rules
    with pytest.raises(TestbedError, match=message):
        KnobSet().apply(host, FirewallRules("none"), missing="skip")
    assert host.rules == rules


def test_rules_that_nft_does_not_see(host: FakeHost) -> None:
    host.files["/proc/net/ip_tables_names"] = "filter\nnat"
    with pytest.raises(TestbedError, match=r"has tables of iptables-legacy \(filter, nat\), which nft neither shows"):
        KnobSet().apply(host, FirewallRules("none"))


def test_a_learned_neighbour_is_replaced_and_forgotten(host: FakeHost) -> None:
    known = host.devices["eth0"].neighbours
    known["192.0.2.7"] = ("02:00:00:00:00:77", "reachable")
    knobs = KnobSet()
    knobs.apply(host, neighbours("eth0", {"192.0.2.7": MAC.upper()}))
    assert known["192.0.2.7"] == (MAC, "permanent")
    knobs.restore()
    assert "192.0.2.7" not in known
    assert known["192.0.2.1"] == ("02:00:00:00:00:99", "permanent")


@pytest.mark.parametrize("turbo", [f"{CPU}/intel_pstate/no_turbo", f"{CPU}/cpufreq/boost"])
def test_turbo_by_either_switch(host: FakeHost, turbo: str) -> None:
    del host.files[f"{CPU}/intel_pstate/no_turbo"]
    on, off = ("0", "1") if "no_turbo" in turbo else ("1", "0")
    host.files[turbo] = on
    with KnobSet() as knobs:
        knobs.apply(host, Turbo("off"))
        assert host.files[turbo] == off
        assert Turbo("on").read(host) == "off"
    assert host.files[turbo] == on


def test_idle_states_by_the_time_it_takes_to_leave_them(host: FakeHost) -> None:
    host.files[f"{CPU}/cpu1/cpuidle/state2/disable"] = "1"
    before = host.state()
    with KnobSet() as knobs:
        knobs.apply(host, idle_latency(2))
        disabled = {
            p.removeprefix(f"{CPU}/") for p, text in host.files.items() if p.endswith("/disable") and text == "1"
        }
        assert disabled == {"cpu0/cpuidle/state2/disable", "cpu1/cpuidle/state2/disable"}
    assert host.state() == before


@pytest.mark.parametrize(
    ("control", "wanted", "message"),
    [
        ("notsupported", "on", "SMT of fake is notsupported and cannot be switched on"),
        ("forceoff", "on", "SMT of fake is forceoff and cannot be switched on"),
        ("notsupported", "off", None),
        ("notimplemented", "off", None),
        ("forceoff", "off", None),
    ],
)
def test_a_machine_without_smt_has_it_off(host: FakeHost, control: str, wanted: str, message: str | None) -> None:
    host.files[f"{CPU}/smt/control"] = control
    knobs = KnobSet()
    if message is None:
        assert knobs.apply(host, Smt(wanted))
        assert knobs.restore() == []
    else:
        with pytest.raises(TestbedError, match=message):
            knobs.apply(host, Smt(wanted))
    assert host.files[f"{CPU}/smt/control"] == control


@pytest.mark.parametrize(
    ("service", "processes"),
    [("active", {}), ("inactive", {7: "/usr/sbin/irqbalance --foreground"}), (None, {7: "irqbalance -p '4 5'"})],
)
def test_irqbalance_is_stopped_and_what_ran_is_started_again(
    host: FakeHost, service: str | None, processes: dict[int, str]
) -> None:
    host.service, host.processes = service, processes.copy()
    before = host.state()
    with KnobSet() as knobs:
        knobs.apply(host, Irqbalance("off"))
        assert host.service != "active"
        assert not host.processes
    assert host.state() == before


def test_irqbalance_that_never_ran_is_off_already_and_cannot_be_switched_on(host: FakeHost) -> None:
    host.service = None
    knobs = KnobSet()
    assert knobs.apply(host, Irqbalance("off"))
    assert knobs.restore() == []
    with pytest.raises(TestbedError, match=r"fake has no service irqbalance to start"):
        knobs.apply(host, Irqbalance("on"))


def test_irqbalance_may_be_wanted(host: FakeHost) -> None:
    host.service = "inactive"
    with KnobSet() as knobs:
        knobs.apply(host, Irqbalance("on"))
        assert host.service == "active"
    assert host.service == "inactive"
