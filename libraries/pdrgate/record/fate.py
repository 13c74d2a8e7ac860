"""The fate of packets: what counts as handled."""

from __future__ import annotations

from typing import Literal

Fate = Literal["forwarded", "returned", "dropped", "passed", "delivered", "handled"]
"""Forwarded: out of the other port. Returned: out of the port that it came in by. Dropped by a program or a rule.
Passed to the SUT's own sockets, or on by the kernel's router. Delivered: read by a receiver of pdrgate's. Handled:
taken in by the SUT, whatever becomes of it then. All else is loss."""

INSIDE: tuple[Fate, ...] = ("dropped", "passed", "handled")
"""Fates that no packet on its way back to the generator shows. Such packets are counted where the SUT takes them in."""
