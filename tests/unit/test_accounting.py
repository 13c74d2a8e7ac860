"""The law of conservation: each lost packet at one place, none at two."""

import pytest
from flat_values import flat_trial

from pdrgate.observers.accounting import losses, total
from pdrgate.record.trial import Trial
from pdrgate.results.losses import LossResult, PlaceLoss, compared

BACKLOG = PlaceLoss(where="in the backlog of CPU 1", hint="netdev_max_backlog", packets=300)


def trial(gained, offered=10_000, forwarded=10_000, refused=0):
    before = {place: dict.fromkeys(counters, 5) for place, counters in gained.items()}
    after = {place: {name: 5 + gain for name, gain in counters.items()} for place, counters in gained.items()}
    return flat_trial(
        1e4, 1.0, offered, forwarded, refused=refused, counters_before=before, counters_after=after
    )  # fmt: skip


def places(found):
    return {place.where: place.packets for place in found.places}


def test_a_drop_of_the_backlog_is_one_drop_wherever_it_shows():
    """CPU, port and the sender's veth each count it, and the generator was told."""
    found = losses(
        trial(
            {
                "tg/t0": {"tx_dropped": 300},
                "hop1/in0/wire": {"skbs": 300, "frames": 0},
                "hop1/in0": {"rx_dropped": 300},
                "cpu1/backlog": {"dropped": 300},
            },
            forwarded=9700,
            refused=300,
        )
    )
    assert (found.places, found.unexplained, found.fault) == ((BACKLOG,), 0, "")
    assert found.sentence() == "300 packets lost: 300 in the backlog of CPU 1 (netdev_max_backlog)"


def test_what_receivers_got_is_no_loss_and_each_tells_what_its_own_socket_dropped():
    """RcvbufErrors and the kernel's reason count the same once more."""
    found = losses(
        trial(
            {
                "receiver0": {"received": 4000, "dropped": 700},
                "receiver1": {"received": 5000, "dropped": 0},
                "hop1/udp": {"InDatagrams": 9010, "InErrors": 705, "RcvbufErrors": 705},
                "hop1/drops": {"SOCKET_RCVBUFF __udp_enqueue_schedule_skb": 705},
                "cpu1/backlog": {"dropped": 300},
                "hop1/in0": {"rx_dropped": 300},
            },
            forwarded=9000,
            offered=10_015,
        )
    )
    assert places(found) == {
        "in full socket buffers of receiver 0": 700,
        "in the backlog of CPU 1": 300,
        "delivered to a socket of the SUT at hop1": 10,
        "in full socket buffers at hop1": 5,
    }
    assert found.unexplained == 0


def test_what_the_ring_of_a_veth_had_no_room_for_is_not_in_the_backlog():
    found = losses(
        trial(
            {
                "tg/t0": {"tx_dropped": 200},
                "hop1/in0/wire": {"frames": 200, "skbs": 0},
                "hop1/in0": {"rx_dropped": 500},  # both
                "cpu1/backlog": {"dropped": 300},
                "hop2/in0/wire": {"skbs": 40},
            },
            forwarded=9460,
        )
    )
    assert places(found) == {
        "in the backlog of CPU 1": 300,
        "in the receive ring of in0 at hop1": 200,
        "in the receive ring of in0 at hop2": 40,
    }
    assert found.unexplained == 0


def test_a_backlog_that_dropped_others_packets_has_only_ours():
    found = losses(
        trial(
            {"in0": {"rx_dropped": 90}, "cpu0/backlog": {"dropped": 100}, "cpu1/backlog": {"dropped": 200}},
            forwarded=9910,
        )
    )
    assert places(found) == {"in the backlog of CPU 0": 30, "in the backlog of CPU 1": 60}


