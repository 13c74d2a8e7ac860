"""Texts of which no character controls anything, wherever they came from: a name may hold an escape sequence."""

from __future__ import annotations

import re
import unicodedata

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode's categories of what controls, formats (and so turns text around), or is no character."""
_PERHAPS = re.compile(r"[^\t\n\x20-\x7e]")
"""Characters whose category has to be looked at."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Places where HTML has a tag, a comment or a declaration (HTML Living Standard, tag open state)."""


def printable(told: str) -> str:
    """The text in one line; white space becomes a space, all else that is no visible character U+FFFD."""
    return "".join(
        " " if one.isspace() else "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one) in _UNPRINTABLE else one
        for one in told
    )


def printable_lines(told: str) -> str:
    """The text in its lines, with U+FFFD for all that is no visible character and no white space."""
    return _PERHAPS.sub(
        lambda found: "\N{REPLACEMENT CHARACTER}" if unicodedata.category(found[0]) in _UNPRINTABLE else found[0], told
    )


def without_tags(told: str) -> str:
    """The text without what begins a tag of HTML, for who shows it as HTML unasked: ``<img`` becomes ``‹img``."""
    return _TAG.sub("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", told)


LONGEST_NAME = 512
"""Characters of a name in a kernel (KSYM_NAME_LEN)."""


def printable_name(told: str) -> str:
    """A name that a stranger gave, which is in one line and no longer than a kernel's may be."""
    cut = told[:LONGEST_NAME]
    return cut if cut.isprintable() else printable(cut)
