"""Whether a guest's clock goes as fast as this machine's."""

from __future__ import annotations

import math
import time

from pdrgate.hosts.host import Host
from pdrgate.values.errors import TestbedError

_MOST = 1.25
"""Times too fast or too slow. A kernel that was kept waiting while it measured its clock is wrong by a multiple: one
took 2593 MHz for 39.5, and ticked 65 times too often."""


class WrongClockError(TestbedError):
    """A guest's kernel measured its clock wrongly while it booted."""


class GuestClock:
    """Looks at the clock at `__init__`, and once more to check it."""

    def __init__(self, guest: Host) -> None:
        self._guest = guest
        self._first = self._look()

    def check(self) -> None:
        """Raises WrongClockError when it has gone too fast or too slow since: another boot measures it anew."""
        (before, then, after), (later_before, now, later_after) = self._first, self._look()
        # How long an answer takes is not known: only what no delay explains counts.
        at_least = (now - then) / (later_after - before)
        at_most = (now - then) / max(later_before - after, 1e-9)
        if at_least > _MOST or at_most < 1 / _MOST:
            raise WrongClockError(
                f"{self._guest.name}: its clock goes {at_least if at_least > 1 else at_most:.2g} times as fast as it "
                "should: the machine kept it waiting while it measured its clock in its boot"
            )

    def _look(self) -> tuple[float, float, float]:
        """Seconds of this machine, of the guest, and of this machine again."""
        before = time.monotonic()
        guest = float(self._guest.read("/proc/uptime").split()[0])
        if not math.isfinite(guest):
            raise ValueError(f"an uptime of {guest} s")
        return before, guest, time.monotonic()
