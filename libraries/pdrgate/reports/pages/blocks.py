"""Parts of the tree as HTML, for Robot's log and for pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from pdrgate.reports.markup.html import paragraph_html, preformatted_html, table_html
from pdrgate.reports.pages.icicle import icicle
from pdrgate.reports.tree import Block, Paragraph, Preformatted, ReportPart, Table
from pdrgate.reports.words.measurand_tables import measurands_table
from pdrgate.reports.words.packet_way import Way
from pdrgate.results.model import ScenarioResult


def block_html(block: Block) -> Markup:
    """The block as a fragment that stands well in Robot's log as in a page."""
    match block:
        case Table():
            return Markup(table_html(block))
        case Paragraph():
            return Markup(paragraph_html(block))
        case Preformatted():
            return Markup(preformatted_html(block))
        case Way():
            return Markup(icicle(block))
    raise TypeError(f"no HTML of a {type(block).__name__}")


def whole_html(parts: Iterable[ReportPart]) -> Iterator[Markup]:
    """The whole tables and figures of the parts."""
    return (block_html(block) for part in parts for block in part.whole)


def further_html(parts: Iterable[ReportPart]) -> Iterator[Markup]:
    """The tables behind all that verdicts rest on."""
    return (block_html(block) for part in parts for block in part.further)


def measurands_html(scenario: ScenarioResult) -> Markup:
    """The table of measurands; empty where nothing was measured."""
    table = measurands_table(scenario)
    return block_html(table) if table.rows else Markup()
