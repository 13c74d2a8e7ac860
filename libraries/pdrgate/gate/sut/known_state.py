"""What a SUT is between two scenarios that are measured on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pdrgate.crashes.kernel_log import KernelLog, read_kernel_log
from pdrgate.data_paths.network_state import KnownNetworks
from pdrgate.data_paths.standing_base import StandingBase
from pdrgate.testbeds import Testbed
from pdrgate.values.errors import TestbedError


@dataclass(slots=True)
class KnownState:
    """What a SUT was when the last scenario was taken away: the next one need not ask for it."""

    networks: KnownNetworks = field(default_factory=KnownNetworks)
    base: StandingBase | None = None
    """What stays set up from scenario to scenario; None: nothing."""
    log: KernelLog | None = None
    """The log of its kernel; None where it was not read yet."""


def kernel_log_of(testbed: Testbed, otherwise: KernelLog | None = None) -> KernelLog:
    """The log of the SUT's kernel; ``otherwise`` where it does not answer, for that is reported elsewhere."""
    nothing = otherwise or KernelLog(None, None)
    try:
        return read_kernel_log(testbed.hops[0].host) if testbed.hops else nothing
    except TestbedError:
        return nothing