def test_what_a_port_dropped_besides_the_backlog_and_its_ring():
    found = losses(
        trial(
            {"in0": {"rx_dropped": 100, "rx_missed": 20}, "cpu1/backlog": {"dropped": 50}, "out0": {"tx_dropped": 3}},
            forwarded=9897,
        )
    )
    assert places(found) == {
        "in the backlog of CPU 1": 50,
        "by in0 on receipt": 30,
        "in the receive ring of in0": 20,
        "on the transmit side of out0": 3,
    }


@pytest.mark.parametrize(("counted", "refused"), [(700, 700), (175, 175), (700, 0)])
def test_the_queue_of_a_tap_has_what_was_not_handed_on(counted, refused):
    """A generator that hands over live frames sees one drop of each batch, as the kernel does."""
    found = losses(
        trial(
            {"tg/t0": {"tx_packets": 9300, "tx_dropped": counted}, "tg/t1": {"rx_dropped": 9300}},
            forwarded=9300,
            refused=refused,
        )
    )
    assert (places(found), found.unexplained) == ({"in the queue of TAP t0": 700}, 0)


def test_a_generator_that_was_refused_by_nobody_we_see():
    assert places(losses(trial({"eth0": {"rx_packets": 1}}, forwarded=9993, refused=7))) == {
        "refused by the generator's own port": 7
    }


def test_programs_qdiscs_and_protocols():
    found = losses(
        trial(
            {
                "in0/driver": {"rx_queue_0_xdp_drops": 8, "rx_queue_0_drops": 2},
                "tg/t1/driver": {"rx_queue_0_xdp_drops": 10_000},  # the generator's own
                "in0/qdisc": {"clsact": 7},
                "out0/qdisc": {"fq_codel": 6},
                "ip": {"IPReversePathFilter": 5, "FragFails": 1},
                "ip6": {"InTooBigErrors": 4, "FragFails": 4, "InNoRoutes": 3, "OutForwDatagrams": 9000},
                "udp6": {"InErrors": 12, "RcvbufErrors": 11, "InCsumErrors": 1},
                "conntrack": {"drop": 2},
            },
            forwarded=10_000 - 48,
        )
    )
    assert places(found) == {
        "in full socket buffers": 11,
        "by the XDP program of in0": 8,
        "by the tc program of in0": 7,
        "in the qdisc fq_codel of out0": 6,
        "at the reverse path filter": 5,
        "too big for the next link": 5,
        "without a route": 3,
        "in the connection table": 2,
        "with errors of UDP": 1,
    }
    assert found.unexplained == 0


def test_reasons_tell_what_no_counter_has_and_nothing_twice():
    found = losses(
        trial(
            {
                "hop1/in0": {"rx_dropped": 300},
                "cpu1/backlog": {"dropped": 300},
                "hop2/ip6": {"InNoRoutes": 40},
                "hop1/drops": {"CPU_BACKLOG enqueue_to_backlog": 300, "NETFILTER_DROP nft_do_chain": 60},
                "hop2/drops": {
                    "IP_INNOROUTES ip6_pkt_drop": 40,
                    "NOT_SPECIFIED do_xdp_generic": 50,
                    "NOT_SPECIFIED seg6_local": 7,
                    "IP_NOPROTO some_function": 6,
                },
                "tg/drops": {"NOT_SPECIFIED packet_rcv": 5000},
                "drops": {"CPUMAP_FULL xdp": 80, "CPUMAP_PROGRAM xdp": 20},
            },
            forwarded=10_000 - 563,
        )
    )
    assert places(found) == {
        "in the backlog of CPU 1": 300,
        "by a rule of netfilter at hop1": 60,
        "in the queue of a cpumap": 80,
        "by the XDP program at hop2": 50,
        "by the program of a cpumap": 20,
        "without a route at hop2": 40,
        "in seg6_local at hop2": 7,
        "in some_function at hop2": 6,
    }
    assert found.unexplained == 0


ABORTED, REDIRECT = "by an XDP program that aborted", "by a failed redirect of XDP"
BACK, UNSENT = "by an XDP program that could not send back", "redirected by XDP and not sent"


