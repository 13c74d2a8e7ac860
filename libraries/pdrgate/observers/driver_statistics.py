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
    "beacon", "event", "byte", "kbyte", "octet", "oct", "bit",
)  # fmt: skip
"""Words of what is no packet, or of one that is not lost: bytes, interrupts, filters that matched none, time stamps."""
_CLASSES = ("prio", "priority", "cos", "tc", "pcp", "class")
_CASTS = ("ucast", "mcast", "bcast", "unicast", "multicast", "broadcast", "uc", "mc", "bc")
_VIEWS = (
    *_CLASSES, "phy", "port", "mac", "wire", "stat", "nic", "dev", "device", "netdev", "adapter", "hw", "vport", "pf",
    "vf", "func", "function", "lif", "vsi", "veb", "ring", "ch", "rvec",
)  # fmt: skip
"""Words of where a card has counted: for the port, by priority, for the device or for a function of it."""
_EACH = "#"
"""Mark of a sum over rings, priorities or casts."""
_SAME = {"dropped": "drop", "discarded": "discard"}
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

    A driver may count the same for the device and once more by ring (``rx_xdp_drop``, ``rx0_xdp_drop``), by priority
    or for the port (``rx_prio0_discards``, ``rx_discards_phy``): the largest sum is taken, under the name that it has.
    """
    sums: dict[frozenset[str], dict[tuple[str, ...], int]] = {}
    for name, value in statistics.items():
        words = _words(name)
        what = frozenset(_SAME.get(word, word) for word in words if word not in (*_VIEWS, *_CASTS))
        summed = any(letter.isdecimal() for letter in name) or any(word in _CASTS for word in words)
        view = (*(word for word in words if word not in _CASTS), *[_EACH] * summed)
        by_view = sums.setdefault(what, {})
        by_view[view] = by_view.get(view, 0) + value
    for what in [one for one, by_view in sums.items() if all(set(view) & set(_CLASSES) for view in by_view)]:
        # A reason that only priorities have (rx_prio0_buf_discard) is part of what all of them lost.
        whole = next((other for other in sums if other < what), what)
        if whole != what:
            sums[whole] |= {view: max(packets, sums[whole].get(view, 0)) for view, packets in sums.pop(what).items()}
    found: dict[str, int] = {}
    for by_view in sums.values():
        view, packets = max(sorted(by_view.items(), key=lambda one: len(one[0])), key=lambda one: one[1])
        found["_".join(word for word in view if word != _EACH)] = packets
    return dict(sorted(found.items()))


def _words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and the singular."""
    words = (_PLURAL.sub("", word) for word in _WORD.findall(_CAPITALS.sub("_", name).lower()))
    return tuple(word for word in words if word not in _FILLING)
