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
    "beacon", "event", "byte", "byt", "kbyte", "octet", "oct", "bit", "cell",
)  # fmt: skip
"""Words of what is no packet, or of one that is not lost: interrupts, filters that matched none, time stamps, bytes."""
_FILLING = ("queue", "rxq", "txq", "pkt", "packet", "frame", "count", "cnt", "num")
"""Words that make no difference."""
_CAST = ("ucast", "mcast", "bcast", "unicast", "multicast", "broadcast", "uc", "mc", "bc")
_VIEW = (
    *_CAST, "total", "stat", "phy", "port", "pport", "mac", "wire", "nic", "dev", "device", "hw", "global", "veb",
    "switch", "vport", "vsi", "vnic", "lif", "pf", "vf", "func", "function",
    "prio", "priority", "pri", "pfc", "cos", "tc", "bg", "class",
)  # fmt: skip
"""Words of whom a statistic is counted for: all rings, the port, a function, a priority, a kind of address."""
_ALIKE = {"dropped": "drop", "discard": "drop", "discarded": "drop", "buf": "buffer", "buff": "buffer"}
"""Words of one meaning. A card may call the same packets dropped for its port, and discarded by priority."""
_WHY = ("buffer", "cong", "congestion")
"""Words that say why packets were dropped, where a name says that they were."""

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
    """Statistics by what they count: the words of their names, without those of whom it is counted for.

    A driver may count the same for the device and once more by ring (``rx_xdp_drop``, ``rx0_xdp_drop``), and a card for
    the port and by priority (``rx_discards_phy``, ``rx_prio0_discards``). Each of these views is summed, and the
    largest sum is taken. The kind is called as in the shortest of its names.
    """
    views: dict[frozenset[str], dict[frozenset[str], int]] = {}
    kinds: dict[frozenset[str], str] = {}
    for name, value in statistics.items():
        words = _words(name)
        what = tuple(word for word in words if word not in _VIEW)
        key = _meaning(what)
        kinds[key] = min(kinds.get(key, "_".join(what)), "_".join(what), key=lambda kind: (len(kind), kind))
        sums, view = views.setdefault(key, {}), _view(name, words)
        sums[view] = sums.get(view, 0) + value
    return {kinds[key]: max(views[key].values()) for key in sorted(kinds, key=lambda key: kinds[key])}


def _meaning(words: tuple[str, ...]) -> frozenset[str]:
    """What a name means, whatever its words are; one without a direction is on receipt."""
    alike = frozenset(_ALIKE.get(word, word) for word in words)
    why = frozenset(_WHY) if "drop" in alike else frozenset()
    return alike - why - {"rx"}


def _view(name: str, words: tuple[str, ...]) -> frozenset[str]:
    """Whom a statistic is counted for; one of several rings or priorities, and one kind of address, are parts."""
    whose = {"cast" if word in _CAST else _ALIKE.get(word, word) for word in words if word in (*_VIEW, *_WHY, *_ALIKE)}
    whose.discard("drop")
    if any(map(str.isdecimal, name)):
        whose.add("one of several")
    return frozenset(whose)


def _words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and the singular."""
    words = (_PLURAL.sub("", word) for word in _WORD.findall(_CAPITALS.sub("_", name).lower()))
    return tuple(word for word in words if word not in _FILLING)
