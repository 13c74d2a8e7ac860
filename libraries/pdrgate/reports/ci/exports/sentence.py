"""The first line of every report alone: what a pipeline's log, badge or message shows."""

from __future__ import annotations

from pdrgate.reports.words.headline import headline
from pdrgate.results.model import RunResult
from pdrgate.values.printable import without_tags


def one_sentence(result: RunResult) -> str:
    """``REGRESSION: a packet costs 8.3 % more instructions (+7.5 to +9.1 %) on NAT``, and the end of the line.

    A badge or a build's description may show it as HTML, so it has no tag.
    """
    return f"{without_tags(headline(result))}\n"


EXPORT = one_sentence
