"""A run, or a comparison of files, as Markdown: what a person pastes into a pull request, and a CI into its summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from pdrgate.reports.markup.gfm import block, block_of, code, cut, markdown_table, markdown_text
from pdrgate.reports.words.build_words import build_lines
from pdrgate.reports.words.costs import INLINED, changes_table, largest_changes, notice_lines, total_change
from pdrgate.reports.words.drop_words import drops_lines, drops_rows
from pdrgate.reports.words.frame_words import frames_lines
from pdrgate.reports.words.headline import fault_in_words, headline, left_out, scenario_headline
from pdrgate.reports.words.latencies import latency_by_build, latency_cells, share_in_words
from pdrgate.reports.words.measurands import (
    EVIDENCE,
    MeasurandLine,
    change_rows,
    intervals_in_words,
    judged_first,
    measurand_rows,
    tolerance_told,
    verdict_in_words,
)
from pdrgate.reports.words.memory_words import MEMORY_CAPTION, memory_table
from pdrgate.reports.words.packet_way import packet_way
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import heading, is_portfolio, path_lines
from pdrgate.reports.words.soak_words import soak_lines
from pdrgate.reports.words.spike_in_words import spike_in_lines
from pdrgate.reports.words.vector_words import vectors_lines
from pdrgate.results.model import ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.units import Rate, Ratio

MARKDOWN_FILE = "summary.md"
_COMPARED = ("", "base", "candidate", "change")
_MEASURED = ("", "value", "95 % interval")
_GROUNDS = ("", "candidate's 95 % interval", "confidence of the change", "evidence", "resolvable change")
_NUMERIC = frozenset({*_COMPARED[1:], *_MEASURED[1:], *_GROUNDS[1:]} - {"evidence"})
_SENTENCE = 200
"""Characters of a cell that says several things, with names among them."""
_REMARKS = 10
"""The most remarks on a run: hundreds of lines of a kernel's log belong into its console file."""


def run_markdown(result: RunResult, address: str = "") -> str:
    """The whole run: headline, changes, and folded below them what they rest on and the command that does it again.

    Args:
        address: where the run's pages are shown, if anywhere.
    """
    told = headline(result)
    blocks = [
        _verdict(result.verdict, told.removeprefix(f"{result.verdict}: ")),
        fault_in_words(result),
        _builds(result),
    ]
    blocks += [_paths(result)] if is_portfolio(result) else [_table(one, result) for one in result.scenarios]
    blocks.append(_link(address))
    shown = [one for one in result.scenarios if not (is_portfolio(result) and one.verdict.passes)]
    for scenario in shown:
        of = f" ({markdown_text(cut(heading(scenario)))})" if len(result.scenarios) > 1 else ""
        if scenario.comparison is not None:
            blocks.append(_folded("Functions that changed", _functions(scenario.comparison, of)))
        blocks.append(_folded("Memory that changed", _memory(scenario, of)))
        blocks.append(_folded("The way of a packet, base against candidate", _way(scenario, of)))
        blocks += [_folded("Latency", _latency(scenario, of)), _folded("Dropped packets", _drops(scenario, of))]
    remarks = [markdown_text(one) for one in left_out(told, result.reason)]
    remarks += [remark for one in result.scenarios for remark in _remarks(one, result)]
    blocks += [_beside(result), _folded("What else was seen", _list(remarks))]
    blocks.append(_folded("What the verdicts rest on", "\n\n".join(filter(None, map(_grounds, shown)))))
    again = ["Again:", block(result.command)] if result.command else []
    blocks.append(_folded("This run", "\n\n".join([_origin(result), *again])))
    return _joined(blocks)


def comparison_markdown(comparison: ComparisonResult | None, judgement: Judgement, candidate: str) -> str:
    """Two sets of trial files; ``comparison`` is None where no change could be computed."""
    first, *others = left_out("", judgement.reason)
    blocks = [_verdict(judgement.verdict, first)]
    if comparison is not None:
        rows = change_rows(comparison)
        blocks += [
            f"{code(cut(candidate))} against {_against(comparison)}. {intervals_in_words(comparison)}",
            markdown_table(_COMPARED, [_compared(row) for row in rows], _NUMERIC),
            _functions(comparison, ""),
            _list(
                [f"The verdict does not rest on the change: {markdown_text(comparison.why_not)}"]
                * bool(comparison.why_not)
            ),
            _folded("What the verdicts rest on", _grounds_table(rows)),
        ]
    blocks.append(_list([markdown_text(one) for one in others]))
    return _joined(blocks)


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def _verdict(verdict: Verdict, reason: str) -> str:
    return f"**{verdict}:** {markdown_text(reason)}"


def _paths(result: RunResult) -> str:
    """All paths in one table, and what they have in common."""
    head = ("path", *_COMPARED[1:])
    lines = path_lines(result)
    rows = [
        [
            *(markdown_text(cut(cell)) for cell in (one.path, one.base, one.candidate)),
            _cell(verdict_in_words(one.verdict), one.change),
        ]
        for one in lines
    ]
    worse = [row for row, one in zip(rows, lines, strict=True) if not one.verdict.passes]
    told = _list([markdown_text(one) for one in said_of_paths(result)])
    passing = rows[len(worse) :]
    word = f"{len(passing)} paths that pass" if len(passing) > 1 else "The path that passes"
    shown = [
        markdown_table(head, worse, _NUMERIC) if worse else "",
        intervals_in_words(*(one.comparison for one in result.scenarios)),
        told,
        _folded(word, markdown_table(head, passing, _NUMERIC)) if passing else "",
    ]
    return "\n\n".join(filter(None, shown))


