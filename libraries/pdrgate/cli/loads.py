"""``pdrgate loads``: which of these kernels take this eBPF program?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pdrgate.cli.boots_session import Sentences, boots_session
from pdrgate.cli.parameters import BuildType, PathType, declared, echo_json, note, output_option, text_or_json
from pdrgate.values.printable import printable
from pdrgate.values.units import Duration


@click.command()
@click.argument("program", metavar="OBJECT")
@click.argument("kernels", metavar="[KERNEL]...", nargs=-1, type=BuildType())
@click.option(
    "--testbed",
    metavar="FILE",
    type=PathType(),
    help="[default: local-vm.yaml, without a KERNEL steady-guest.yaml]",
)
@declared("maps")
@declared("rodata")
@output_option
@text_or_json
@declared("wait")
def loads(
    program: str,
    kernels: tuple[str, ...],
    testbed: Path | None,
    maps: Path | None,
    rodata: tuple[str, ...],
    output: Path,
    form: str,
    wait: Duration,
) -> int:
    """Load the eBPF program in OBJECT on each KERNEL, without traffic, and print what that costs, or why it is refused.

    OBJECT is what the gate's --bpf takes. KERNEL is what its --kernel takes. Each KERNEL is booted in turn. Without a
    KERNEL, the program is loaded on the testbed's own kernel.

    Exits with 0 when all take it, with 1 when one refuses it, with 2 when one could not be asked.
    """
    from pdrgate.bpf.filling import check_setup
    from pdrgate.builds.bpf_build import bpf_build
    from pdrgate.builds.named_build import look_at, named_build
    from pdrgate.builds.program_setup import program_setup
    from pdrgate.gate.comparisons.loads_on_kernels import LoadOnKernel, NamedKernel, exit_code, loads_on
    from pdrgate.launch import default_testbed

    build = check_setup(bpf_build(program, None, program_setup("auto", maps, rodata), on_packets=True))
    for kernel in kernels:
        look_at(kernel, note)
    console = Sentences(to_stderr=form == "json")
    beneath = testbed or default_testbed(builds=bool(kernels))[0]
    found: list[LoadOnKernel] = []
    with boots_session(Path(beneath), {"profile": "smoke", "wait": wait}, output, console, None) as session:
        named = [named_build(kernel, report=session.observer.said) for kernel in kernels]
        asked = [NamedKernel(one.label, partial(session.boot, one)) for one in named]
        for one in loads_on(session, build, asked or [NamedKernel(session.config.name, session.make)]):
            found.append(one)
            if form == "text":
                click.echo(printable(one.sentence))
    if form == "json":
        echo_json({"program": build.label, "kernels": found})
    return exit_code(found)
