"""Trials in which the CPUs of a guest execute in turn, as their observer tells them."""

from __future__ import annotations

from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging, Occasion, Seen
from pdrgate.record.trial import Trial


def in_turns(*cpus: tuple[int, int], idle: int = 0) -> Seen:
    """What is seen where each CPU takes so many packets up in so many instructions of its time.

    Args:
        idle: of the last CPU, the instructions in which it had nothing to do.
    """
    counters = {
        f"vcpu{number}": {"packets": packets, "turn_instructions": instructions, "idle_instructions": 0}
        for number, (packets, instructions) in enumerate(cpus)
    }
    counters[f"vcpu{len(cpus) - 1}"]["idle_instructions"] = idle
    none = {place: dict.fromkeys(told, 0) for place, told in counters.items()}
    return Seen(counters_before=none, counters_after=counters)


def trial(seen: Seen, phase: Phase = Phase.ALL_CPUS, boot: str = "", *, unsent: int = 0, lost: int = 0) -> Trial:
    """A trial of 2000 packets, of which some were not sent, or lost."""
    return Trial(
        intended_load=20e3, intended_duration=0.1, offered=2000 - unsent, unsent=unsent, forwarded=2000 - unsent - lost,
        belonging=Belonging(boot=boot), occasion=Occasion(phase=phase), seen=seen,
    )  # fmt: skip
