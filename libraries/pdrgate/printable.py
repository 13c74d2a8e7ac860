"""Texts of which no character controls anything, wherever they came from: a name may hold an escape sequence."""

from __future__ import annotations

import unicodedata

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode's categories of what controls, formats (and so turns text around), or is no character."""


def printable(told: str) -> str:
    """The text in one line; white space becomes a space, all else that is no visible character U+FFFD."""
    return "".join(
        " " if one.isspace() else "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one) in _UNPRINTABLE else one
        for one in told
    )
