"""This machine's CPU: what it is called, and its caches, which the model is given."""

from __future__ import annotations

import re
from pathlib import Path

from pdrgate.guests.metering.memory import CacheLevel, CacheLevels

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1024, "M": 1 << 20}


def cpu_name() -> str:
    """Its name, family and model, and whether it is a virtual machine's."""
    told = dict(
        re.findall(r"^([\w ]+?)\s*: (.*)$", Path("/proc/cpuinfo").read_text().partition("\n\n")[0], re.MULTILINE)
    )
    name = f"{told['model name'].strip()} (family {told['cpu family']}, model {told['model']})"
    return f"{name}, of a virtual machine" if "hypervisor" in told["flags"].split() else name


def caches() -> CacheLevels:
    """Its caches as the kernel tells of them. Raises RuntimeError where it has not all three levels."""
    found: dict[tuple[int, str], CacheLevel] = {}
    for folder in _CACHES.glob("index*"):
        told = {
            name: (folder / name).read_text().strip() for name in ("level", "type", "size", "ways_of_associativity")
        }
        size = int(told["size"][:-1]) * _UNITS[told["size"][-1]]
        found[int(told["level"]), told["type"]] = CacheLevel(size, int(told["ways_of_associativity"]))
    try:
        return CacheLevels(found[1, "Data"], found[1, "Instruction"], found[2, "Unified"], found[3, "Unified"])
    except KeyError as error:
        raise RuntimeError(f"{_CACHES} tells of no level {error}; the model has three, the first one parted") from error
