"""A run, or a comparison of files, as Markdown: what a person pastes into a pull request, and a CI into its summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from pdrgate.reports.markup.gfm import block, code, cut, markdown_table, markdown_text
from pdrgate.reports.words.build_words import build_lines
from pdrgate.reports.words.costs import INLINED, changes_table, largest_changes, notice_lines, total_change
from pdrgate.reports.words.drop_words import drops_lines, drops_rows
from pdrgate.reports.words.frame_words import frames_lines
from pdrgate.reports.words.latencies import latency_by_build, latency_cells, share_in_words
from pdrgate.reports.words.measurands import MeasurandLine, change_rows, measurand_rows
from pdrgate.reports.words.path_table import NUMBERS, PATH_HEAD, is_portfolio, path_lines, said_of_paths
from pdrgate.reports.words.soak_words import soak_lines
from pdrgate.reports.words.spike_in_words import spike_in_lines
from pdrgate.reports.words.vector_words import vectors_lines
from pdrgate.results.model import ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.units import Rate, Ratio

MARKDOWN_FILE = "summary.md"
_COMPARED = ("measurand", "base", "candidate", "change (interval)", "verdict", "evidence", "resolvable change")
_MEASURED = ("measurand", "value", "95 % interval", "verdict")
_NUMERIC = frozenset({"base", "candidate", "value", "95 % interval", "change (interval)", "resolvable change"})
_EVIDENCE = (
    "Evidence: how much likelier the pairs are of a build that is worse (better) by twice the tolerance than of one "
    "that is unchanged, or the reverse. Resolvable change: the least tolerance that as many such pairs decide."
)
_REMARKS = 10
"""The most remarks on a run: hundreds of lines of a kernel's log belong into its console file."""


def run_markdown(result: RunResult) -> str:
    """The whole run: verdict, changes, cost by function, what disturbed, and the command that does it again."""
    others = [_paths(result)] if is_portfolio(result) else _others(result)
    blocks = [_verdict(result.verdict, result.reason), *others, _builds(result)]
    blocks += [_differences(result), *([] if is_portfolio(result) else [_table(result.scenarios)])]
    for scenario in result.scenarios:
        if is_portfolio(result) and scenario.verdict.passes:
            continue
        of = f" ({markdown_text(cut(scenario.title))})" if len(result.scenarios) > 1 else ""
        if scenario.comparison is not None:
            blocks.append(_functions(scenario.comparison, of))
        blocks += [_latency(scenario, of), _drops(scenario, of)]
    blocks += [_list([remark for one in result.scenarios for remark in _remarks(one, result)]), _origin(result)]
    if result.command:
        blocks += ["Again:", block(result.command)]
    return _joined(blocks)


def comparison_markdown(comparison: ComparisonResult | None, judgement: Judgement, candidate: str) -> str:
    """Two sets of trial files; ``comparison`` is None where no change could be computed."""
    blocks = [_verdict(judgement.verdict, judgement.reason)]
    if comparison is not None:
        rows = change_rows(comparison)
        blocks += [
            f"{code(cut(candidate))} against {_against(comparison)}.",
            markdown_table(_COMPARED, [_compared(row) for row in rows], _NUMERIC),
            _EVIDENCE if any(row.evidence for row in rows) else "",
            _functions(comparison, ""),
            _list(
                [f"The verdict does not rest on the change: {markdown_text(comparison.why_not)}"]
                * bool(comparison.why_not)
            ),
        ]
    return _joined(blocks)


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def _verdict(verdict: Verdict, reason: str) -> str:
    return f"**{verdict}:** {markdown_text(reason)}"


def _others(result: RunResult) -> Iterator[str]:
    """What the scenarios came to that do not decide, where there are several."""
    if len(result.scenarios) > 1:
        yield _list([f"{_verdict(one.verdict, f'{cut(one.title)}: {one.reason}')}" for one in result.scenarios])


def _paths(result: RunResult) -> str:
    """All paths in one table, and what they have in common."""
    head, numeric = PATH_HEAD, frozenset(PATH_HEAD[at] for at in NUMBERS)
    rows = [[markdown_text(cut(cell)) for cell in one.cells] for one in path_lines(result)]
    told = _list([markdown_text(one) for one in said_of_paths(result)])
    return "\n\n".join(filter(None, (markdown_table(head, rows, numeric), told)))


def _builds(result: RunResult) -> str:
    """What was compared, where all scenarios compared the same."""
    told = {
        f"{code(cut(_candidate(one)))} against {_against(one.comparison)}."
        for one in result.scenarios
        if one.comparison is not None
    }
    return told.pop() if len(told) == 1 else ""


def _differences(result: RunResult) -> str:
    """What builds differ by beside their change, once where all scenarios compared the same."""
    lines = dict.fromkeys(line for one in result.scenarios for line in build_lines(one))
    return _list([markdown_text(line) for line in lines])


def _candidate(scenario: ScenarioResult) -> str:
    side = scenario.builds.side("candidate")
    return side.build if side else f"kernel {scenario.findings.fingerprint.get('kernel', 'unknown')}"


