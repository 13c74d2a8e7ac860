"""The frames that chosen traffic comes to on a testbed, and the order in which they are sent, over and over."""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pdrgate.traffic.chosen.chosen_traffic import CapturedTraffic, ChosenTraffic, Flows
from pdrgate.traffic.chosen.flow_frames import flow_frames
from pdrgate.traffic.chosen.marked_capture import marked_frames
from pdrgate.traffic.chosen.surroundings import Surroundings
from pdrgate.traffic.frames import Path
from pdrgate.values.errors import UsageError

MOST_TABLED = 1 << 18
MOST_BYTES = 256 << 20
LONGEST_ORDER = 1 << 19
_DRAWS, _DRAWS_PER_FLOW = 1 << 14, 4
"""Draws of flows before the order begins again: a least number in all, and a least number for each flow."""


@dataclass(frozen=True, slots=True)
class FrameTable:
    """Frames without FCS, each with the direction that it goes."""

    frames: tuple[bytes, ...]
    directions: tuple[int, ...]
    """0: forward, 1: the other way round; of each frame."""
    order: array[int]
    """Packet ``i`` is the frame whose number is at ``i % len(order)``."""

    @property
    def room(self) -> int:
        """Bytes of the longest frame."""
        return max(map(len, self.frames))

    @property
    def usual_length(self) -> int:
        """Bytes that most packets have."""
        shares: Counter[int] = Counter()
        for number, count in Counter(self.order).items():
            shares[len(self.frames[number])] += count
        return shares.most_common(1)[0][0]

    def sent(self, number: int) -> bytes:
        """The frame that a packet is, by the packet's number; its mark is zeros."""
        return self.frames[self.order[number % len(self.order)]]


def frame_table(traffic: ChosenTraffic, paths: Sequence[Path], size: int) -> FrameTable:
    """The frames of traffic on a testbed.

    Args:
        paths: the directions of a generator, the forward one first.
        size: bytes of a frame with FCS where traffic says no other.

    Raises:
        UsageError: the testbed cannot send it, or it is too much.
        DataError: frames of a capture cannot be sent.
    """
    frames: list[bytes] = []
    directions: list[int] = []
    sequences: list[list[tuple[int, ...]]] = []
    for part in traffic.parts:
        surroundings = Surroundings.of(paths, part.origin)
        try:
            if isinstance(part, CapturedTraffic):
                groups = marked_frames(part, surroundings)
            else:
                groups = flow_frames(part, surroundings, size)
        except UsageError as error:
            raise UsageError(f"traffic {part.text!r}: {error}") from error
        numbers = []
        for group in groups:
            numbers.append(tuple(range(len(frames), len(frames) + len(group))))
            frames += group
            directions += [int(part.origin == "out")] * len(group)
        sequences.append(_sequence(part, numbers))
    if len(frames) > MOST_TABLED or sum(map(len, frames)) > MOST_BYTES:
        raise UsageError(
            f"traffic has {len(frames)} frames with {sum(map(len, frames)) >> 20} MiB; use {MOST_TABLED} and "
            f"{MOST_BYTES >> 20} MiB at most"
        )
    return FrameTable(tuple(frames), tuple(directions), _mixed(sequences, [part.weight for part in traffic.parts]))


def _sequence(part: Flows | CapturedTraffic, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Flows as they follow each other."""
    if isinstance(part, CapturedTraffic) or part.draw == "turn":
        return groups
    chance = random.Random(part.text)
    law = [1 / rank for rank in range(1, len(groups) + 1)] if part.draw == "zipf" else [1] * len(groups)
    return chance.choices(groups, cum_weights=list(accumulate(law)), k=max(_DRAWS, _DRAWS_PER_FLOW * len(groups)))


def _mixed(sequences: Sequence[Sequence[tuple[int, ...]]], weights: Sequence[int]) -> array[int]:
    """All sequences, each from its begin to its end at least once, as often as its weight says, evenly spread.

    Raises UsageError when that is too long.
    """
    shared = math.gcd(*weights)
    weights = [weight // shared for weight in weights]
    rounds = max(math.ceil(len(one) / weight) for one, weight in zip(sequences, weights, strict=True))
    longest = max(len(group) for one in sequences for group in one)
    if rounds * sum(weights) * longest > LONGEST_ORDER:
        raise UsageError(
            f"traffic takes {rounds * sum(weights) * longest} packets until it begins again; use fewer flows, or "
            f"weights that differ less ({LONGEST_ORDER} at most)"
        )
    order = array("I")
    turns, credit = [0] * len(sequences), [0] * len(sequences)
    for _ in range(rounds * sum(weights)):
        credit = [had + weight for had, weight in zip(credit, weights, strict=True)]
        which = max(range(len(credit)), key=credit.__getitem__)
        credit[which] -= sum(weights)
        order.extend(sequences[which][turns[which] % len(sequences[which])])
        turns[which] += 1
    return order
