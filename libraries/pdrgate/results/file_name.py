"""Names of files that are made of what people call things."""

from __future__ import annotations

import re

_UNFIT = re.compile(r"[^\w.@%,=+-]|^\.")


def file_name(text: str) -> str:
    """A text as a file's name, or the beginning of one: what had better not be in it is ``_``."""
    return _UNFIT.sub("_", text)
