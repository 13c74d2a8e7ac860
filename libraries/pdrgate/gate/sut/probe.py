"""A first look with real packets: does the data path carry them, or somebody else?

What an eBPF program lets pass, the kernel's router below it forwards all the same, and no trial would show it. So
before anything is measured, a few packets must be counted where they should be.
"""

from __future__ import annotations

from pdrgate.data_paths.catalogue import DataPath
from pdrgate.errors import SutError
from pdrgate.testbeds.protocol import Testbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.trial import Trial

PROBE_LOAD = 10e3
"""Packets per second: what any SUT forwards."""
PROBE_DURATION = 0.1
_WARMING_LOAD, _WARMING_DURATION = 40e3, 0.05
"""Packets come one by one at first, then in batches: the SUT's code for both runs."""
_LEADING_SHARE, _LEADING_DURATION = 0.7, 0.05
"""Of a load, and seconds: an end host takes it with nothing waiting, whatever it was offered before."""
_TOLERATED = 0.05
"""Of the packets, those that others may have sent, or that were lost on the way."""
_BY_KERNEL = (("ip", "ForwDatagrams"), ("ip6", "OutForwDatagrams"))
"""Kinds of places and names of what the kernel's own router forwarded."""


def probe_path(path: DataPath, testbed: Testbed, generator: Generator, frames: Frames) -> Trial:
    """Send some packets through an applied data path and see who forwards them; returns what became of them.

    What comes back on the wrong port, or as it must not be, is in there.

    Raises:
        SutError: nobody does, or the kernel in place of the path's programs.
    """
    sent_on, by_kernel = None if path.by_kernel else path.redirected(), _forwarded_by_kernel(testbed)
    trial = generator.trial(PROBE_LOAD, PROBE_DURATION, frames)
    if trial.returned:
        return trial
    if trial.forwarded == 0:
        raise SutError(
            f"{path.name} forwards none of {trial.offered} packets at {PROBE_LOAD:.0f} packets/s ({path.sentence()}); "
            "do the SUT's counters say where they end? see /proc/net/snmp6 and ethtool -S there"
        )
    if path.by_kernel:
        return trial
    crossings = trial.forwarded * max(1, len(testbed.hops))
    if (found := _forwarded_by_kernel(testbed) - by_kernel) > _TOLERATED * crossings:
        raise SutError(
            f"{path.name}: the kernel's own router forwarded {found} of {crossings} packets, which the program let "
            f"pass ({path.sentence()}); does it redirect what the test traffic is made of?"
        )
    if sent_on is not None:
        counted = (path.redirected() or 0) - sent_on
        if counted < (1 - _TOLERATED) * crossings:
            raise SutError(
                f"{path.name}: its programs count {counted} packets that they sent on, and {crossings} were forwarded "
                f"({path.sentence()}); who else forwards there?"
            )
    return trial


def warm_up(generator: Generator, frames: Frames) -> None:
    """Send packets that nobody counts through an emulated guest: code is translated when it runs first.

    Without, the first trial of a boot forwarded its first packets some 4 ms late, 3 % of an overload of 0.25 s.
    """
    generator.trial(_WARMING_LOAD, _WARMING_DURATION, frames)


def lead_in(generator: Generator, frames: Frames, load: float) -> None:
    """Have an end host begin a trial of ``load`` packets/s in the state of a smaller load, by packets nobody counts.

    What was before decides otherwise who goes first, the kernel's packet work or the programs: near its PDR a guest
    lost 2 % after an overload and nothing after a smaller load, and held 3 % more than its PDR after a rest.
    """
    generator.trial(_LEADING_SHARE * load, _LEADING_DURATION, frames)


def _forwarded_by_kernel(testbed: Testbed) -> int:
    return sum(
        value for counter, value in testbed.counters().items() if (counter.place.kind, counter.name) in _BY_KERNEL
    )
