"""What moved over a series of builds, for a terminal and for a pull request."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pdrgate.reports.markup.gfm import block, markdown_text, table_markdown
from pdrgate.reports.tree import Cell, Column, Table
from pdrgate.trend import MOVE_CONFIDENCE, Move, Point, Series
from pdrgate.values.units import change_in_words

_COLUMNS = (
    Column(""), Column("measurand"), Column("scenario"), Column("testbed"), Column("change (interval)", True),
    Column("last build before"), Column("first build after"),
)  # fmt: skip
_TOLD = ("scenario", "testbed", "fingerprint", "measurand", "unit", "better")
_BISECT = "docs/bisect.md says how to find it among them"


def trend_lines(found: Sequence[Move]) -> Iterator[str]:
    """Three lines for each: what moved and where, on which testbed, and what to type next."""
    for move in found:
        yield f"{_word(move)}: {move.sentence}"
        yield f"  {_where(move)}"
        if command := _next(move):
            yield f"  {command}"


def trend_markdown(found: Sequence[Move]) -> str:
    """A table of all, and what to type for what got worse; empty where nothing moved."""
    if not found:
        return ""
    rows = [
        [
            Cell(_word(move)), Cell(move.series.measurand), Cell(move.series.title),
            Cell(move.series.testbed, is_name=True),
            Cell(f"{'creeping, ' if move.creeps else ''}{change_in_words(move.change, move.lower, move.upper)}"),
            _build(move.before), _build(move.after),
        ]
        for move in found
    ]  # fmt: skip
    within = dict.fromkeys(markdown_text(f"{move.series.title}: {move.sentence}") for move in found if move.within)
    blocks = [
        f"**{what_moved(found)}**, {sum(not move.worse for move in found)} got better.",
        table_markdown(Table("", _COLUMNS, rows)),
    ]
    return "\n\n".join([*blocks, *within, *map(block, measuring_again(found))]) + "\n"


def what_moved(found: Sequence[Move]) -> str:
    """``2 scenarios got slower (7 measurands)``: how many places a person has to look at."""
    series = {id(move.series): move.series for move in found if move.worse}.values()
    places = len({(one.title, one.testbed, one.fingerprint) for one in series})
    if not places:
        return "Nothing got slower" if found else "No level moved"
    what = f"{len(series)} measurand{'s' * (len(series) > 1)}"
    return f"{places} scenario{'s' * (places > 1)} got slower ({what})"


def measuring_again(found: Sequence[Move]) -> list[str]:
    """Commands that measure again what got worse, each once."""
    return list(dict.fromkeys(move.command for move in found if move.worse and move.command))


def trend_record(series: Sequence[Series], found: Sequence[Move]) -> dict[str, object]:
    """Moves of a trend as JSON has them: each with its builds, and how much was looked at."""
    points = [point for one in series for point in one.points]
    return {
        "series": len(series),
        "points": len(points),
        "left_out": sum(not point.counts for point in points),
        "moves": [_record(move) for move in found],
    }


def _record(move: Move) -> dict[str, object]:
    told = {name: getattr(move.series, name) for name in _TOLD}
    ends = {name: {"build": one.build, "run": one.run, "time": one.time, "value": one.value}
            for name, one in (("before", move.before), ("after", move.after))}  # fmt: skip
    numbers = {name: getattr(move, name) for name in ("change", "lower", "upper")}
    return told | ends | numbers | {
        "confidence": MOVE_CONFIDENCE, "worse": move.worse, "creeps": move.creeps, "builds": list(move.builds),
        "sentence": move.sentence, "command": move.command,
        "functions": [
            {name: getattr(one, name) for name in ("function", "before", "after", "change")} for one in move.functions
        ],
    }  # fmt: skip


def _word(move: Move) -> str:
    return "WORSE" if move.worse else "BETTER"


def _where(move: Move) -> str:
    series = move.series
    counted = [point for point in series.points if point.counts]
    before, since = counted.index(move.before) + 1, len(counted) - counted.index(move.after)
    return (
        f"{series.title} on {series.testbed} ({series.fingerprint}); {day(move.before)} to {day(move.after)}, "
        f"{before} runs before, {since} since"
    )


def _next(move: Move) -> str:
    if not move.command:
        return ""
    return f"{move.command}   ({_BISECT})" if len(move.builds) > 2 else move.command


def _build(point: Point) -> Cell:
    return Cell(point.build, is_name=True, detail=day(point))


def day(point: Point) -> str:
    """The day of a run in local time."""
    return time.strftime("%Y-%m-%d", time.localtime(point.time))
