"""What eBPF programs answer, and how much of them packets ran, in sentences beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from pdrgate.measurands.counted.program_run import PROGRAM_ANSWER, ProgramRun, program_run
from pdrgate.results.model import ScenarioResult, SideResult

_SMALL = 0.5
"""Share of a program's code below which packets leave it early."""


def program_lines(scenario: ScenarioResult) -> Iterator[str]:
    """Sentences on the programs of both builds; none where the builds are no eBPF programs."""
    sides = scenario.builds.sides
    answers = [str(side.findings.environment.get(PROGRAM_ANSWER, "")) for side in sides]
    if len(sides) != 2 or not any(answers):
        return
    if answers[0] == answers[1]:
        yield f"both programs: {answers[0]}"
    else:
        yield from (
            f"the {side.side}'s program: {answer}" for side, answer in zip(sides, answers, strict=True) if answer
        )
    runs = [program_run(side.findings) for side in sides]
    for side, run in zip(sides, runs, strict=True):
        if run is not None and run.most is not None and run.most < _SMALL:
            yield _little(side, run)


def _little(side: SideResult, run: ProgramRun) -> str:
    assert run.most is not None
    return (
        f"a packet executes {run.instructions:.0f} instructions of the {side.side}'s program, {run.most:.0%} at most "
        f"of its {run.size:.0f} bytes of machine code; send other packets (--set traffic) or fill its maps (--set "
        "maps) where it is to do more"
    )
