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


LONGEST_NAME = 512
"""Characters of a name in a kernel (KSYM_NAME_LEN)."""


def printable_name(told: str) -> str:
    """A name that a stranger gave, which is in one line and no longer than a kernel's may be."""
    cut = told[:LONGEST_NAME]
    return cut if cut.isprintable() else printable(cut)
