"""The first look: packets that nobody forwards, or somebody else does, are found out before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from flat_values import flat_trial

from pdrgate.gate.sut.probe import PROBE_DURATION, PROBE_LOAD, probe_path
from pdrgate.observers.reading import Counter, Place, Reading
from pdrgate.record.trial import Trial
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import TestbedError

PACKETS = round(PROBE_LOAD * PROBE_DURATION)
HOPS = 3


@dataclass
class Sut:
    """Data path, testbed and generator in one: who counts how many of each trial's packets."""

    forwarded: int = PACKETS
    returned: int = 0
    by_program: int | None = HOPS * PACKETS
    in_kernel: int = 0
    by_kernel: bool = False
    name: str = "xdp-ipv6-routing"
    hops: tuple[int, ...] = (1, 2, 3)
    disposable: bool = True
    trials: list[Frames] = field(default_factory=list)

    def redirected(self) -> int | None:
        return None if self.by_program is None else 40 + len(self.trials) * self.by_program

    def sentence(self) -> str:
        return "XDP native (veth)"

    def counters(self) -> Reading:
        return {
            Counter(Place("ip6", node="hop1"), "OutForwDatagrams"): 7 + len(self.trials) * self.in_kernel,
            Counter(Place("interface", "in0").of("hop1"), "rx_packets"): 10**6 * len(self.trials),
            Counter(Place("ip", node="hop2"), "ForwDatagrams"): 5,
        }

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        self.trials.append(frames)
        return flat_trial(load, duration, offered=PACKETS, unsent=0, refused=0, forwarded=self.forwarded, stray=0,
                     returned=self.returned,
                     sending_time=duration, latency=None, started=0.0)  # fmt: skip


def look(sut: Any) -> None:
    probe_path(sut, sut, sut, Frames())


@pytest.mark.parametrize(
    "sut",
    [
        Sut(),
        Sut(by_program=None),
        Sut(by_program=HOPS * PACKETS + 7, in_kernel=3),
        Sut(forwarded=PACKETS - 20, by_program=HOPS * PACKETS - 20),
        Sut(by_kernel=True, by_program=None, in_kernel=HOPS * PACKETS),
    ],
)
def test_what_carries_its_packets_passes(sut: Sut) -> None:
    look(sut)
    assert sut.trials == [Frames()]


@pytest.mark.parametrize(
    ("sut", "message"),
    [
        (Sut(forwarded=0), "forwards none of 1000 IPv6 packets at 10000 packets/s (XDP native (veth)); "),
        (Sut(forwarded=0, by_kernel=True), "forwards none of 1000 IPv6 packets"),
        (
            Sut(in_kernel=HOPS * PACKETS),
            "the kernel's own router forwarded 3000 of 3000 IPv6 packets, which the program let pass (XDP native "
            "(veth)); if it is to let them pass: --set fate=passed",
        ),
        (Sut(in_kernel=PACKETS, by_program=None), "the kernel's own router forwarded 1000 of 3000 IPv6 packets"),
        (
            Sut(in_kernel=HOPS * PACKETS, forwarded=PACKETS - 203),
            "forwarded 3000 of 3000 IPv6 packets, which the program let pass (XDP native (veth)); if it is to let them "
            "pass: --set fate=passed, or name the path beneath it, --scenario path-ipv6-routing; ",
        ),
        (Sut(by_program=PACKETS), "its programs count 1000 packets that they sent on, and 3000 were forwarded"),
    ],
)
def test_what_does_not_is_told(sut: Sut, message: str) -> None:
    with pytest.raises(TestbedError) as error:
        look(sut)
    assert message in str(error.value)
    assert str(error.value).startswith("xdp-ipv6-routing")


class Starved(Sut):
    """A guest that gets no CPU of a busy machine while the first packets are sent."""

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        self.forwarded = PACKETS if len(self.trials) == 2 else 0
        return super().trial(load, duration, frames)


def test_a_sut_that_had_no_cpu_is_sent_packets_again() -> None:
    sut = Starved(by_program=None, by_kernel=True)
    look(sut)
    assert len(sut.trials) == 3
    dropping = Sut(forwarded=0)
    with pytest.raises(TestbedError):
        look(dropping)
    assert dropping.trials[:3] == [Frames()] * 3


def test_chosen_packets_that_nobody_carries_are_named() -> None:
    sut: Any = Sut(forwarded=0)
    frames = Frames(4, chosen=chosen_traffic(["udp dst=203.0.113.9 dport=53"]))
    with pytest.raises(
        TestbedError, match=r"none of 1000 packets like udp dst=203\.0\.113\.9 dport=53 at 10000 packets/s"
    ):
        probe_path(sut, sut, sut, frames)


def test_errors_that_quote_a_packet_are_no_packets_that_come_back() -> None:
    """ICMP's "no route" ends with the packet's own mark: once the probe said that a seventh was sent back."""
    with pytest.raises(TestbedError, match=r"^xdp-ipv6-routing forwards none of 1000 IPv6 packets"):
        look(Sut(forwarded=0, returned=147))
    look(Sut(forwarded=0, returned=PACKETS))  # what is really returned is judged with the frames
