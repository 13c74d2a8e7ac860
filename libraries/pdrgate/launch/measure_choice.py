"""What a run measures: chosen by what it names, and refused where its options or its paths have none of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.measures import MEASURES, MeasureName
from pdrgate.gate.run.options import RunOptions
from pdrgate.testbeds import load_testbed
from pdrgate.this_process.own_files import found
from pdrgate.values.errors import UsageError

_UNSAID: tuple[MeasureName, ...] = ("pdr", "transfer")
"""What is measured where nothing is said: the PDR of an open loop, and the transfers of a closed one."""


def default_measure(testbed: Path, *, kernels: bool) -> MeasureName | None:
    """What two builds are compared by where nobody says: kernels are counted in emulated guests; None: `_UNSAID`.

    Raises TestbedError where there is no such testbed.
    """
    return "cost" if kernels and load_testbed(found(testbed)).counts_packets else None


def with_measure(options: RunOptions) -> RunOptions:
    """The options with what is measured, where they name something that only one measure has. Raises UsageError."""
    only: MeasureName | None = "packets" if options.packets is not None else None
    if options.measure is None:
        kernels = bool(options.kernel and options.against and not options.bpf)
        chosen = only or default_measure(options.testbed, kernels=kernels)
        options = dataclasses.replace(options, measure=chosen)
    check_options(options)
    return options


def check_options(options: RunOptions) -> None:
    """Raises UsageError where an option, or the number of builds, does not go with what is measured."""
    names = (options.measure,) if options.measure else _UNSAID
    for one in declarations(RunOptions).values():
        if one.said.of and getattr(options, one.name) != one.default and not set(names) & set(one.said.of):
            raise UsageError(
                f"{one.option} says nothing of --measure {' or '.join(names)}: leave it out, or ask for "
                f"--measure {one.said.of[0]}{_of_cost(one.name)}"
            )
    for name in names if options.measure else ():
        measure, builds = MEASURES[name], 2 if options.against else 1
        if builds not in measure.builds:
            more = "--kernel BUILD --against BUILD" if 2 in measure.builds else "leave out --against"
            raise UsageError(f"--measure {name} is of {' or '.join(_NUMBERS[n] for n in measure.builds)}: {more}")
    if options.measure == "cost" and options.bpf:
        raise UsageError("--measure cost counts kernels; eBPF objects are compared by --measure pdr")
    if options.measure == "packets" and options.packets is None:
        raise UsageError("--measure packets needs a capture; name it with --set packets=FILE")


_NUMBERS = {1: "one build", 2: "two builds"}


def _of_cost(option: str) -> str:
    """What a person may mean that judges what is counted by the tolerance of a PDR."""
    return " (a cost has --cost-tolerance)" if option == "tolerance" else ""
