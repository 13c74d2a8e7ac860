"""The way of a packet through the kernel: who called whom, and how much each took in either build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pdrgate.measurands import Cost
from pdrgate.measurands.functions.renamed import renamed
from pdrgate.reports.tree import Figure, ReportPart
from pdrgate.results.model import CostResult, FrameResult, ScenarioResult
from pdrgate.results.verdict import Verdict
from pdrgate.values.printable import printable

_CHANGED = 1.0, 0.02
"""A frame has changed where it is by so many instructions, and by such a part of itself: single functions repeat to a
few tenths, the allocator's to more."""
_STRONG = 0.25
"""ReportPart of a frame that has changed, to be called strong."""
_LEAST = 0.03
"""A share of all instructions: a function of less that has not changed, and calls none that has, is no line of text."""
_LINES, _NAME, _BAR = 40, 52, 20


@dataclass
class WayNode:
    """A function below one chain of callers, in either build."""

    function: str
    before: float = 0.0
    """Instructions per packet, with all that it calls."""
    after: float = 0.0
    own_before: float = 0.0
    own_after: float = 0.0
    calls_before: float = 0.0
    calls_after: float = 0.0
    called: dict[str, WayNode] = field(default_factory=dict)

    @property
    def width(self) -> float:
        """What is gone is as wide as it was."""
        return max(self.before, self.after, sum(one.width for one in self.called.values()))

    @property
    def widest_first(self) -> list[WayNode]:
        """What it calls."""
        return sorted(self.called.values(), key=lambda one: -one.width)

    @property
    def has_changed(self) -> bool:
        """Whether it differs by more than trials do."""
        least, part = _CHANGED
        return abs(self.after - self.before) >= max(least, part * max(self.before, self.after))

    @property
    def has_changed_much(self) -> bool:
        """Whether that is a quarter of it, or more."""
        return self.has_changed and abs(self.after - self.before) >= _STRONG * max(self.before, self.after)


@dataclass(frozen=True)
class Way(Figure):
    """The way of a packet as a figure."""

    root: WayNode
    is_compared: bool
    measurand: str = ""
    """A measurand that is judged by function and is worse, such as atomics; empty for instructions."""
    changes: Mapping[str, float] = field(default_factory=dict)
    """How much of that measurand each function has more, wherever it is called; empty for instructions."""


def tree_of(after: CostResult, before: CostResult | None = None) -> WayNode:
    """The frames of one build, or of two in one tree; its root calls what nobody called."""
    root = WayNode("")
    names: dict[str, str] = {}
    if before is not None:
        for earlier, later in renamed(before, after).items():
            names[earlier] = names[later] = f"{earlier} -> {later}"
        _put(root, before.path, names, is_after=False)
    _put(root, after.path, names, is_after=True)
    return root


def costs_with_ways(scenario: ScenarioResult) -> tuple[CostResult, CostResult | None] | None:
    """The cost of the candidate and of the baseline, or of the only build; None where nobody followed calls."""
    if not scenario.builds.sides:
        cost = scenario.findings.cost
        return (cost, None) if cost is not None and cost.path else None
    costs = {side.side: side.findings.cost for side in scenario.builds.sides}
    before, after = costs.get("baseline"), costs.get("candidate")
    if after is None or not after.path:
        return None
    return after, before if before is not None and before.path else None


def way_part(scenario: ScenarioResult) -> ReportPart:
    """The way of a packet of the candidate against the baseline, else of the only build."""
    found = costs_with_ways(scenario)
    if found is None:
        return ReportPart()
    way = Way(tree_of(*found), is_compared=found[1] is not None)
    # The tree of one build alone shows nothing that its table of functions does not.
    ways = [*_ways_of_worse(scenario, way), way] if way.is_compared else [way]
    return ReportPart(
        title="The way of a packet, base against candidate", brief=ways[:1] if way.is_compared else (), whole=ways
    )  # fmt: skip


