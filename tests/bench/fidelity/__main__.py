"""Is what a memory trial counts true? The same programs on this machine's CPU and in the model, and weights for cycles.

    sudo .venv/bin/python tests/bench/fidelity [--kernel PACKAGE] [--rounds 10] [--only WORD…] [--write FILE]

Each program is run by BPF_PROG_RUN: here, the least of many bursts, and in a metered guest with a memory trial whose
caches are this machine's. Every other program makes the weights, by non-negative least squares of relative errors; the
others tell what they are worth. The kernels are two: choose one for the guest that is like this machine's. With
--write the weights go to a file, as libraries/pdrgate/measurands/weights has them. It takes some 5 minutes, and may be
done beside other work: told is how much the least burst differs from one half of the turns to the other.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from hardware import on_hardware
from model import Counted, Kernel, in_model
from programs import PROGRAMS
from this_cpu import caches, cpu_name
from timing.timed_trace import Cpu, Model, cpu_named, variants
from weighing import (
    Measured,
    changes,
    error_of_change,
    estimate,
    split,
    weights_of,
    worth_of,
    worth_of_estimates,
)

from pdrgate.measurands.counted.estimated_cycles import PricedEvents

RUNNER = Path(__file__).parent / "repeat.c"


def main() -> None:
    """Measure, print the tables, and write the weights where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    Kernel.add_options(parser)
    parser.add_argument("--rounds", type=int, default=10, help="turns of each program on this machine's CPU")
    parser.add_argument(
        "--only", nargs="+", metavar="WORD", help="programs that have one of these words in their names"
    )
    parser.add_argument("--cpu", help="print what a model of this CPU makes of the same runs")
    parser.add_argument("--write", type=Path, metavar="FILE")
    asked = parser.parse_args()
    chosen = [one for one in PROGRAMS if not asked.only or any(word in one.title for word in asked.only)]
    kernel = Kernel.asked(asked)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runner = folder / "repeat"
        subprocess.run(("gcc", "-O2", "-Wall", "-static", "-s", str(RUNNER), "-o", str(runner)), check=True)
        taken = on_hardware(chosen, folder, runner, asked.rounds)
        counted = in_model(chosen, folder, runner, kernel, caches(), folder)
        measured = [Measured(one, taken[one.title].cycles, counted[one.title].events) for one in chosen]
        if asked.cpu:
            tell_timed(measured, counted, cpu_named(asked.cpu), Model(folder))
    weights = weights_of(split(measured)[0])
    print("| program | half | cycles | differ | usual | estimate | error | " + " | ".join(PricedEvents._fields) + " |")
    print("|---" * (7 + len(PricedEvents._fields)) + "|")
    for number, one in enumerate(measured):
        here, told = taken[one.program.title], estimate(one, weights)
        print(
            f"| {one.program.title} | {('weights', 'worth')[number % 2]} | {one.cycles:.0f} | {here.repeats:.1%} | "
            f"+{here.usual:.0%} | {told:.0f} | {told / one.cycles - 1:+.0%} | "
            + " | ".join(f"{count:.1f}" for count in one.events) + " |"
        )  # fmt: skip
    tell_changes(split(measured)[1], weights)
    alone = [Measured(one.program, one.cycles, PricedEvents(one.events.instructions)) for one in measured]
    for name, ones in (("all events", measured), ("instructions alone", alone)):
        made, held = split(ones)
        own = weights_of(made)
        worth = worth_of(held, own)
        prices = ", ".join(f"{field} {price:.2f}" for field, price in own._asdict().items() if price)
        print(f"\n{name}: {prices}\nrank correlation {worth.rank_correlation:.3f}; {worth}")
    if asked.write:
        write(asked.write, measured, weights, kernel.build.release)


def tell_timed(measured: Sequence[Measured], counted: Mapping[str, Counted], cpu: Cpu, model: Model) -> None:
    """Print what a model of a CPU makes of the programs, and what it is worth without each of its parts."""
    print("\n| program | half | cycles | model | error | mispredicted | walks |\n|---|---|---|---|---|---|---|")
    for number, one in enumerate(measured):
        timed = model.timed(cpu, counted[one.program.title].executed)
        print(
            f"| {one.program.title} | {('weights', 'worth')[number % 2]} | {one.cycles:.0f} | {timed.cycles:.0f} | "
            f"{timed.cycles / one.cycles - 1:+.0%} | {timed.mispredicted:.2f} | {timed.walks:.2f} |"
        )
    print("\n| model | rank correlation | median error | of a change |\n|---|---|---|---|")
    for name, variant in variants(cpu).items():
        told = {title: model.timed(variant, one.executed).cycles for title, one in counted.items()}
        worth = worth_of_estimates(split(measured)[1], told)
        print(f"| {name} | {worth.rank_correlation:.3f} | {worth.error:.1%} | {worth.error_of_change:.1%} |")


def tell_changes(held: Sequence[Measured], weights: PricedEvents) -> None:
    """Print what hardware and estimates make of more of one thing."""
    print("\n| from | to | hardware | estimate | error |\n|---|---|---|---|---|")
    for before, after in changes(held):
        real, told = after.cycles / before.cycles, estimate(after, weights) / estimate(before, weights)
        error = error_of_change(before, after, weights)
        print(f"| {before.program.title} | {after.program.name} | {real - 1:+.0%} | {told - 1:+.0%} | {error:+.0%} |")


def write(file: Path, measured: Sequence[Measured], weights: PricedEvents, guest: str) -> None:
    """Write a file of weights."""
    worth = worth_of(split(measured)[1], weights)
    about = {
        "machine": cpu_name(), "kernel": os.uname().release, "kernel of the guest": guest,
        "date": datetime.date.today().isoformat(),
        "cycles": {name: round(price, 3) for name, price in weights._asdict().items()},
        "worth": {
            "programs": worth.programs, "rank_correlation": round(worth.rank_correlation, 3),
            "error": round(worth.error, 3), "error_of_change": round(worth.error_of_change, 3),
        },
    }  # fmt: skip
    head = "# Cycles of each event on one machine's CPU, made by tests/bench/fidelity.\n"
    file.write_text(head + yaml.safe_dump(about, sort_keys=False))


if __name__ == "__main__":
    main()
