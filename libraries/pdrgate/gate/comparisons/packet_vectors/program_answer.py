"""What a build of a program does with a packet, over all its runs, and how another build's answer differs.

A program may go by a clock or by chance: what a build itself does not do alike each time is not compared, unless only
the candidate does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdrgate.bpf.prog_run import PacketRun, refusal_in_words, verdict_name
from pdrgate.builds.bpf_build import ProgramKind


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """What a build did with a packet in all runs, each time that it was loaded."""

    kind: ProgramKind
    runs: tuple[PacketRun, ...]

    @property
    def refused(self) -> bool:
        """Whether the kernel did not run it."""
        return bool(self.runs[0].refused)

    @property
    def varies(self) -> bool:
        """Whether it did not always return the same."""
        first = self.runs[0]
        return any((one.verdict, one.refused) != (first.verdict, first.refused) or one.others for one in self.runs)

    @property
    def verdict(self) -> str:
        """What it returned, or why it was not run."""
        if self.refused:
            return f"not run ({refusal_in_words(self.runs[0].refused)})"
        first = verdict_name(self.kind, self.runs[0].verdict)
        return f"{first} or another" if self.varies else first

    @property
    def output(self) -> bytes:
        """The packet as the first run left it."""
        return self.runs[0].output

    @property
    def outputs(self) -> tuple[bytes, ...]:
        """All outputs that were looked at."""
        return tuple(output for one in self.runs for output in (one.output, one.again))


def answers_differ(baseline: ProgramAnswer, candidate: ProgramAnswer) -> str:
    """Difference of the candidate's answer, as what it does; empty where it does not differ, or where that cannot be
    known."""
    if (baseline.refused and candidate.refused) or baseline.varies:
        return ""
    if candidate.verdict != baseline.verdict:
        return f"{_does(candidate)}, baseline {baseline.verdict}"
    before, after = baseline.outputs, candidate.outputs
    lengths = {len(one) for one in before}
    if len(lengths) > 1:
        return ""
    if {len(one) for one in after} != lengths:
        other = next(len(one) for one in after if len(one) not in lengths)
        return f"output has {other} bytes, baseline {lengths.pop()}"
    for at, values in enumerate(zip(*before, strict=True)):
        unlike = {one[at] for one in after} - {values[0]}
        if len(set(values)) == 1 and unlike:
            return f"output differs from byte {at}: 0x{min(unlike):02x}, baseline 0x{values[0]:02x}"
    return ""


def remarks_on_answers(answers: Sequence[tuple[int, ProgramAnswer, ProgramAnswer]]) -> list[str]:
    """What of the answers could not be had or compared, in sentences.

    Args:
        answers: by the packets' numbers, the baseline's first.
    """
    remarks = []
    if refused := [(number, one) for number, one, other in answers if one.refused and other.refused]:
        first = refused[0]
        remarks.append(f"{_vectors([number for number, _ in refused])} of both builds: {first[1].verdict}")
    if varying := [number for number, one, _ in answers if one.varies]:
        remarks.append(f"{_vectors(varying)}: the baseline does not always return the same; not compared")
    return remarks


def _does(answer: ProgramAnswer) -> str:
    return answer.verdict if answer.refused else f"returns {answer.verdict}"


def _vectors(numbers: Sequence[int]) -> str:
    """``vector 3``; ``vectors 3, 7 and 12 more``."""
    if len(numbers) == 1:
        return f"vector {numbers[0]}"
    shown = ", ".join(map(str, numbers[:3]))
    return f"vectors {shown}" + (f" and {len(numbers) - 3} more" if len(numbers) > 3 else "")
