"""HTML that somebody else wrote: whether whoever shows it can be harmed by it.

Only what pdrgate's and Robot's own fragments are made of is harmless: a few tags, with a few attributes, in one
spelling. What is spelled in any other way is refused, for a browser may read it otherwise than this module.
"""

from __future__ import annotations

import html
import re

_PIECE = re.compile(
    r'[^<]+|</[a-z][a-z0-9]*>|<(?P<tag>[a-z][a-z0-9]*)(?P<attributes>(?: [a-z-]+(?:="[^"<>]*")?)*) ?/?>'
)
_ATTRIBUTE = re.compile(r' ([a-z-]+)(?:="([^"<>]*)")?')
_TAGS = frozenset({
    "a", "b", "br", "caption", "code", "details", "div", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "hr",
    "i", "img", "li", "ol", "p", "pre", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
})  # fmt: skip
_ATTRIBUTES = frozenset({
    "alt", "border", "class", "colspan", "height", "href", "open", "rowspan", "scope", "src", "style", "target",
    "title", "width",
})  # fmt: skip
_PICTURE = re.compile(r"data:image/(png|svg\+xml);base64,[\w+/=]*", re.ASCII)
_ADDRESS = re.compile(r"(https?://[^\s\x00-\x20]+|(?!/)[\w./-]*(#[\w.-]*)?)", re.ASCII)
_STYLE = re.compile(r"[\w\s#%.,:;()'-]*", re.ASCII)
_LOADED = re.compile(r"url|image|expression|import|binding|behavior", re.IGNORECASE)
"""Words of a style that loads something or, in old browsers, runs it."""


def is_harmless(text: str) -> bool:
    """Whether a fragment of HTML runs nothing, loads nothing, and leads nowhere but to pages."""
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None or (piece["tag"] is not None and not _is_harmless_tag(piece["tag"], piece["attributes"])):
            return False
        at = piece.end()
    return True


def _is_harmless_tag(tag: str, attributes: str) -> bool:
    return tag in _TAGS and all(
        name in _ATTRIBUTES and _is_harmless_value(name, html.unescape(value))
        for name, value in _ATTRIBUTE.findall(attributes)
    )


def _is_harmless_value(name: str, value: str) -> bool:
    match name:
        case "src":
            return _PICTURE.fullmatch(value) is not None
        case "href":
            return _ADDRESS.fullmatch(value) is not None
        case "style":
            return _STYLE.fullmatch(value) is not None and not _LOADED.search(value)
    return True
