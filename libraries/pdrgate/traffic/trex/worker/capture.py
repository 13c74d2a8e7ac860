"""Frames that come back, taken whole by the server.

A server captures on ports in service mode alone, in which it looks at each packet itself: its rate does not survive
that. So a capture is made of a short burst of its own, and no trial is sent meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .client import Client

_AT_ONCE = 50
"""Packets that are fetched by one request; the clients' own number."""


class Capture:
    """Capture of the packets that some ports receive, up to a number of packets."""

    def __init__(self, client: Client, ports: list[int], limit: int) -> None:
        self._client = client
        started = client.request("capture", command="start", limit=limit, mode="fixed", tx=[], rx=ports, filter="")
        self._id: int = started["capture_id"]

    def packets(self) -> list[list[Any]]:
        """End the capture, and return its packets: port of arrival, and bytes as the server writes them, in base64."""
        pending = self._client.request("capture", command="stop", capture_id=self._id)["pkt_count"]
        found: list[list[Any]] = []
        while pending > 0:
            part = self._client.request("capture", command="fetch", capture_id=self._id, pkt_limit=_AT_ONCE)
            found += [[packet["port"], packet["binary"]] for packet in part["pkts"]]
            pending = part["pending"] if part["pkts"] else 0
        return found

    def remove(self) -> None:
        self._client.request("capture", command="remove", capture_id=self._id)


@contextlib.contextmanager
def capture(client: Client, ports: list[int], limit: int) -> Iterator[Capture]:
    """A capture for as long as the block lasts; afterwards the ports forward by their cards again."""
    client.stl.set_service_mode(ports, True)
    try:
        begun = Capture(client, ports, limit)
        try:
            yield begun
        finally:
            begun.remove()
    finally:
        client.stl.set_service_mode(ports, False)
