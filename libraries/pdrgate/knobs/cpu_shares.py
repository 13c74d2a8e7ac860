"""Values that give several queues their CPUs: ``each 0-3``, ``each none`` or ``turn 0,1``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pdrgate.hosts.cpus import format_cpu_list, parse_cpu_list
from pdrgate.hosts.host import Host
from pdrgate.knobs.knob import ANY

NONE = "none"


def each(cpus: Iterable[int]) -> str:
    """All queues get all of these CPUs."""
    return f"each {format_cpu_list(cpus) or NONE}"


def in_turn(cpus: Iterable[int]) -> str:
    """One CPU a queue: queue 0 gets the first one, queue 1 the second, and so on round."""
    return f"turn {','.join(str(cpu) for cpu in cpus)}"


def is_share(text: str) -> bool:
    """Whether a text says how CPUs are shared out, and is no state."""
    return text == ANY or text.startswith(("each ", "turn "))


def shares(text: str, queues: Mapping[str, int | None]) -> dict[str, str]:
    """The CPUs of each queue, as a list such as ``0-1`` or ``none``.

    Args:
        text: as `each` and `in_turn` give it.
        queues: the number of each queue by its name; None for what is no queue, and gets all CPUs.
    """
    how, _, listed = text.partition(" ")
    if how == ANY:
        return {}
    if how == "each":
        return dict.fromkeys(queues, listed)
    cpus = [int(cpu) for cpu in listed.split(",")]
    return {
        name: format_cpu_list(cpus) if queue is None else str(cpus[queue % len(cpus)]) for name, queue in queues.items()
    }


def absent_cpus(text: str, host: Host) -> str | None:
    """Why the CPUs of a share cannot be had; None when the host has them online."""
    listed = text.partition(" ")[2] or NONE
    wanted = set() if listed == NONE else {cpu for part in listed.split(",") for cpu in parse_cpu_list(part)}
    online = parse_cpu_list(host.read("/sys/devices/system/cpu/online"))
    if absent := wanted - set(online):
        return f"{host.name} has no CPU {format_cpu_list(absent)} online, only CPU {format_cpu_list(online)}"
    return None


def shares_in_words(text: str) -> str:
    """A share or a state, for people."""
    how, _, listed = text.partition(" ")
    if how == "each" and listed == NONE:
        return "no CPU"
    if how == ANY:
        return "as they are"
    return {"each": f"CPU {listed} for each", "turn": f"CPU {listed} in turn"}.get(how, text)
