"""What drivers call lost packets, each in its own words; and what a difference of two readings is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from flat_values import flat_trial

from pdrgate.observers import namespace_counters
from pdrgate.observers.accounting import losses, total
from pdrgate.observers.counters import (
    HostCounters,
    driver_losses,
    host_counters,
    parse_driver,
    parse_qdiscs,
    parse_softnet,
    qdisc_drops,
)  # fmt: skip
from pdrgate.observers.reading import Counter, Place, Reading, gained, nested, unwrapped
from pdrgate.observers.watching import CounterObserver
from pdrgate.record.cause import CauseKind
from pdrgate.record.trial import Trial

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"

DRIVERS = {
    "bnx2x": ("[0]: rx_ucast_packets 9, [0]: rx_discards 40, rx_total_discard_pkts 40", "[0]: rx_discards"),
    "bnxt": ("[1]: rx_skb_alloc_discard 4, [1]: missed_irqs 9", "[1]: rx_skb_alloc_discard"),
    "be2net": ("rxq0: rx_drops_no_frags 7, rxq0: rx_compl 100", "rxq0: rx_drops_no_frags"),
    "ixgbe": ("rx_missed_errors 1, fdir_miss 99, fdir_overflow 3, fdir_match 8", "rx_missed_errors"),
    "ixgbe's pages": ("alloc_rx_page_failed 2, rx_no_dma_resources 5", "alloc_rx_page_failed rx_no_dma_resources"),
    "ena": (
        "missing_intr 3, missing_tx_cmpl 3, missing_admin_interrupt 1, pps_allowance_exceeded 7, "
        "conntrack_allowance_available 5000, queue_0_rx_refil_partial 4, queue_0_rx_page_alloc_fail 3",
        "pps_allowance_exceeded queue_0_rx_page_alloc_fail",
    ),
    "hv_netvsc": (
        "tx_scattered 4, tx_no_memory 1, tx_no_space 40, tx_too_big 2, tx_busy 9, rx_comp_busy 7, rx_no_memory 3, "
        "vf_rx_dropped 5, vf_tx_dropped 1",
        "tx_no_memory tx_no_space tx_too_big rx_no_memory vf_rx_dropped vf_tx_dropped",
    ),
    "mlx5": (
        "rx_xdp_drop 9, rx0_xdp_drop 9, rx_out_of_buffer 2, rx_discards_phy 3, rx_cache_full 5, rx_buff_alloc_err 1, "
        "ptp_cq0_late_cqe 1, rx_prio0_packets 10",
        "rx_xdp_drop rx0_xdp_drop rx_out_of_buffer rx_discards_phy rx_buff_alloc_err",
    ),
    "cxgb4": ("RxFramesOK 100, RxBG0FramesDropped 4, TxErrorFrames 2", "RxBG0FramesDropped"),
    "atlantic": ("InPackets 100, InDroppedDma 4, Queue[0] AllocFails 2", "InDroppedDma Queue[0]_AllocFails"),
    "dpaa2": ("[hw] rx frames 9, [hw] rx nobuffer discards 4", "[hw]_rx_nobuffer_discards"),
    "virtio_net": ("rx0_packets 9, rx0_drops 1, rx0_kicks 4, tx0_tx_timeouts 0", "rx0_drops"),
    "igb": ("rx_no_buffer_count 1, tx_hwtstamp_skipped 4, rx_queue_0_drops 2", "rx_no_buffer_count rx_queue_0_drops"),
}


def printed(statistics: str) -> str:
    """As ethtool prints them."""
    rows = (one.strip().rpartition(" ") for one in statistics.split(","))
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, _, value in rows)


@pytest.mark.parametrize("driver", DRIVERS)
def test_lost_packets_are_told_from_all_else_in_the_words_of_every_driver(driver: str) -> None:
    statistics, wanted = DRIVERS[driver]
    names = wanted.split(" ") if ":" not in wanted else [wanted.replace(" ", "_")]
    found = {counter.name for counter in driver_losses("eth1", parse_driver(printed(statistics)))}
    assert found - {"rx_total_discard_pkts"} == set(names)


def test_names_that_each_queue_has_are_summed() -> None:
    """vmxnet3 prints the same names under a line for each queue."""
    text = "".join(f"  Rx Queue#: {queue}\n     pkts rx OOB: {queue + 3}\n     LRO pkts rx: 9\n" for queue in (0, 1))
    assert nested(driver_losses("eth1", parse_driver(text))) == {"eth1/driver": {"pkts_rx_OOB": 7}}


def test_names_that_each_queue_has_are_summed_also_where_the_kernel_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(_: object, __: str, command: bytes) -> bytes:
        kind, *_ = struct.unpack_from("=I", command)
        if kind == 0x37:
            return struct.pack("=IIQI", kind, 0, 2, 2)
        return (
            command[:8] + struct.pack("=QQ", 3, 4)
            if kind == 0x1D
            else command[:12] + b"pkts rx OOB".ljust(32, b"\0") * 2
        )

    monkeypatch.setattr(namespace_counters, "_ethtool", told)
    assert namespace_counters._driver_statistics(None, "eth1") == {"pkts rx OOB": 7}  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["-3", "²", "1.5", "0x10", "n/a", ""])
def test_what_is_no_count_is_left_out(value: str) -> None:
    assert parse_driver(f"     rx_drops: {value}\n") == {}


def trial(gains: dict[str, dict[str, int]], lost: int) -> Trial:
    before = {place: dict.fromkeys(counters, 0) for place, counters in gains.items()}
    return flat_trial(1e4, 1.0, 10_000, 10_000 - lost, counters_before=before, counters_after=gains)


def places(found: Trial) -> dict[str, int]:
    account = losses(found)
    assert account.unexplained == 0
    return {f"{place.where} ({place.hint})": place.packets for place in account.places}


@pytest.mark.parametrize(
    "driver",
    [
        {"rx_xdp_drop": 1000, "rx0_xdp_drop": 600, "rx1_xdp_drop": 400},
        {"rx_xdp_drop": 1000},
        {"rx_queue_0_xdp_drops": 600, "rx_queue_1_xdp_drops": 400},
        {"queue_0_rx_xdp_drop": 600, "queue_1_rx_xdp_aborted": 400},
    ],
)
def test_what_a_driver_counts_for_the_device_and_by_ring_is_lost_once(driver: dict[str, int]) -> None:
    assert places(trial({"eth1/driver": driver}, 1000)) == {"by the XDP program of eth1 ()": 1000}


def test_what_only_the_driver_tells_is_told_once_and_no_more_than_was_lost() -> None:
    driver = {
        "[0]:_rx_discards": 4000,
        "[1]:_rx_discards": 100,
        "rx_total_discard_pkts": 4100,
        "rx_skb_alloc_discard": 9,
    }
    found = places(trial({"eth1/driver": driver, "drops": {"CPU_BACKLOG x": 50}}, 4159))
    assert found == {
        "by the card or the driver of eth1 (rx_discard)": 4100,
        "by the card or the driver of eth1 (rx_skb_alloc_discard)": 9,
        "in the backlog (netdev_max_backlog)": 50,
    }


def test_what_the_port_has_already_is_not_told_again_by_its_driver() -> None:
    gains = {
        "eth1": {"rx_dropped": 40, "rx_missed": 40},
        "eth1/driver": {"rx_missed_errors": 40, "rx_no_dma_resources": 5},
    }
    assert places(trial(gains, 45)) == {
        "in the receive ring of eth1 (ethtool -G)": 40,
        "by the card or the driver of eth1 (rx_no_dma_resource)": 5,
    }


@pytest.mark.parametrize(
    "driver",
    [
        {"rx_discards_phy": 40, "rx_prio0_discards": 30, "rx_prio3_discards": 10, "rx_prio3_buf_discard": 10},
        {"rx_dropped": 40, "port.rx_dropped": 40, "rx_dropped.nic": 40},
        {"rx_dropped": 40, "pf_rx_dropped": 25, "vport_rx_dropped": 40, "rx0_drops": 40},
        {"rx_drop_packets": 40, "hw_rx_ucast_drop_packets": 30, "hw_rx_mcast_drop_packets": 10},
        {"[0]: rx_discards": 40, "rx_total_discard_pkts": 40, "rx_discard_packets_cos1": 40},
        {"dev_rx_discards": 40, "mac_rx_discards": 40},
    ],
)
def test_what_a_card_counts_in_several_views_is_lost_once(driver: dict[str, int]) -> None:
    """The port counts what its priorities, its functions and the device count as well."""
    gains = {"eth1/driver": driver, "drops": {"NETFILTER_DROP nft_do_chain": 60}}
    account = losses(trial(gains, 100))
    assert account.unexplained == 0
    assert {place.where: place.packets for place in account.places} == {
        "by the card or the driver of eth1": 40,
        "by a rule of netfilter": 60,
    }


@pytest.mark.parametrize(
    "name",
    [
        "rx_discard_bytes_cos0", "hw_rx_ucast_drop_bytes", "rx_drop_octs", "InDroppedOctets", "tx_dropped_kbytes",
        "[3]: rx_drop_bytes", "rx_drop_bits",
    ],
)  # fmt: skip
def test_bytes_are_no_packets(name: str) -> None:
    assert driver_losses("eth1", {name: 9}) == {}


def test_what_the_cloud_withheld_is_told_before_what_a_driver_lost() -> None:
    driver = {"rx_drops": 900, "pps_allowance_exceeded": 700, "bw_in_allowance_exceeded": 20}
    assert places(trial({"eth1/driver": driver}, 800)) == {
        "beyond the cloud's allowance, at eth1 (pps_allowance_exceeded)": 700,
        "beyond the cloud's allowance, at eth1 (bw_in_allowance_exceeded)": 20,
        "by the card or the driver of eth1 (rx_drop)": 80,
    }


def observed(before: Reading, after: Reading) -> CounterObserver:
    readings = iter((before, after))
    observer = CounterObserver(lambda: next(readings))
    observer.begin()
    return observer


@pytest.mark.parametrize(("exceeded", "disturbed"), [(0, False), (9, False), (790, True)])
def test_a_trial_beyond_the_clouds_allowance_is_the_clouds(exceeded: int, disturbed: bool) -> None:
    packets = Counter(Place("interface", "eth1"), "rx_packets")
    allowance = Counter(Place("driver", "eth1"), "pps_allowance_exceeded")
    causes = observed({packets: 0, allowance: 4}, {packets: 10_000, allowance: 4 + exceeded}).end().disturbed
    assert [cause.kind for cause in causes] == [CauseKind.ALLOWANCE] * disturbed
    assert [cause.words for cause in causes] == [
        "the cloud dropped or held back 790 packets beyond its allowance at eth1 (pps_allowance_exceeded)"
    ] * disturbed


SHORT = {
    "backlog": Counter(Place("backlog", "1"), "processed"),
    "qdisc": Counter(Place("qdisc", "eth1"), "fq_codel"),
    "conntrack": Counter(Place("conntrack"), "drop"),
}


@pytest.mark.parametrize("counter", SHORT.values(), ids=SHORT)
def test_a_counter_of_32_bits_that_begins_anew_goes_on(counter: Counter) -> None:
    seen = observed({counter: 2**32 - 296}, {counter: 1000}).end()
    assert gained(seen.before, seen.after) == {counter: 1296}
    kept = flat_trial(1.0, 1.0, 1, 1, counters_before=nested(seen.before), counters_after=nested(seen.after))
    assert kept.seen.counter_changes == {str(counter.place): {counter.name: 1296}}


def test_softnet_has_32_bits_and_wraps() -> None:
    before, after = parse_softnet("ffffffff fffffff0 00000000\n"), parse_softnet("00000004 00000010 00000000\n")
    assert nested(gained(before, unwrapped(before, after))) == {"cpu0/backlog": {"processed": 5, "dropped": 32}}


def test_the_drops_of_a_qdisc_whose_children_wrapped_first() -> None:
    root = {"kind": "mq", "handle": "1:", "dev": "eth1", "root": True, "drops": 2**32 - 5}
    child = {"kind": "fq", "handle": "0:", "dev": "eth1", "parent": "1:1", "drops": 3}
    assert nested(qdisc_drops(("eth1",), [root, child])) == {"eth1/qdisc": {"mq": 0, "fq": 3}}
    assert nested(qdisc_drops(("eth1",), [root | {"drops": 4}, child | {"drops": 2**32 - 1}])) == {
        "eth1/qdisc": {"mq": 5, "fq": 2**32 - 1}
    }


BROKEN = (
    '[{"kind":"mq","handle":"1:","dev":"eth1","root":true,"refcnt":3,"options":{},"bytes":9,"packets":9,"drops":7,'
    '"overlimits":0},{"kind":"odd","handle":"8:","dev":"eth1","parent":"1:1","options":{limit 9p burst 3},"bytes":1,'
    '"packets":2,"drops":4,"overlimits":0},{"kind":"fq","handle":"0:","dev":"eth2","root":true,"options":{},"drops":5}]'
)


def test_one_entry_of_tc_that_is_no_json_leaves_the_others() -> None:
    assert nested(qdisc_drops(("eth1", "eth2"), parse_qdiscs(BROKEN))) == {
        "eth1/qdisc": {"mq": 3, "odd": 4},
        "eth2/qdisc": {"fq": 5},
    }
    assert parse_qdiscs("qdisc fq 0: dev eth2 root\n") == []
    assert [one["kind"] for one in parse_qdiscs(BROKEN[:-40])] == ["mq", "odd"]


@pytest.mark.parametrize(("count", "where"), [("1000", "in the connection table"), ("10", "by a rule of netfilter")])
def test_a_full_table_of_connections_is_known_without_its_own_counters(count: str, where: str) -> None:
    """Kernels without CONFIG_NF_CONNTRACK_PROCFS have only the table's size and its limit."""
    files = {
        "/proc/net/dev": "eth1: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        "/proc/sys/net/netfilter/nf_conntrack_count": f"{count}\n",
        "/proc/sys/net/netfilter/nf_conntrack_max": "1000\n",
    }
    table = nested(host_counters(HostCounters(files, [], {}), ("eth1",), "sut"))["conntrack"]
    gains = {"drops": {"NETFILTER_DROP nf_hook_slow": 60, "NETFILTER_DROP nft_do_chain": 40}}
    found = trial(gains | {"conntrack": table}, 100)
    account = losses(found)
    lost: dict[str, int] = {}
    for place in account.places:
        lost[place.where] = lost.get(place.where, 0) + place.packets
    assert lost == ({where: 100} if count == "10" else {where: 60, "by a rule of netfilter": 40})
    assert account.set_back == ()


