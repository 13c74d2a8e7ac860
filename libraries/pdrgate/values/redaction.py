"""Addresses as they may be shown: whoever mistypes one has often put a password or a token into it."""

from __future__ import annotations

import re

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
