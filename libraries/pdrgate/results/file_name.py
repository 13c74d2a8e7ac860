"""Names of files: made of what people call things, and as what is stored has them."""

from __future__ import annotations

import re

_UNFIT = re.compile(r"[^\w.@%,=+-]|^\.")


def file_name(text: str) -> str:
    """A text as a file's name, or the beginning of one: what had better not be in it is ``_``."""
    return _UNFIT.sub("_", text)


def as_text(name: str) -> str:
    """A text that may hold a file's name.

    Bytes of it that are no UTF-8, as a file's name may have, become their codes.
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
