"""Frames that are not what a router makes of them: by field in a table, byte by byte below it, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from pdrgate.reports.tree import Block, Cell, Column, Preformatted, ReportPart, Table
from pdrgate.results.model import ForwardedFrameResult, ScenarioResult
from pdrgate.traffic.frame_fields import Field, fields

_DIRECTIONS = ("forward", "reverse")
_COLUMNS = (Column("field", heads=True), Column("sent"), Column("must be"), Column("came"), Column(""))
_BYTES_A_LINE = 16


def frames_part(scenario: ScenarioResult) -> ReportPart:
    """Each frame: its fields as they were sent, must be and came, and the bytes that came, those that differ marked."""
    frames = scenario.details.frames
    return ReportPart(
        title="Wrong frames",
        remarks=[f"a frame of {_whose(one)}: {'; '.join(one.differences)}" for one in frames],
        whole=[block for one in frames for block in _blocks(one)],
    )


def _blocks(one: ForwardedFrameResult) -> Iterator[Block]:
    sent, must_be, got = map(bytes.fromhex, (one.sent, one.must_be, one.got))
    rows = [_row(field, sent, must_be, got) for field in fields(must_be)]
    if len(must_be) != len(got):
        texts = (f"{len(frame)} bytes" for frame in (sent, must_be, got))
        rows.append([Cell("frame length"), *map(Cell, texts), Cell("differs")])
    yield Table(f"A frame of {_whose(one)}: {'; '.join(one.differences)}", _COLUMNS, rows)
    yield Preformatted(list(_lines(must_be, got)))


def _whose(one: ForwardedFrameResult) -> str:
    traffic = f"{_DIRECTIONS[one.direction]} traffic"
    return f"the {one.side}'s {traffic}" if one.side else traffic


def _row(field: Field, sent: bytes, must_be: bytes, got: bytes) -> list[Cell]:
    differs = must_be[field.begin : field.end] != got[field.begin : field.end]
    texts = (field.text(sent), field.text(must_be), field.text(got))
    return [Cell(field.name), *map(Cell, texts), Cell("differs" if differs else "")]


def _lines(must_be: bytes, got: bytes) -> Iterator[list[tuple[str, bool]]]:
    for at in range(0, len(got), _BYTES_A_LINE):
        pairs = zip_longest(got[at : at + _BYTES_A_LINE], must_be[at : at + _BYTES_A_LINE])
        pieces = [(f"{came:02x}", came != wanted) for came, wanted in pairs if came is not None]
        yield [(f"{at:04x} ", False), *(piece for one in pieces for piece in ((" ", False), one))]
