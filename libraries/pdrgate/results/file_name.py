"""Names of files: made of what people call things, and as what is stored has them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

_NO_WORD = re.compile(r"[^a-z0-9]+")
_LONGEST = 60


def distinct_names(labels: Iterable[str]) -> list[str]:
    """Names of files for what people call things: ``Connection Tracking`` is ``connection-tracking``.

    A name has at most 60 letters and a number behind them, where an earlier label has the same name.
    """
    taken: list[str] = []
    for label in labels:
        name = _NO_WORD.sub("-", label.lower()).strip("-")[:_LONGEST].strip("-") or "path"
        names = itertools.chain((name,), (f"{name}-{number}" for number in itertools.count(2)))
        taken.append(next(one for one in names if one not in taken))
    return taken


def as_text(name: str) -> str:
    """A text that may hold a file's name.

    Bytes of it that are no UTF-8, as a file's name may have, become their codes.
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
