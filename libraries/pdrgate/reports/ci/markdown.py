"""A run, or a comparison of files, as Markdown: what a person pastes into a pull request, and a CI into its summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pdrgate.reports.markup.gfm import (
    block,
    block_of,
    captioned_markdown,
    code,
    cut,
    folded,
    markdown_text,
    paragraph_markdown,
    table_markdown,
)
from pdrgate.reports.tree import Block, ReportPart, Table
from pdrgate.reports.words.architecture_words import architectures_table
from pdrgate.reports.words.build_words import build_lines
from pdrgate.reports.words.costs import changes_table, total_change
from pdrgate.reports.words.headline import headline, left_out, lines_below, scenario_headline
from pdrgate.reports.words.measurand_tables import comparison_table, evidence_tables, grounds_table, measurands_table
from pdrgate.reports.words.measurands import change_rows, intervals_in_words, tolerance_told, verdict_in_words
from pdrgate.reports.words.packet_way import Way, way_lines
from pdrgate.reports.words.path_remarks import said_of_paths
from pdrgate.reports.words.path_table import is_portfolio, path_lines, paths_table
from pdrgate.reports.words.scenario_tree import else_seen, scenario_parts
from pdrgate.reports.words.selection_words import selection_table
from pdrgate.results.model import ComparisonResult, RunResult, ScenarioResult
from pdrgate.results.verdict import Judgement, Verdict
from pdrgate.values.units import Ratio

MARKDOWN_FILE = "summary.md"
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
        "\n".join(map(markdown_text, lines_below(result))),
        _builds(result),
    ]
    if (by_architecture := architectures_table(result)) is not None:
        blocks.append(table_markdown(by_architecture))
    if (touched := selection_table(result)) is not None:
        blocks.append(folded(touched.caption, table_markdown(touched)))
    blocks += [_paths(result)] if is_portfolio(result) else [_table(one, result) for one in result.scenarios]
    blocks.append(_link(address))
    shown = [one for one in result.scenarios if not (is_portfolio(result) and one.verdict.passes)]
    parts = {number: list(scenario_parts(one)) for number, one in enumerate(result.scenarios)}
    for number, scenario in enumerate(result.scenarios):
        if any(scenario is one for one in shown):
            of = f" ({markdown_text(cut(scenario.label))})" if len(result.scenarios) > 1 else ""
            blocks += [_part(part, of) for part in parts[number]]
    remarks = [markdown_text(one) for one in left_out(told, result.reason)]
    if not result.verdict.passes and all(one.comparison is None for one in result.scenarios):
        blocks.append(_list(remarks))  # why there are no numbers
        remarks = []
    for number, scenario in enumerate(result.scenarios):
        remarks += _remarks(scenario, parts[number], result)
    blocks += [_beside(result), folded("What else was seen", _list(remarks))]
    blocks.append(folded("What the verdicts rest on", "\n\n".join(filter(None, map(_grounds, shown)))))
    again = ["Again:", block(result.command)] if result.command else []
    blocks.append(folded("This run", "\n\n".join([_origin(result), *again])))
    return _joined(blocks)


def comparison_markdown(comparison: ComparisonResult | None, judgement: Judgement, candidate: str) -> str:
    """Two sets of trial files; ``comparison`` is None where no change could be computed."""
    first, *others = left_out("", judgement.reason)
    blocks = [_verdict(judgement.verdict, first)]
    if comparison is not None:
        functions = changes_table(comparison.functions, total_change(comparison))
        blocks += [
            f"{code(cut(candidate))} against {_against(comparison)}. {intervals_in_words(comparison)}",
            table_markdown(comparison_table(comparison)),
            captioned_markdown(functions) if functions is not None else "",
            _list(
                [f"The verdict does not rest on the change: {markdown_text(comparison.why_not)}"]
                * bool(comparison.why_not)
            ),
            folded(
                "What the verdicts rest on",
                captioned_markdown(replace(grounds_table(change_rows(comparison)), caption="")),
            ),
        ]
    blocks.append(_list([markdown_text(one) for one in others]))
    return _joined(blocks)


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def _verdict(verdict: Verdict, reason: str) -> str:
    return f"**{verdict}:** {markdown_text(reason)}"


def _paths(result: RunResult) -> str:
    """All paths in one table, and what they have in common."""
    lines = path_lines(result)
    worse, passing = ([one for one in lines if one.verdict.passes is passes] for passes in (False, True))
    word = f"{len(passing)} paths that pass" if len(passing) > 1 else "The path that passes"
    shown = [
        table_markdown(paths_table(worse, result)),
        markdown_text(paths_table(lines, result).note),
        _list([markdown_text(one) for one in said_of_paths(result)]),
        folded(word, table_markdown(paths_table(passing, result))),
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
    return f"{markdown_text(cut(scenario.label))}: " if len(result.scenarios) > 1 else ""


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
    several = len(result.scenarios) > 1
    head = f"#### {markdown_text(cut(scenario.label))}" + f": {verdict_in_words(scenario.verdict)}" * several
    told = scenario_headline(scenario).partition(": ")[2] if several and not scenario.verdict.passes else ""
    table = captioned_markdown(replace(measurands_table(scenario), caption=""))
    return "\n\n".join(filter(None, (head, markdown_text(told), table)))


def _grounds(scenario: ScenarioResult) -> str:
    if scenario.comparison is None:
        return ""
    tables = [captioned_markdown(replace(one, caption="")) for one in evidence_tables(scenario)]
    return "\n\n".join([f"{markdown_text(cut(scenario.label))}:", *tables])


def _part(part: ReportPart, of: str) -> str:
    """The brief tables of a part, folded; ``of`` says of which scenario."""
    return folded(part.title, "\n\n".join(filter(None, (_block(block, of) for block in part.brief))))


def _block(block: Block, of: str) -> str:
    if isinstance(block, Way):
        return f"Instructions per packet{of}, with all that a function calls:\n\n{block_of(way_lines(block))}"
    return captioned_markdown(block, of) if isinstance(block, Table) else ""


def _link(address: str) -> str:
    return f"[All of it on one page, with the flame graph]({address})" if address else ""


def _remarks(scenario: ScenarioResult, parts: Sequence[ReportPart], result: RunResult) -> Iterator[str]:
    """What a reader must know of a scenario besides its numbers, and what the verdict does not rest on."""
    of, comparison = _of(scenario, result), scenario.comparison
    if comparison is not None and not comparison.accepted:
        yield f"{of}the verdict does not rest on the change: {markdown_text(comparison.why_not)}"
    for remark in (remark for part in parts for remark in part.remarks):
        yield f"{of}{markdown_text(remark)}"
    yield from (f"{of}{paragraph_markdown(one)}" for one in else_seen(scenario))


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
