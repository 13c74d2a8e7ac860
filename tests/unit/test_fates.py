"""Packets by their fate: what is counted outside of a SUT bounds what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from flat_values import changed, flat_trial

from pdrgate.gate.run.scenario import Scenario
from pdrgate.observers.accounting import losses
from pdrgate.observers.fates import by_fate
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Trial
from pdrgate.values.errors import UsageError


def sent(forwarded: int = 1000, left: int = 0, returned: int = 0, **gained: dict[str, int]) -> Trial:
    """A trial of 1000 packets, of which the SUT took in so many, with what its counters gained by place."""
    counters: Any = {place.replace("_", "/"): gains for place, gains in gained.items()}
    before = {place: dict.fromkeys(gains, 0) for place, gains in counters.items()}
    return flat_trial(
        1000.0, 1.0, offered=1000, forwarded=forwarded, left=left, returned=returned, sending_time=1.0,
        counters_before=before, counters_after=counters,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fate", "trial", "handled", "otherwise"),
    [
        ("handled", sent(), 1000, 0),
        ("handled", sent(990, left=990, returned=990), 990, 0),
        ("dropped", sent(), 1000, 0),
        ("dropped", sent(990), 990, 0),
        ("dropped", sent(left=300), 700, 300),
        ("dropped", sent(left=300, returned=300), 700, 300),
        ("dropped", sent(left=300, ip6={"InDelivers": 50}), 650, 300),
        ("dropped", sent(ip6={"InDelivers": 5000}), 0, 0),
        ("passed", sent(), 0, 0),
        ("passed", sent(ip={"InDelivers": 900}, udp={"RcvbufErrors": 100}), 800, 0),
        ("passed", sent(600, ip6={"InDelivers": 900}), 600, 0),
        ("passed", sent(left=500, ip6={"OutForwDatagrams": 400}), 400, 0),
        ("passed", sent(left=500, ip6={"OutForwDatagrams": 2000}), 500, 0),
        ("passed", sent(left=500, returned=100, ip6={"OutForwDatagrams": 2000}), 400, 100),
        ("handled", sent(eth0={}, backlog={}), 1000, 0),
    ],
)
def test_a_suts_word_goes_no_further_than_what_it_took_in(
    fate: Fate, trial: Trial, handled: int, otherwise: int
) -> None:
    found = by_fate(trial, fate)
    assert (found.forwarded, found.aside.returned, found.aside.fate) == (handled, otherwise, fate)


@pytest.mark.parametrize("fate", ["forwarded", "returned", "delivered"])
def test_what_the_generator_has_counted_stays_as_it_is(fate: Fate) -> None:
    trial = sent(700, returned=300, ip6={"InDelivers": 50})
    assert by_fate(trial, fate) == changed(trial, fate=fate)


def test_what_rings_and_backlogs_of_a_rack_dropped_never_got_there() -> None:
    counters: Any = {"eth0": {"rx_missed": 30, "rx_dropped": 30}, "cpu1/backlog": {"dropped": 20}}
    before = {place: dict.fromkeys(gains, 0) for place, gains in counters.items()}
    trial = flat_trial(1000.0, 1.0, offered=1000, forwarded=1000, counters_before=before, counters_after=counters)
    assert by_fate(trial, "dropped").forwarded == 950


def test_a_program_that_is_to_drop_loses_nothing_by_that() -> None:
    counters: Any = {
        "eth0": {"rx_dropped": 900},
        "eth0/driver": {"rx_xdp_drops": 900},
        "cpu1/backlog": {"dropped": 100},
    }
    before = {place: dict.fromkeys(gains, 0) for place, gains in counters.items()}
    trial = flat_trial(1000.0, 1.0, offered=1000, forwarded=1000, counters_before=before, counters_after=counters)
    told = losses(by_fate(trial, "dropped"))
    assert (told.lost, told.unexplained) == (100, 0)
    assert told.sentence() == "100 packets lost: 100 in the backlog of CPU 1 (netdev_max_backlog)"


def test_a_fate_is_part_of_the_question() -> None:
    plain, dropping = Scenario(), Scenario(fate="dropped")
    assert plain.name == Scenario(fate="forwarded").name == "ipv6-routing-1cpu-4096-64B"
    assert dropping.name == "ipv6-routing-1cpu-4096-64B-dropped"
    assert "packets that are dropped count" in dropping.title
    assert (plain.counts, dropping.counts, Scenario("udp-delivery").counts) == ("forwarded", "dropped", "delivered")
    assert [Scenario(fate=fate).frames.counted for fate in ("forwarded", "returned", "passed", "handled")] == [
        "forwarded", "returned", "taken", "taken",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"fate": "eaten"}, "fate: 'eaten' is none; choose one of forwarded, returned, dropped"),
        ({"fate": "delivered"}, "packets of ipv6-routing are forwarded, and never delivered"),
        ({"data_path": "udp-delivery", "fate": "dropped"}, "packets of udp-delivery are delivered, and never dropped"),
        ({"data_path": "tcp-transfer", "fate": "dropped"}, "is a closed loop and has no fate"),
        ({"fate": "dropped", "latency": True}, "no probe comes back of packets that are dropped"),
        ({"fate": "handled", "probe_rate": 100.0}, "no probe comes back of packets that are handled"),
    ],
)
def test_what_no_packet_can_meet(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Scenario(**asked)