def _ways_of_worse(scenario: ScenarioResult, way: Way) -> Iterator[Way]:
    """Ways of the same calls for each worse measurand that has no stacks: its functions are marked."""
    for one in scenario.comparison.changes if scenario.comparison is not None else ():
        if one.verdict is Verdict.REGRESSION and one.measurand != Cost.name and one.parts:
            yield Way(way.root, True, one.measurand, {part.function: part.change for part in one.parts})


def folded_stacks(cost: CostResult) -> str:
    """The frames of a build as collapsed stacks, ``caller;function 120``: instructions of a packet.

    The format is that of stackcollapse (B. Gregg, FlameGraph), which speedscope and the Firefox profiler open. The
    profiler makes a sample of each instruction, so a finer unit would make millions of them.
    """
    stacks: list[str] = []
    lines = []
    for one in cost.path:
        function = printable(one.function).replace(";", ":").replace(" ", "_")
        known = one.caller is not None and 0 <= one.caller < len(stacks)
        stacks.append(f"{stacks[one.caller or 0]};{function}" if known else function)
        if weight := round(one.own):
            lines.append(f"{stacks[-1]} {weight}\n")
    return "".join(lines)


def callers_of(*costs: CostResult | None) -> dict[str, tuple[str, ...]]:
    """Functions by whom they are called in any of the builds, who calls them most often first."""
    calls: dict[str, dict[str, float]] = {}
    for cost in filter(None, costs):
        for one in cost.path:
            if one.caller is not None and 0 <= one.caller < len(cost.path):
                own = calls.setdefault(one.function, {})
                caller = cost.path[one.caller].function
                own[caller] = own.get(caller, 0.0) + one.calls
        for function, callers in cost.callers.items():
            for caller in callers:
                calls.setdefault(function, {}).setdefault(caller, 0.0)
    return {function: tuple(sorted(own, key=lambda one: -own[one])) for function, own in calls.items()}


def way_lines(way: Way) -> list[str]:
    """The tree of two builds as lines of text, with a bar as long as each change."""
    root = way.root
    shown = list(_shown(root, 0, _LEAST * root.width))[:_LINES]
    longest = max((abs(one.after - one.before) for _, one in shown), default=0.0) or 1.0
    lines = [f"{'':{_NAME}}{'base':>7}{'candidate':>11}{'change':>8}"]
    for depth, one in shown:
        indented = f"{' ' * depth}{printable(one.function)}"
        name = indented if len(indented) < _NAME else f"{indented[: _NAME - 2]}…"
        change = one.after - one.before
        bar = ("█" if change > 0 else "░") * round(_BAR * abs(change) / longest) if one.has_changed else ""
        told = f"{change:+z8.0f}" if one.has_changed else " " * 8
        lines.append(f"{name:{_NAME}}{one.before:7.0f}{one.after:11.0f}{told}  {bar}".rstrip())
    return lines


def _shown(caller: WayNode, depth: int, least: float) -> Iterator[tuple[int, WayNode]]:
    for one in caller.widest_first:
        if one.width >= least or _changes(one):
            yield depth, one
            yield from _shown(one, depth + 1, least)


def _changes(one: WayNode) -> bool:
    return one.has_changed or any(map(_changes, one.called.values()))


def _put(root: WayNode, path: Sequence[FrameResult], names: Mapping[str, str], *, is_after: bool) -> None:
    """Add the frames of one build; ``names`` are those of functions that the two builds call otherwise."""
    nodes: list[WayNode] = []
    for one in path:
        known = one.caller is not None and 0 <= one.caller < len(nodes)
        caller = nodes[one.caller or 0] if known else root
        name = names.get(one.function, one.function)
        node = caller.called.setdefault(name, WayNode(name))
        if is_after:
            node.after, node.own_after, node.calls_after = one.instructions, one.own, one.calls
        else:
            node.before, node.own_before, node.calls_before = one.instructions, one.own, one.calls
        nodes.append(node)
