"""The way of a packet through the kernel as an icicle: who called whom, how much each took, and what has changed.

Each function lies below its caller and is as wide as the instructions that it takes with all that it calls, as in flame
graphs (B. Gregg, The Flame Graph, Communications of the ACM 59, 2016), of which it is one upside down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pdrgate.reports.markup.html import rendered
from pdrgate.reports.words.packet_way import Way, WayNode

_WIDTH = 1200.0
_ROW = 17
_LETTER = 6.1
"""Width of a letter of a label, in the picture's units."""
_NARROW = 1.0
"""Frames that are less wide are left out, with what they call."""
_Tone = Literal["same", "more", "much-more", "less", "much-less"]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame as it is drawn."""

    x: float
    y: int
    width: float
    label: str
    told: str
    tone: _Tone
    gone: bool


def icicle(way: Way) -> str:
    """HTML of a figure that stands well in Robot's log as in a page."""
    root, compared = way.root, way.is_compared
    frames = list(_drawn(root, 0.0, 0, _WIDTH / (root.width or 1.0), way))
    height = _ROW + max((one.y for one in frames), default=0)
    return rendered(
        "icicle.html.j2", frames=frames, width=_WIDTH, height=height, row=_ROW, compared=compared,
        measurand=way.measurand,
    ).replace("\n", "")  # fmt: skip


def _drawn(caller: WayNode, x: float, depth: int, scale: float, way: Way) -> Iterator[_Frame]:
    for one in caller.widest_first:
        width = one.width * scale
        if width >= _NARROW:
            compared = way.is_compared
            told, tone = (_change(one), _tone(one)) if compared and not way.measurand else _marked(one, way)
            letters = int(width / _LETTER) - 1
            yield _Frame(
                round(x, 1), depth * _ROW, round(width, 1), _clipped(one.function, told, letters),
                _sentence(one, way), tone, compared and not one.after,
            )  # fmt: skip
            yield from _drawn(one, x, depth + 1, scale, way)
        x += width


def _change(one: WayNode) -> str:
    """``+12``; empty where it is too small to be one."""
    if not one.before:
        return "new"
    if not one.after:
        return "gone"
    return f"{one.after - one.before:+z.0f}" if one.has_changed else ""


def _marked(one: WayNode, way: Way) -> tuple[str, _Tone]:
    """The change of a measurand without stacks, in each frame of the function that it is in."""
    change = way.changes.get(one.function.rpartition(" -> ")[2], 0.0)
    return (f"{change:+z.3g}", "much-more" if change > 0 else "much-less") if change else ("", "same")


def _tone(one: WayNode) -> _Tone:
    if not one.has_changed:
        return "same"
    if one.after > one.before:
        return "much-more" if one.has_changed_much else "more"
    return "much-less" if one.has_changed_much else "less"


def _clipped(function: str, change: str, letters: int) -> str:
    """Function's name with its change behind it, as many letters as fit.

    The name is cut first; without room for the change, nothing is shown.
    """
    room = letters - len(change) - 1 if change else letters
    name = function if len(function) <= room else f"{function[: room - 1]}…" if room > 3 else ""
    return f"{name} {change}".strip() if len(change) <= letters else ""


def _sentence(one: WayNode, way: Way) -> str:
    now = (
        f"{one.function}: {one.after:.1f} instructions per packet with all that it calls, {one.own_after:.1f} itself, "
        f"called {one.calls_after:.3g} times a packet"
    )
    if not way.is_compared:
        return now
    if change := _marked(one, way)[0]:
        now = f"{one.function}: {change} {way.measurand} per packet, wherever it is called; {now}"
    before = f"before {one.before:.1f}, {one.own_before:.1f} and {one.calls_before:.3g}"
    return f"{now}; {before}; {one.after - one.before:+z.1f}"
