"""An assessment as text for people: a line per experiment, and the whole story when there is only one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from statistics import median

from pdrgate.data_paths.tcp_streams import size
from pdrgate.results.model import CheckResult, CurvePdr
from pdrgate.stability.assessment import Assessment
from pdrgate.stability.curve import LoadPoint
from pdrgate.stability.series_checks import TransfersAssessment, round_trip
from pdrgate.stability.throughput_increase import TirReading
from pdrgate.values.units import Rate, Ratio


def render_assessments(assessments: Sequence[Assessment]) -> str:
    """Text without a final newline; one experiment in full, several as a table and a count of verdicts."""
    if len(assessments) == 1:
        return "\n".join(_whole(assessments[0]))
    below = _common_directory([found.source for found in assessments])
    several = len({found.plr_threshold for found in assessments}) > 1
    rows = [
        ["VERDICT", "STRICT", "TOLERANT", "PUBLISHED", "PDR", "WHY", f"EXPERIMENT{f' in {below}' if below else ''}"]
    ]
    rows += [
        [
            found.verdict.value,
            *(found.labels[reading].value for reading in TirReading),
            _load(found.pdr) + (f" at {Ratio(found.plr_threshold)}" if several else ""),
            found.reason,
            found.source.removeprefix(below),
        ]
        for found in assessments
    ]
    counts = Counter(found.verdict.value for found in assessments)
    total = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    notes = [f"note: {found.source}: {note}" for found in assessments for note in found.notes]
    return "\n".join([*_table(rows, right=()), *notes, f"{len(assessments)} experiments: {total}"])


def render_transfers(assessments: Sequence[TransfersAssessment]) -> str:
    """Text of assessments of closed loops, which have no PDR."""
    if len(assessments) == 1:
        return "\n".join(_whole_of_transfers(assessments[0]))
    below = _common_directory([found.source for found in assessments])
    rows = [["VERDICT", "TCP THROUGHPUT", "WHY", f"EXPERIMENT{f' in {below}' if below else ''}"]]
    rows += [
        [found.verdict.value, _gigabits(found.throughput()[0]), found.reason, found.source.removeprefix(below)]
        for found in assessments
    ]
    return "\n".join([*_table(rows, right=()), f"{len(assessments)} experiments of transfers"])


def _whole_of_transfers(found: TransfersAssessment) -> list[str]:
    rate, low, high = found.throughput()
    interval = "no interval" if low is None or high is None else f"95 % interval {_gigabits(low)} to {_gigabits(high)}"
    rows = [["PHASE", "WINDOW", "TRANSFERS", "THROUGHPUT", "ROUND TRIP", "SENT AGAIN"]]
    for (phase, window), own in found.windows().items():
        rtt = round_trip(own)
        senders = [one.transfer.senders for one in own]
        again, segments = sum(one.retransmitted for one in senders), sum(one.segments for one in senders)
        rows.append([
            phase, size(window), str(len(own)), _gigabits(median(one.transfer.throughput for one in own)),
            "" if rtt is None else f"{1e3 * rtt:.3g} ms", _percent(again / (again + segments) if again else 0.0),
        ])  # fmt: skip
    return [
        f"{found.verdict}: {found.reason}" if found.reason else found.verdict.value,
        f"  source          {found.source}",
        f"  TCP throughput  {_gigabits(rate)}, {interval}; a closed loop has no PDR",
        "",
        *(f"  {line}" for line in _table(rows, right=range(1, 6))),
        "",
        *(_check(check) for check in found.checks),
    ]


def _gigabits(rate: float) -> str:
    return f"{rate / 1e9:.4g} Gbit/s"


def _common_directory(sources: Sequence[str]) -> str:
    """The directory that all sources share, with its final slash; empty when there is none."""
    prefix = os.path.commonprefix(sources)  # noqa: RUF071 (cut back to a whole directory in the next line)
    return prefix[: prefix.rfind("/") + 1]


def _whole(found: Assessment) -> list[str]:
    labels = ", ".join(f"{found.labels[reading]} {reading}" for reading in TirReading)
    lines = [
        f"{found.verdict}: {found.reason}" if found.reason else found.verdict.value,
        f"  source  {found.source}",
        f"  labels  {labels} (verdict by the {found.reading} reading)",
        f"  PDR     {_load(found.pdr)} at PLR {Ratio(found.plr_threshold)}, {_interval(found.pdr)}",
        "",
        *_loads(found),
        "",
        *(_check(check) for check in found.checks),
        *(f"  note: {note}" for note in found.notes),
    ]
    return [line.rstrip() for line in lines]


def _load(pdr: CurvePdr) -> str:
    if pdr.load is not None:
        return str(Rate(pdr.load))
    low, high = pdr.bracket
    if low is not None:
        return f"> {Rate(low)}"
    return f"< {Rate(high)}" if high is not None else "unknown"


def _interval(pdr: CurvePdr) -> str:
    if pdr.lower is None and pdr.upper is None:
        return "no interval"
    low = "below the lowest load" if pdr.lower is None else str(Rate(pdr.lower))
    high = "beyond the highest load" if pdr.upper is None else str(Rate(pdr.upper))
    return f"95 % interval {low} to {high}"


def _loads(found: Assessment) -> list[str]:
    potential, actual = found.saturation.potential_index, found.saturation.actual_index
    rows = [["LOAD", "RUNS", "PLR", "SD", "95 % LIMITS", "THROUGHPUT", "TIR", ""]]
    for index, (point, ratio) in enumerate(zip(found.curve.points, found.saturation.tir, strict=True)):
        marks = ["<- potential saturation"] * (index == potential) + ["<- saturated from here"] * (index == actual)
        rows.append(
            [
                str(Rate(point.load)),
                str(point.runs) + (f" (-{point.left_out})" if point.left_out else ""),
                _percent(point.plr),
                _percent(point.plr_sd),
                _limits(point),
                str(Rate(point.throughput)),
                "" if ratio is None else f"{ratio:.3f}",
                " ".join(marks),
            ]
        )
    return _table(rows, right=range(7))


def _limits(point: LoadPoint) -> str:
    return "" if point.lcl is None or point.ucl is None else f"{_percent(point.lcl)} .. {_percent(point.ucl)}"


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio * 100:.4f} %"


def _check(check: CheckResult) -> str:
    mark = {True: "ok", False: "FAIL", None: "?"}[check.passed]
    return f"  {mark:<4}  {check.name:<15}  {check.sentence}"


def _table(rows: Sequence[Sequence[str]], right: Sequence[int] | range) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
