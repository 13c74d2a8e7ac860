"""Texts as they may be shown: without characters that control a terminal, and addresses without passwords."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode's categories of control characters, of formatting (which turns text around), and of no characters."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""Places where HTML has a tag, a comment or a declaration (HTML Living Standard, tag open state)."""


class _Table(dict[int, str]):
    """A table for `str.translate`, which takes megabytes in a moment: it looks at each character once."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        super().__init__()
        self._shown = shown

    def __missing__(self, code: int) -> str:
        self[code] = self._shown(chr(code))
        return self[code]


def _visible(one: str) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(one) in _UNPRINTABLE else one


_IN_ONE_LINE = _Table(lambda one: " " if one.isspace() else _visible(one))
_IN_ITS_LINES = _Table(lambda one: one if one in "\n\t" else _visible(one))


def printable(text: str) -> str:
    """The text in one line. White space becomes a space; any other invisible character becomes U+FFFD."""
    return text.translate(_IN_ONE_LINE)


def printable_lines(text: str) -> str:
    """The text in its lines. Any invisible character that is no white space becomes U+FFFD."""
    return text.translate(_IN_ITS_LINES)


def without_tags(text: str) -> str:
    """The text without what begins a tag of HTML, for who shows it as HTML unasked: ``<img`` becomes ``‹img``."""
    return _TAG.sub("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", text)


LONGEST_NAME = 512
"""Characters of a name in a kernel (KSYM_NAME_LEN)."""


def printable_name(name: str) -> str:
    """A name that a stranger gave, which is in one line and no longer than a kernel's may be."""
    cut = name[:LONGEST_NAME]
    return cut if cut.isprintable() else printable(cut)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=/)")
HIDDEN = "***"


def is_address(text: str) -> bool:
    """Whether a text looks like a URL, even a mistyped one, and not like a path."""
    return _SCHEME.match(text) is not None


def redacted(address: str) -> str:
    """The address without all that could be a secret: user, password, query and fragment.

    A password may hold any sign, so of an address with an at sign only the scheme is left.
    """
    if "@" in address:
        scheme = _SCHEME.match(address)
        return f"{scheme[0]}//{HIDDEN}" if scheme else HIDDEN
    return re.sub(r"(?s)[?#;].*", f"?{HIDDEN}", address)


def first_names(names: Sequence[str], most: int) -> str:
    """Some of the names, and how many more there are."""
    more = len(names) - most
    return printable(", ".join(names[:most])) + (f" and {more} more" if more > 0 else "")
