"""News as texts: a title, plain lines, and Markdown."""

from __future__ import annotations

import time
from collections import Counter

from pdrgate.news.standing import News
from pdrgate.reports.markup.gfm import markdown_text
from pdrgate.values.printable import printable

_SHOWN = 10
"""Lines of a message: more are in the run's page."""


def title(news: News, of: str) -> str:
    """``pdrgate nightly: 2 new, 1 gone: REGRESSION: …``."""
    numbers = Counter(one.kind for one in news.items)
    kinds = ", ".join(f"{numbers[kind]} {kind}" for kind in ("new", "changed", "gone") if numbers[kind])
    return printable(f"pdrgate {of}: {kinds or 'nothing new'}: {news.headline}")


def text(news: News, link: str = "") -> str:
    """A line for each item, and where the whole run is."""
    lines = [printable(f"{one.kind}: {one.path}: {one.sentence}") for one in news.items]
    return "\n".join([*_cut(lines), *([link] if link else [])])


def markdown(news: News, link: str = "") -> str:
    """News as a list of Markdown, and where the whole run is."""
    lines = [f"- **{one.kind}** {markdown_text(f'{one.path}: {one.sentence}')}" for one in news.items]
    return "\n".join([*_cut(lines), *([f"\n{link}"] if link else [])])


def standing_markdown(news: News) -> str:
    """All that stands, as the body of an issue; empty where nothing does.

    It is the same from run to run while nothing is new, so that nobody hears of it again.
    """
    lines = [
        f"- {markdown_text(f'{one.path}: {one.sentence}')} (since {_day(one.since)})" for one in news.standing.values()
    ]
    return "\n".join(lines)


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"and {more} more"] if more > 1 else lines


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