@pytest.mark.parametrize(
    "counter", [Counter(Place("cpu", "1"), "other_ticks"), Counter(Place("vcpu", "0"), "late_permille")], ids=str
)
def test_a_time_that_falls_is_no_counter_that_was_set_back(counter: Counter) -> None:
    """The ticks of others are a difference of two counters: a gate without a fault told of a card's reset."""
    seen = observed({counter: 9}, {counter: 7}).end()
    found = flat_trial(1.0, 1.0, 100, 90, counters_before=nested(seen.before), counters_after=nested(seen.after))
    account = total([found])
    assert account is not None
    assert account.set_back == ()


@pytest.mark.parametrize(
    "counter", [Counter(Place("driver", "eth1"), "rx_drops"), Counter(Place("backlog", "1"), "dropped")]
)
def test_a_counter_that_was_set_back_is_told_and_is_no_negative_number_of_packets(counter: Counter) -> None:
    seen = observed({counter: 1000}, {counter: 7}).end()
    assert gained(seen.before, seen.after) == {}
    found = flat_trial(1.0, 1.0, 100, 90, counters_before=nested(seen.before), counters_after=nested(seen.after))
    assert found.seen.counter_changes == {}
    account = total([found, found])
    assert account is not None
    assert account.set_back == (f"{counter.name} of {counter.place}",)
    assert account.fault.startswith(f"{counter.name} of {counter.place} went back during a trial, as when a card")


