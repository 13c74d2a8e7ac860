"""The way of a packet through the kernel as an icicle: who called whom, how much each took, and what has changed.

Each function lies below its caller and is as wide as the instructions that it takes with all that it calls, as in flame
graphs (B. Gregg, The Flame Graph, Communications of the ACM 59, 2016), of which it is one upside down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pdrgate.measurands.renamed import renamed
from pdrgate.reports.markup.html import rendered
from pdrgate.results.model import CostResult, FrameResult, ScenarioResult

_WIDTH = 1200.0
_ROW = 17
_LETTER = 6.1
"""Width of a letter of a label, in the picture's units."""
_NARROW = 1.0
"""Frames that are less wide are left out, with what they call."""
_CHANGED = 1.0, 0.02
"""A frame has changed where it is by so many instructions, and by such a part of itself: single functions repeat to a
few tenths, the allocator's to more."""
_STRONG = 0.25
"""Part of a frame that has changed, to be coloured strongly."""

_Tone = Literal["same", "more", "much-more", "less", "much-less"]


@dataclass
class _Node:
    """A function below one chain of callers, in either build."""

    function: str
    before: float = 0.0
    """Instructions per packet, with all that it calls."""
    after: float = 0.0
    own_before: float = 0.0
    own_after: float = 0.0
    calls_before: float = 0.0
    calls_after: float = 0.0
    called: dict[str, _Node] = field(default_factory=dict)

    @property
    def width(self) -> float:
        """What is gone is drawn as wide as it was."""
        return max(self.before, self.after, sum(one.width for one in self.called.values()))


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


def icicles(scenario: ScenarioResult) -> Iterator[str]:
    """HTML of the candidate against the baseline where builds were compared, else of the only build."""
    if not scenario.builds.sides:
        if scenario.findings.cost is not None and scenario.findings.cost.path:
            yield icicle(scenario.findings.cost)
        return
    costs = {side.side: side.findings.cost for side in scenario.builds.sides}
    before, after = costs.get("baseline"), costs.get("candidate")
    if after is not None and after.path:
        yield icicle(after, before if before is not None and before.path else None)


def icicle(after: CostResult, before: CostResult | None = None) -> str:
    """A figure that stands well in Robot's log as in a page.

    Args:
        before: what it is compared with; None: nothing.
    """
    root = _Node("")
    names: dict[str, str] = {}
    if before is not None:
        for earlier, later in renamed(before, after).items():
            names[earlier] = names[later] = f"{earlier} -> {later}"
        _put(root, before.path, names, is_after=False)
    _put(root, after.path, names, is_after=True)
    compared = before is not None
    frames = list(_drawn(root, 0.0, 0, _WIDTH / (root.width or 1.0), compared))
    height = _ROW * (1 + max((one.y for one in frames), default=0))
    return rendered(
        "icicle.html.j2", frames=frames, width=_WIDTH, height=height, row=_ROW, compared=compared
    ).replace("\n", "")  # fmt: skip


def _put(root: _Node, path: Sequence[FrameResult], names: Mapping[str, str], *, is_after: bool) -> None:
    """Add the frames of one build; ``names`` are those of functions that the two builds call otherwise."""
    nodes: list[_Node] = []
    for one in path:
        known = one.caller is not None and 0 <= one.caller < len(nodes)
        caller = nodes[one.caller or 0] if known else root
        name = names.get(one.function, one.function)
        node = caller.called.setdefault(name, _Node(name))
        if is_after:
            node.after, node.own_after, node.calls_after = one.instructions, one.own, one.calls
        else:
            node.before, node.own_before, node.calls_before = one.instructions, one.own, one.calls
        nodes.append(node)


def _drawn(caller: _Node, x: float, depth: int, scale: float, compared: bool) -> Iterator[_Frame]:
    for one in sorted(caller.called.values(), key=lambda node: -node.width):
        width = one.width * scale
        if width >= _NARROW:
            told = _change(one) if compared else ""
            letters = int(width / _LETTER) - 1
            yield _Frame(
                round(x, 1), depth * _ROW, round(width, 1), _clipped(one.function, told, letters),
                _sentence(one, compared), _tone(one) if compared else "same", compared and not one.after,
            )  # fmt: skip
            yield from _drawn(one, x, depth + 1, scale, compared)
        x += width


def _change(one: _Node) -> str:
    """``+12``; empty where it is too small to be one."""
    if not one.before:
        return "new"
    if not one.after:
        return "gone"
    return f"{one.after - one.before:+.0f}" if _has_changed(one) else ""


def _has_changed(one: _Node) -> bool:
    least, part = _CHANGED
    return abs(one.after - one.before) >= max(least, part * max(one.before, one.after))


def _tone(one: _Node) -> _Tone:
    if not _has_changed(one):
        return "same"
    strong = abs(one.after - one.before) >= _STRONG * max(one.before, one.after)
    if one.after > one.before:
        return "much-more" if strong else "more"
    return "much-less" if strong else "less"


def _clipped(function: str, told: str, letters: int) -> str:
    """As much text as fits; what has changed stands before the name's end."""
    room = letters - len(told) - 1 if told else letters
    name = function if len(function) <= room else f"{function[: room - 1]}…" if room > 3 else ""
    return f"{name} {told}".strip() if len(told) <= letters else ""


def _sentence(one: _Node, compared: bool) -> str:
    now = (
        f"{one.function}: {one.after:.1f} instructions per packet with all that it calls, {one.own_after:.1f} itself, "
        f"called {one.calls_after:.3g} times a packet"
    )
    if not compared:
        return now
    before = f"before {one.before:.1f}, {one.own_before:.1f} and {one.calls_before:.3g}"
    return f"{now}; {before}; {one.after - one.before:+.1f}"
