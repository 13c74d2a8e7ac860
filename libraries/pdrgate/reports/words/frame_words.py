"""Frames that are not what a router makes of them: by field in a table, byte by byte below it, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from markupsafe import Markup

from pdrgate.reports.markup.html import Cell, Column, Table
from pdrgate.results.model import ForwardedFrameResult, ScenarioResult
from pdrgate.traffic.frame_fields import Field, fields

_DIRECTIONS = ("forward", "reverse")
_COLUMNS = (Column("field", heads=True), Column("sent"), Column("must be"), Column("came"), Column(""))
_BYTES_A_LINE = 16


def frames_tables(scenario: ScenarioResult) -> Iterator[str]:
    """Each frame: its fields as they were sent, must be and came, and the bytes that came, those that differ marked."""
    for one in scenario.details.frames:
        sent, must_be, got = map(bytes.fromhex, (one.sent, one.must_be, one.got))
        rows = [_row(field, sent, must_be, got) for field in fields(must_be)]
        if len(must_be) != len(got):
            texts = (f"{len(frame)} bytes" for frame in (sent, must_be, got))
            rows.append([Cell("frame length"), *map(Cell, texts), Cell("differs")])
        yield Table(f"A frame of {_whose(one)}: {'; '.join(one.differences)}", _COLUMNS, rows).html()
        yield Markup("<pre>{}</pre>").format(Markup("\n").join(_lines(must_be, got)))


def frames_lines(scenario: ScenarioResult) -> list[str]:
    """What a console has room for."""
    return [f"a frame of {_whose(one)}: {'; '.join(one.differences)}" for one in scenario.details.frames]


def _whose(one: ForwardedFrameResult) -> str:
    traffic = f"{_DIRECTIONS[one.direction]} traffic"
    return f"the {one.side}'s {traffic}" if one.side else traffic


def _row(field: Field, sent: bytes, must_be: bytes, got: bytes) -> list[Cell]:
    differs = must_be[field.begin : field.end] != got[field.begin : field.end]
    texts = (field.text(sent), field.text(must_be), field.text(got))
    return [Cell(field.name), *map(Cell, texts), Cell("differs" if differs else "")]


def _lines(must_be: bytes, got: bytes) -> Iterator[Markup]:
    for at in range(0, len(got), _BYTES_A_LINE):
        pairs = zip_longest(got[at : at + _BYTES_A_LINE], must_be[at : at + _BYTES_A_LINE])
        told = (_byte(came, wanted) for came, wanted in pairs if came is not None)
        yield Markup("{:04x}  ").format(at) + Markup(" ").join(told)


def _byte(came: int, wanted: int | None) -> Markup:
    text = Markup(f"{came:02x}")
    return text if came == wanted else Markup("<mark>{}</mark>").format(text)