@pytest.mark.parametrize(
    ("gained", "expected"),
    [
        pytest.param(
            {
                "hop1/in0/driver": {"rx_queue_0_xdp_drops": 90}, "hop1/in0": {"rx_packets": 90},
                "hop1/drops": {"XDP_ABORTED in0": 60},
            },
            {f"{ABORTED} on in0 at hop1": 60, "by the XDP program of in0 at hop1": 30},
            id="veth gives up some and drops others",
        ),
        pytest.param(
            {
                "hop1/in0": {"rx_dropped": 100}, "cpu1/backlog": {"dropped": 10},
                "hop1/drops": {"REDIRECT_FAILED in0": 90},
            },
            {f"{REDIRECT} on in0 at hop1": 90, "in the backlog of CPU 1": 10},
            id="veth and a full backlog",
        ),
        pytest.param(
            {"hop1/in0": {"rx_packets": 9}, "hop1/drops": {"REDIRECT_FAILED in0": 60, "XDP do_xdp_generic": 90}},
            {f"{REDIRECT} on in0 at hop1": 60, "by the XDP program at hop1": 30},
            id="generic",
        ),
        pytest.param(
            {
                "drops": {"CPUMAP_PROGRAM xdp": 90}, "hop1/in0": {"rx_packets": 9},
                "hop1/drops": {"CPUMAP_REDIRECT_FAILED in0": 60},
            },
            {f"{REDIRECT} on in0 at hop1": 60, "by the program of a cpumap": 30},
            id="a cpumap",
        ),
        pytest.param(
            {
                "hop1/out0": {"tx_packets": 9}, "hop1/out0/driver": {"tx_queue_0_xdp_xmit_errors": 20},
                "hop2/in0/wire": {"frames": 20},
                "hop1/drops": {"DEVMAP_UNSENT out0": 90, "DEVMAP_XDP_ABORTED out0": 30},
            },
            {
                f"{UNSENT} on out0 at hop1": 40, f"{ABORTED} on out0 at hop1": 30,
                "in the receive ring of in0 at hop2": 20,
            },
            id="a devmap",
        ),
        pytest.param(
            {"eth0": {"rx_dropped": 95}, "eth0/driver": {"rx0_xdp_drops": 90}, "drops": {"XDP_ABORTED eth0": 60}},
            {f"{ABORTED} on eth0": 60, "by the XDP program of eth0": 30, "by eth0 on receipt": 5},
            id="virtio_net counts on receipt too",
        ),
        pytest.param(
            {"eth0": {"rx_dropped": 95}, "eth0/driver": {"rx0_xdp_drops": 90}},
            {"by the XDP program of eth0": 90, "by eth0 on receipt": 5},
            id="virtio_net by intention",
        ),
        pytest.param(
            {"eth0": {"rx_dropped": 90}, "drops": {"XDP_ABORTED eth0": 90}}, {f"{ABORTED} on eth0": 90},
            id="virtio_net, whose driver is not asked",
        ),
        pytest.param(
            {"eth0": {"rx_dropped": 5}, "drops": {"XDP_ABORTED eth0": 90}},
            {f"{ABORTED} on eth0": 90, "by eth0 on receipt": 5},
            id="a driver that counts none",
        ),
        pytest.param(
            {"eth0": {"tx_dropped": 90}, "drops": {"XDP_TX eth0": 90}}, {f"{BACK} on eth0": 90},
            id="could not send back",
        ),
        pytest.param(
            {"eth1/driver": {"tx0_xdp_tx_drops": 50}, "drops": {"DEVMAP_UNSENT eth1": 70}},
            {"on the transmit side of eth1": 50, f"{UNSENT} on eth1": 20},
            id="a driver that counts what it did not send",
        ),
        pytest.param({"drops": {"XDP_ABORTED xdp": 90}}, {ABORTED: 90}, id="a port that is not told"),
        pytest.param(
            {"hop1/drops": {"XDP_ABORTED xdp": 7}, "tg/drops": {"XDP_ABORTED t0": 90}},
            {f"{ABORTED} at hop1": 7},
            id="the generator's own",
        ),
    ],
)  # fmt: skip
def test_what_xdp_tells_is_at_one_place(gained, expected):
    found = losses(trial(gained, forwarded=10_000 - sum(expected.values())))
    assert places(found) == expected
    assert found.unexplained == 0


