"""Names of a network device's interrupts, as drivers make them: which queue each interrupt serves.

A queue's interrupt ends with its number: ``virtio2-input.1``, ``mlx5_comp3@pci:0000:3b:00.0``. Other numbers in a name
are the card's bus address, the device's name, or count what is no queue, such as a mailbox. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ADDRESS = re.compile(r"@.*$|(?:\b[0-9a-f]{4,8}:)?\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]{1,2}\b")
_NO_QUEUE = re.compile(
    r"(?<![a-z])(?:misc|mg(?:m)?nt|mgmt|async|control|ctrl|config|hwc|mbx|mailbox|mbox|events?|admin|adminq|aq|aeq|cmdq?"
    r"|fdir|fd|lsc|link|err|errors?|exn|sp|slowpath|ptp|timestamp|tstamp|other|wol|alarm|fw|firmware|reset|safety)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"gve-ntfy-blk\.?(\d+)$")
"""A block of gve: the first half of them sends, and the second half receives."""


def served_queues(names: Mapping[int, str], device: str) -> dict[int, int | None]:
    """The queue of each interrupt of a device, by the interrupt's number; None for one that serves no queue."""
    bare = {number: _ADDRESS.sub("", name) for number, name in names.items()}
    blocks = {number: int(match[1]) for number, name in bare.items() if (match := _BLOCK.match(name))}
    if blocks:
        half = max(1, (max(blocks.values()) + 1) // 2)
        return {number: blocks[number] % half if number in blocks else None for number in names}
    if len(names) == 1:
        return {number: _number(name, device) or 0 for number, name in bare.items()}
    return {number: _number(name, device) for number, name in bare.items()}


def _number(name: str, device: str) -> int | None:
    rest = re.sub(rf"(?<![\w]){re.escape(device)}(?!\w)", "", name)
    match = re.search(r"(\d+)$", rest)
    return int(match[1]) if match and not _NO_QUEUE.search(rest) else None