def _builds(result: RunResult) -> str:
    """What was compared, where all scenarios compared the same."""
    told = {
        f"{code(cut(_candidate(one)))} against {_against(one.comparison)}."
        for one in result.scenarios
        if one.comparison is not None
    }
    return told.pop() if len(told) == 1 else ""


def _beside(result: RunResult) -> str:
    """What builds differ by beside their change, once where all scenarios compared the same; and what was not measured,
    where it does not stand below the table of paths."""
    lines = dict.fromkeys(line for one in result.scenarios for line in build_lines(one))
    shown = [one for one in result.scenarios if not (is_portfolio(result) and one.verdict.passes)]
    lost = [f"{_of(one, result)}{markdown_text(line)}" for one in shown for line in one.details.unmeasured]
    return _list([*map(markdown_text, lines), *lost])


def _of(scenario: ScenarioResult, result: RunResult) -> str:
    """What a line begins with where there are several scenarios."""
    return f"{markdown_text(cut(heading(scenario)))}: " if len(result.scenarios) > 1 else ""


def _candidate(scenario: ScenarioResult) -> str:
    side = scenario.builds.side("candidate")
    return side.build if side else f"kernel {scenario.findings.fingerprint.get('kernel', 'unknown')}"


def _against(comparison: ComparisonResult) -> str:
    pairs = f", {comparison.pairs_in_words}" if comparison.pairs else ""
    others = {one.measurand: tolerance_told(one) for one in comparison.changes if one.tolerance != comparison.tolerance}
    further = f" ({', '.join(f'{markdown_text(name)} {told}' for name, told in others.items())})" if others else ""
    return f"{code(cut(comparison.baseline))}{pairs}, tolerance {Ratio(comparison.tolerance)}{further}"


def _table(scenario: ScenarioResult, result: RunResult) -> str:
    """A row per measurand below the scenario's name, with a base where there is one to compare with."""
    rows, _ = judged_first(measurand_rows(scenario))
    several = len(result.scenarios) > 1
    head = f"#### {markdown_text(cut(heading(scenario)))}" + f": {verdict_in_words(scenario.verdict)}" * several
    told = scenario_headline(scenario).partition(": ")[2] if several and not scenario.verdict.passes else ""
    drawn = ""
    if rows and scenario.comparison is not None:
        drawn = markdown_table(_COMPARED, [_compared(row) for row in rows], _NUMERIC)
    elif rows:
        cells = [[*map(markdown_text, (row.title, row.number, row.interval))] for row in rows]
        drawn = markdown_table(_MEASURED, cells, _NUMERIC)
    return "\n\n".join(filter(None, (head, markdown_text(told), drawn, intervals_in_words(scenario.comparison))))


def _compared(row: MeasurandLine) -> list[str]:
    return [
        *(markdown_text(cut(cell)) for cell in (row.title, row.baseline, row.number)), _cell(row.marked, row.changed)
    ]  # fmt: skip


def _cell(marked: str, change: str) -> str:
    """The verdict in words above the change that it is of."""
    return "<br>".join(filter(None, (marked, markdown_text(cut(change, _SENTENCE)))))


def _grounds(scenario: ScenarioResult) -> str:
    changed, besides = judged_first(measurand_rows(scenario))
    if scenario.comparison is None:
        return ""
    told = [f"{markdown_text(cut(heading(scenario)))}:", _grounds_table(changed)]
    if besides:
        told += ["Told besides:", markdown_table(_COMPARED, [_compared(row) for row in besides], _NUMERIC)]
    return "\n\n".join(told)


def _grounds_table(rows: Sequence[MeasurandLine]) -> str:
    cells = [
        [markdown_text(cut(one)) for one in (row.name, row.interval, row.confidence, row.evidence, row.resolves)]
        for row in rows
    ]
    return f"{markdown_table(_GROUNDS, cells, _NUMERIC)}\n\n{EVIDENCE}."


def _folded(title: str, told: str) -> str:
    """What is shown to who asks for it; nothing for nothing."""
    return f"<details><summary>{title}</summary>\n\n{told}\n\n</details>" if told else ""


def _way(scenario: ScenarioResult, of: str) -> str:
    lines = packet_way(scenario)
    return f"Instructions per packet{of}, with all that a function calls:\n\n{block_of(lines)}" if lines else ""


def _link(address: str) -> str:
    return f"[All of it on one page, with the flame graph]({address})" if address else ""


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


def _memory(scenario: ScenarioResult, of: str) -> str:
    told = memory_table(scenario)
    if told is None:
        return ""
    # No name of a function has a space: these rows are sums. What lines are of has names of slab caches and maps.
    rows = [
        [
            markdown_text(cut(row[0])), (markdown_text if " " in row[1] else code)(cut(row[1])), *row[2:5],
            *(markdown_text(cut(one, _SENTENCE)) for one in row[5:]),
        ]
        for row in told.rows
    ]  # fmt: skip
    return f"{MEMORY_CAPTION}{of}:\n\n{markdown_table(told.head, rows, frozenset(told.head[2:5]))}"


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
    of, comparison = _of(scenario, result), scenario.comparison
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
