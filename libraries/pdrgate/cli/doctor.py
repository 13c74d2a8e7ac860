"""``pdrgate doctor``: is the testbed fit to measure?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from pdrgate.cli.parameters import BuildType, PathType, declared, echo_json, output_option, text_or_json
from pdrgate.values.errors import EXIT_FAULT, EXIT_PASS
from pdrgate.values.units import Duration


@click.command()
@click.argument("testbed", metavar="TESTBED", type=PathType())
@click.option("--kernel", metavar="BUILD", type=BuildType(), help="A kernel to boot, for a testbed that boots kernels.")
@text_or_json
@output_option
@declared("wait")
def doctor(testbed: Path, kernel: str | None, form: str, output: Path, wait: Duration) -> int:
    """Look at TESTBED before it measures: what is missing, what would disturb, and what to do about it.

    TESTBED is a testbed file. It is set up, sends a few seconds of traffic, and is put back.

    Exits with 0 when it is fit to measure, if need be with warnings, and with 2 when a check fails.
    """
    from pdrgate.doctor import Examination, Finding, Status, worst
    from pdrgate.launch import found as path_of
    from pdrgate.reports.words.findings import findings_summary, render_findings
    from pdrgate.testbeds import load_testbed

    config = load_testbed(path_of(testbed))
    if kernel is not None:
        config = config.with_kernel(kernel)
    findings: list[Finding] = []

    def kept() -> Iterator[Finding]:
        # Closed at once when we are interrupted, for it holds the testbed open.
        with contextlib.closing(Examination(config, output, wait=wait).findings()) as found:
            for finding in found:
                findings.append(finding)
                yield finding

    if form == "json":
        record: dict[str, object] = {"testbed": config.name, "source": str(config.source)}
        record["findings"] = [finding.to_dict() for finding in kept()]
        record["status"] = worst(findings)
        echo_json(record)
    else:
        click.echo(f"testbed {config.name} ({config.source})")
        for line in render_findings(kept()):
            click.echo(line)
        click.echo(f"\n{findings_summary(findings)}")
    return EXIT_FAULT if worst(findings) is Status.FAIL else EXIT_PASS
