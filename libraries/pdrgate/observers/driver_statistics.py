"""Meaning of the names of a driver's statistics (``ethtool -S``): which ring they are of, and whether packets were
lost.

Each driver has names of its own, and all put them together from the same words: ``rx_queue_0_drops``, ``[0]:
rx_discards``, ``rx0_xdp_drop``, ``pkts rx out of buf``, ``RxFramesDropped``. So a name is read as words, without the
number of the ring that it may have. Tables here have the meaning of the words. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOST = (
    "drop", "dropped", "discard", "discarded", "missed", "fifo", "oob", "overflow", "overrun", "nobuf", "nobuffer",
    "nodesc", "noskb", "no buf", "no buff", "no buffer", "no desc", "no descr", "no dma", "no mbuf", "no memory",
    "no pbuf", "no skb", "no space", "out of buf", "out of buffer", "too big", "xmit err", "xmit error",
    "allowance exceeded", "xdp aborted", "xdp full", "xdp err", "xdp tx full", "xdp tx err",
)  # fmt: skip
"""Sequences of words that mean lost packets whatever stands around them."""
_FAILED = ("fail", "failed", "failure", "err", "error")
"""Words that mean lost packets beside ``alloc``: the card had no buffer for them."""
_NO_PACKETS = (
    "irq", "intr", "interrupt", "cmpl", "completion", "fdir", "atr", "timestamp", "tstamp", "hwtstamp", "cache",
    "beacon", "event",
)  # fmt: skip
"""Words of what is no packet, or of one that is not lost: interrupts, filters that matched none, time stamps."""
_FILLING = ("queue", "rxq", "txq", "total", "pkt", "packet", "frame", "count", "cnt", "num")
"""Words that make no difference: a driver sums the ``rx_discards`` of its rings as ``rx_total_discard_pkts``."""

_WORD = re.compile(r"[a-z]+")
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLURAL = re.compile(r"(?<=[a-z]{2}[a-rt-z])s$")


def counts_losses(name: str) -> bool:
    """Whether a statistic counts lost packets."""
    words = _words(name)
    if any(word in words for word in _NO_PACKETS):
        return False
    return any(f" {one} " in f" {' '.join(words)} " for one in _LOST) or (
        "alloc" in words and any(word in words for word in _FAILED)
    )


def of_the_cloud(name: str) -> bool:
    """Whether it counts packets beyond what a cloud lets an instance have, which its hypervisor drops or holds back."""
    return "allowance exceeded" in " ".join(_words(name))


def by_kind(statistics: Mapping[str, int]) -> dict[str, int]:
    """Statistics by what they count: the words of their names, without their rings.

    A driver may count the same for the device and once more by ring (``rx_xdp_drop``, ``rx0_xdp_drop``): the larger
    sum is taken.
    """
    device: dict[str, int] = {}
    rings: dict[str, int] = {}
    for name, value in statistics.items():
        kind = "_".join(_words(name))
        of = rings if any(letter.isdecimal() for letter in name) else device
        of[kind] = of.get(kind, 0) + value
    return {kind: max(device.get(kind, 0), rings.get(kind, 0)) for kind in sorted({*device, *rings})}


def _words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and the singular."""
    words = (_PLURAL.sub("", word) for word in _WORD.findall(_CAPITALS.sub("_", name).lower()))
    return tuple(word for word in words if word not in _FILLING)
