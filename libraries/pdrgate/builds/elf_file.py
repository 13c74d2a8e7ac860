"""ELF files by pyelftools, whose many complaints about damaged ones become one."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

_DAMAGE = (ELFError, AssertionError, AttributeError, KeyError, IndexError, TypeError, OverflowError)
"""What reading a file raises that ends too early or points outside of itself; a UnicodeError is a ValueError."""


@contextlib.contextmanager
def elf_file(content: bytes) -> Iterator[ELFFile]:
    """A 64-bit ELF file, to be read inside the ``with``.

    Raises:
        ValueError: it is no such file, or what was read of it is damaged.
    """
    if content[:4] != b"\x7fELF":
        raise ValueError("it is no ELF file")
    if content[4:5] != b"\x02" or content[5:6] not in (b"\x01", b"\x02"):
        raise ValueError("it is no 64-bit ELF file")
    try:
        yield ELFFile(io.BytesIO(content))
    except _DAMAGE as error:
        raise ValueError("it is damaged") from error
