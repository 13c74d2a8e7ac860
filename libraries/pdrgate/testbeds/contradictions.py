"""Contradictions that no schema finds in a testbed file that follows it, whatever its kind; each with its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pdrgate.knobs import plan_contradictions, sysctls
from pdrgate.testbeds.yaml_lines import Key


def shared_cpu(content: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    """Generator and SUT have CPUs of one machine, and none of them is both's."""
    cpu, cpus = content["generator"].get("cpu", "auto"), content.get("sut", {}).get("cpus", "auto")
    if cpus != "auto" and cpu in cpus:
        problem = f"CPU {cpu} is the generator's too (generator.cpu); the two must not share one"
        yield ("sut", "cpus"), problem


def wrong_knobs(content: Mapping[str, Any], *, whole_machine: bool = False) -> Iterator[tuple[Key, str]]:
    """The section of knobs makes sense, and is of the SUT's namespace alone unless that is a ``whole_machine``."""
    section = content.get("sut", {}).get("knobs", {})
    wrong = set()
    for key, problem in plan_contradictions(section):
        wrong.add(key[-1])
        yield ("sut", "knobs", *key), problem
    for name in () if whole_machine else sysctls(section):
        if name not in wrong and not name.startswith(("net.", "net/")):
            key = (name,) if name in section else ("sysctls", name)
            problem = f"{name} is a setting of the whole machine; only those of net. belong to the SUT's namespace"
            yield ("sut", "knobs", *key), problem