def test_xdp_explains_no_more_than_was_lost():
    found = losses(trial({"drops": {"XDP_ABORTED xdp": 5000}}, forwarded=9910))
    assert (places(found), found.unexplained) == ({ABORTED: 90}, 0)


def test_what_was_wrong_with_an_xdp_program_is_a_sentence():
    gained = {"hop2/in0/driver": {"rx_queue_0_xdp_drops": 90}, "hop2/drops": {"XDP_ABORTED in0": 90}}
    assert losses(trial(gained, forwarded=9910)).sentence() == (
        "90 packets lost: 90 by an XDP program that aborted on in0 at hop2 (XDP_ABORTED)"
    )


def test_reasons_explain_no_more_than_was_lost():
    """A machine drops packets of others too: first come reasons that the SUT's packets have."""
    gained = {"drops": {"NOT_SPECIFIED unix_stream": 900, "QDISC_DROP __dev_queue_xmit": 70}}
    assert places(losses(trial(gained, forwarded=9920))) == {"in the qdisc": 70, "in unix_stream": 10}
    assert places(losses(trial(gained))) == {}


def test_what_is_counted_nowhere_is_a_fault():
    found = losses(trial({}, forwarded=9990))
    assert (
        found.fault == "10 lost packets (0.10% of the offered packets) are counted nowhere: a place without a counter, "
        "such as a full cpumap, or a fault of the measurement"
    )
    assert found.sentence() == "10 packets lost: 10 unexplained"
    assert losses(trial({}, forwarded=9999)).fault == ""


def test_what_is_counted_twice_is_a_fault_too():
    found = losses(trial({"ip": {"InDiscards": 50}}, forwarded=9990))
    assert found.unexplained == -40
    assert found.fault.startswith("places counted 40 packets more than were lost (0.40% of the offered packets)")


def test_several_trials_are_one_account():
    lossy = trial({"in0": {"rx_dropped": 300}, "cpu1/backlog": {"dropped": 300}}, forwarded=9700)
    uncounted = Trial(1e4, 1.0, 10_000, 9000)
    found = total([lossy, lossy, trial({"ip6": {"InNoRoutes": 12_000}}, offered=20_000, forwarded=8000), uncounted])
    assert found is not None
    assert found.sentence() == (
        "12 600 packets lost: 12 000 without a route, 600 in the backlog of CPU 1 (netdev_max_backlog)"
    )
    assert (found.offered, found.forwarded, found.unexplained) == (40_000, 27_400, 0)
    assert total([uncounted]) is None


def test_a_sentence_names_the_largest_places():
    parts = [PlaceLoss(where=f"at {letter}", packets=number) for number, letter in enumerate("abcdef", start=1)]
    assert LossResult.of(100, 79, parts).sentence() == (
        "21 packets lost: 6 at f, 5 at e, 4 at d, 3 at c, 3 at 2 further places"
    )
    assert LossResult.of(100, 100, ()).sentence() == "no packet lost"


def test_two_builds_that_lose_at_different_places():
    one = LossResult.of(1000, 700, [BACKLOG])
    other = LossResult.of(1000, 900, [PlaceLoss(where="in the qdisc fq_codel of out0", packets=100)])
    assert compared(one, other) == (
        "the baseline loses in the backlog of CPU 1, the candidate in the qdisc fq_codel of out0"
    )
    assert compared(one, one) == "both lose in the backlog of CPU 1"
    assert compared(one, LossResult.of(10, 10, ())) == compared(None, one) == ""
