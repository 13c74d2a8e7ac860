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
    reached = [None if run is None else run.reached for run in runs]
    if None not in reached and min(filter(None, reached), default=0.0) >= _SMALL:
        yield "packets reach " + ", ".join(
            f"{share:.0%} of the {side.side}'s program" for side, share in zip(sides, reached, strict=True)
        )
    for side, run in zip(sides, runs, strict=True):
        if run is not None and run.most is not None and run.most < _SMALL:
            yield _little(side, run)


def _little(side: SideResult, run: ProgramRun) -> str:
    program = f"the {side.side}'s program"
    if run.reached is not None:
        ran = f"packets reach {run.reached:.0%} of {program}, which has {run.size:.0f} bytes of machine code"
    else:
        ran = (
            f"a packet executes {run.instructions:.0f} instructions of {program}, {run.most:.0%} at most of its "
            f"{run.size:.0f} bytes of machine code"
        )
    return f"{ran}; send other packets (--set traffic) or fill its maps (--set maps) where it is to do more"
