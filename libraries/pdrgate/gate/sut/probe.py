"""A first look with real packets: does the data path carry them, or somebody else?

What an eBPF program lets pass, the kernel's router below it forwards all the same, and no trial would show it. So
before anything is measured, a few packets must be counted where they should be.
"""

from __future__ import annotations

from dataclasses import replace

from pdrgate.data_paths.catalogue import DataPath
from pdrgate.observers.accounting import losses
from pdrgate.observers.fates import by_fate
from pdrgate.observers.reading import Reading, nested
from pdrgate.record.fate import Fate
from pdrgate.record.trial import Trial
from pdrgate.testbeds.testbed_base import Testbed
from pdrgate.traffic.frames import Frames
from pdrgate.traffic.generator import Generator
from pdrgate.values.errors import SutError

PROBE_LOAD = 10e3
"""Packets per second: what any SUT forwards."""
PROBE_DURATION = 0.1
_TRIES = 3
"""Times that packets are sent where a guest takes none at all."""
_WARMING_LOAD, _WARMING_DURATION = 40e3, 0.05
"""Packets come one by one at first, then in batches: the SUT's code for both runs."""
_LEADING_SHARE, _LEADING_DURATION = 0.7, 0.05
"""Share of a load, and seconds. An end host takes it with nothing waiting, whatever it was offered before."""
_TOLERATED = 0.05
"""Part of the packets that others may have sent, or that were lost on the way."""
_DOES: dict[Fate, str] = {
    "forwarded": "forwards",
    "returned": "sends back",
    "dropped": "drops",
    "passed": "passes to its sockets or its router",
    "delivered": "delivers",
    "handled": "takes in",
}
_INSTEAD: dict[str, str] = {
    "forwarded": "came out of the other port",
    "returned": "came back out of the port that they went in",
    "passed": "reached its sockets or its router",
}
_BY_KERNEL = (("ip", "ForwDatagrams"), ("ip6", "OutForwDatagrams"))
"""Kinds of places and names of what the kernel's own router forwarded."""


def probe_path(
    path: DataPath, testbed: Testbed, generator: Generator, frames: Frames, fate: Fate = "forwarded"
) -> Trial:
    """Send some packets through an applied data path and see who handles them; returns what became of them.

    What comes back on the wrong port, or as it must not be, is in there.

    Raises:
        SutError: nobody does, or the kernel in place of the path's programs; the message says what happened instead.
    """
    # Reading its counters takes an emulated guest 15 ms. Where its router forwards, the packets that came back show
    # all.
    reads = not path.by_kernel or fate not in ("forwarded", "returned")
    for left in reversed(range(_TRIES if testbed.disposable else 1)):
        sent_on, before = None if path.by_kernel else path.redirected(), testbed.counters() if reads else {}
        sent = generator.trial(PROBE_LOAD, PROBE_DURATION, frames)
        after = testbed.counters() if reads else {}
        seen = replace(
            sent.seen,
            counters_before={**nested(before), **sent.seen.counters_before},
            counters_after={**nested(after), **sent.seen.counters_after},
        )
        counted = replace(sent, seen=seen)
        trial = by_fate(counted, fate)
        if counted.forwarded or counted.aside.left or not left:
            break  # else a busy machine may have kept a guest from its CPU for as long
    # An error message of the kernel's quotes a packet with its mark: a few that come back, and none on, are those.
    if trial.aside.returned and (trial.forwarded or 2 * trial.aside.returned > trial.offered):
        return trial
    if trial.forwarded == 0:
        raise SutError(
            f"{path.name} {_DOES[fate]} none of {trial.offered} {_packets(frames)} at {PROBE_LOAD:.0f} packets/s "
            f"({path.sentence()}); {_instead(counted, generator, frames, testbed)}"
        )
    if fate != "forwarded":
        return trial
    if path.by_kernel:
        return trial
    crossings = trial.forwarded * max(1, len(testbed.hops))
    if (routed := _forwarded_by_kernel(after) - _forwarded_by_kernel(before)) > _TOLERATED * crossings:
        sent_all = trial.offered * max(1, len(testbed.hops))  # what was forwarded may be lost further on
        raise SutError(
            f"{path.name}: the kernel's own router forwarded {min(routed, sent_all)} of {sent_all} {_packets(frames)}, "
            f"which the program let pass ({path.sentence()}); if it is to let them pass: --set fate=passed, or name "
            f"the path beneath it, --scenario path-ipv{frames.family}-routing; if not, send packets that it redirects, "
            "--set traffic='udp dst=@out dport=53' for one"
        )
    if sent_on is not None:
        told = (path.redirected() or 0) - sent_on
        if told < (1 - _TOLERATED) * crossings:
            raise SutError(
                f"{path.name}: its programs count {told} packets that they sent on, and {crossings} were forwarded "
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


def _packets(frames: Frames) -> str:
    """``IPv6 packets like udp dst=@out dport=53``; an address that was chosen says its version itself."""
    chosen = "" if frames.chosen is None else f" like {frames.chosen}"
    return f"IPv{frames.family} packets{chosen}" if not chosen or "@" in chosen else f"packets{chosen}"


def _instead(sent: Trial, generator: Generator, frames: Frames, testbed: Testbed) -> str:
    """A clause on packets none of which had their fate: what became of them, and what to do.

    Others like them may be sent to find out.
    """
    if frames.mark is None and frames.counted != "taken":
        before = testbed.counters()
        taken = generator.trial(PROBE_LOAD, PROBE_DURATION, replace(frames, counted="taken", probe_rate=0.0))
        seen = replace(taken.seen, counters_before=nested(before), counters_after=nested(testbed.counters()))
        sent = replace(taken, seen=seen)
    if frames.mark is None:
        found = {fate: by_fate(sent, fate).forwarded for fate in ("passed", "dropped")}
        found |= {"returned": sent.aside.returned, "forwarded": sent.aside.left - sent.aside.returned}
        most = max(found, key=lambda fate: found[fate])
        if most != "dropped" and found[most]:
            return f"of {sent.offered} {found[most]} {_INSTEAD[most]}: --set fate={most}?"
        if found["dropped"]:
            where = losses(replace(sent, forwarded=0, drained=0)).most
            told = f", {where.packets} of them {where.where}" if where and 2 * where.packets > sent.offered else ""
            return (
                f"of {sent.offered} {found['dropped']} ended in it{told}: --set fate=dropped? If not, do its counters "
                "say where they end? see /proc/net/snmp6 and ethtool -S there"
            )
    return "do the SUT's counters say where they end? see /proc/net/snmp6 and ethtool -S there"


def _forwarded_by_kernel(reading: Reading) -> int:
    return sum(value for counter, value in reading.items() if (counter.place.kind, counter.name) in _BY_KERNEL)