def _against(comparison: ComparisonResult) -> str:
    pairs = f", {comparison.pairs_in_words}" if comparison.pairs else ""
    others = {
        one.measurand: Ratio(one.tolerance) for one in comparison.changes if one.tolerance != comparison.tolerance
    }
    further = f" ({', '.join(f'{markdown_text(name)} {ratio}' for name, ratio in others.items())})" if others else ""
    return f"{code(cut(comparison.baseline))}{pairs}, tolerance {Ratio(comparison.tolerance)}{further}"


def _table(scenarios: Sequence[ScenarioResult]) -> str:
    """A row per scenario and measurand, with a base where there is one to compare with."""
    if not scenarios:
        return ""
    is_compared = any(one.comparison for one in scenarios)
    head = _COMPARED if is_compared else _MEASURED
    rows = [
        [markdown_text(cut(scenario.title)) if number == 0 else "", *cells]
        for scenario in scenarios
        for number, cells in enumerate(_rows(scenario, is_compared))
    ]
    told = markdown_table(("scenario", *head), rows, _NUMERIC)
    evident = any(row.evidence for one in scenarios for row in measurand_rows(one))
    return f"{told}\n\n{_EVIDENCE}" if evident else told


def _rows(scenario: ScenarioResult, is_compared: bool) -> Iterator[list[str]]:
    rows = measurand_rows(scenario)
    for row in rows:
        yield (
            _compared(row)
            if is_compared
            else [*map(markdown_text, (row.name, row.value, row.interval)), scenario.verdict]
        )
    if not rows:
        head = _COMPARED if is_compared else _MEASURED
        yield [scenario.verdict if name == "verdict" else "" for name in head]


def _compared(row: MeasurandLine) -> list[str]:
    cells = row.name, row.baseline, row.value, row.change, row.verdict or "", row.evidence, row.resolves
    return [markdown_text(cut(cell)) for cell in cells]


def _functions(comparison: ComparisonResult, of: str) -> str:
    largest, number = largest_changes(comparison.functions)
    if not largest:
        return ""
    most = f", the largest {len(largest)} of {number} changes" if number > len(largest) else ""
    told = changes_table(largest, comparison.functions, total_change(comparison))
    functions = {one.label for one in largest}
    rows = [[code(cut(row[0])) if row[0] in functions else row[0], *row[1:]] for row in told.rows]
    drawn = markdown_table(told.head, rows, frozenset(told.head[1:]))
    return f"Instructions per packet by function{of}{most} ({INLINED}):\n\n{drawn}"


def _latency(scenario: ScenarioResult, of: str) -> str:
    """A row per build and share of the PDR."""
    rows = [
        [
            label,
            share_in_words(one),
            str(Rate(one.load)),
            *latency_cells(one)[:3],
        ]
        for label, found in latency_by_build(scenario)
        for one in found
    ]
    head = ("", "at", "load", "median", "90 %", "99 %")
    return f"One-way latency{of}:\n\n{markdown_table(head, rows, frozenset(head[2:]))}" if rows else ""


def _drops(scenario: ScenarioResult, of: str) -> str:
    """A row per place; what they are of stands among the remarks."""
    if scenario.details.drops is None or not scenario.details.drops.places:
        return ""
    head, rows = drops_rows(scenario.details.drops)
    return f"Dropped packets, each seen{of}:\n\n{markdown_table(head, rows, frozenset(('packets',)))}"


def _remarks(scenario: ScenarioResult, result: RunResult) -> Iterator[str]:
    """What disturbed, what a kernel complained of, which boots failed, and what the verdict does not rest on."""
    of = f"{markdown_text(cut(scenario.title))}: " if len(result.scenarios) > 1 else ""
    comparison = scenario.comparison
    if comparison is not None and not comparison.accepted:
        yield f"{of}the verdict does not rest on the change: {markdown_text(comparison.why_not)}"
    lines = (frames_lines, vectors_lines, notice_lines, drops_lines, soak_lines, spike_in_lines)
    for line in chain.from_iterable(told(scenario) for told in lines):
        yield f"{of}{markdown_text(line)}"
    if scenario.details.interference:
        yield f"{of}meanwhile {markdown_text(scenario.details.interference)}"
    for boot in scenario.builds.boots:
        if boot.failure:
            yield f"{of}boot {boot.pair} of the {boot.side} failed: {markdown_text(boot.failure)}"
    for complaint in scenario.findings.complaints:
        yield f"{of}the SUT's kernel: {code(cut(complaint))}"
    if scenario.details.uncounted:
        yield f"{of}{markdown_text(scenario.details.uncounted)}"


def _list(points: Sequence[str]) -> str:
    left = [f"and {len(points) - _REMARKS} more, in summary.html"] if len(points) > _REMARKS else []
    return "\n".join(f"- {point[:1].upper()}{point[1:]}" for point in [*points[:_REMARKS], *left])


def _origin(result: RunResult) -> str:
    sentence = f" ({markdown_text(result.testbed.sentence)})" if result.testbed.sentence else ""
    ended = "" if result.finished is not None else ", which did not come to its end"
    return (
        f"Run {code(cut(result.run))}{ended}; testbed {code(cut(result.testbed.name))}{sentence}, profile "
        f"{code(cut(result.profile))}, pdrgate {markdown_text(cut(result.pdrgate))}."
    )
