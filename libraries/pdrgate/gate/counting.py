"""Whether the cost of a packet can be counted on a testbed, and what that takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

from pdrgate.testbeds import Testbed
from pdrgate.testbeds.protocol import UNCOUNTED, Counting


def busy_of(testbed: Testbed) -> Callable[[], AbstractContextManager[object]]:
    """What has a program use the SUT's CPU, where that is needed."""
    return testbed.busy if isinstance(testbed, Counting) else contextlib.nullcontext


def uncounted(testbed: Testbed) -> str:
    """Why the cost of a packet is not counted there, as a sentence; empty when it is."""
    why = testbed.uncounted if isinstance(testbed, Counting) else UNCOUNTED
    return f"the cost of a packet is not counted here: {why}" if why else ""