@pytest.mark.skipif(not CASES.is_dir(), reason="the reported cases are not here")
@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (
            "bnxt-colon",
            {"[0]:_rx_discards": 4000, "[0]:_rx_skb_alloc_discard": 20, "[1]:_rx_discards": 100,
             "rxq0:_rx_drops_no_frags": 77, "rx_total_discard_pkts": 4100},
        ),
        ("ixgbe-fdir", {"rx_missed_errors": 12, "rx_no_dma_resources": 5, "alloc_rx_page_failed": 2}),
        (
            "ena-allowance",
            {"bw_in_allowance_exceeded": 4520, "bw_out_allowance_exceeded": 611, "pps_allowance_exceeded": 790_000,
             "conntrack_allowance_exceeded": 12, "queue_0_rx_page_alloc_fail": 3},
        ),
        ("hv-netvsc", {"tx_no_space": 40, "rx_no_memory": 33, "vf_rx_dropped": 5, "vf_tx_dropped": 1}),
    ],
)  # fmt: skip
def test_what_was_reported(case: str, wanted: dict[str, int]) -> None:
    told = nested(driver_losses("eth1", parse_driver((CASES / case / "ethtool-S.txt").read_text())))["eth1/driver"]
    assert {name: value for name, value in told.items() if value} == wanted
