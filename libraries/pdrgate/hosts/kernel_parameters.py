"""A kernel's command line as the kernel takes it apart.

Blanks part its words, but for those within double quotes. A word ``--`` ends what is the kernel's: the rest goes to
init (``next_arg`` and ``parse_args`` of Linux).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

_END = "--"


@dataclass(frozen=True, slots=True)
class KernelParameters:
    """The words of a command line."""

    kernel: tuple[str, ...]
    """The kernel's parameters with their quotes: ``root="PARTLABEL=A B"``."""
    init: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text like ``/proc/cmdline``."""
        words = _words(text)
        end = words.index(_END) if _END in words else len(words)
        return cls(tuple(words[:end]), tuple(words[end + 1 :]))

    def value(self, name: str) -> str | None:
        """Last value of a parameter; empty if it has no value, None if it is not there."""
        values = [value for word in self.kernel for one, _, value in [_bare(word).partition("=")] if one == name]
        return values[-1].strip('"') if values else None

    def without(self, *names: str) -> Self:
        """The parameters, without some of the kernel's."""
        kept = tuple(word for word in self.kernel if _bare(word).partition("=")[0] not in names)
        return type(self)(kept, self.init)

    def beside(self, *words: str) -> Self:
        """The parameters, with more words for the kernel behind its own."""
        return type(self)((*self.kernel, *words), self.init)

    def __str__(self) -> str:
        return " ".join((*self.kernel, *((_END, *self.init) if self.init else ())))


def _words(text: str) -> list[str]:
    words, word, quoted = [], "", False
    for letter in text:
        quoted ^= letter == '"'
        if letter.isspace() and not quoted:
            words.append(word)
            word = ""
        else:
            word += letter
    return [one for one in (*words, word) if one]


def _bare(word: str) -> str:
    """A word without the quotes around the whole of it."""
    return word[1:].removesuffix('"') if word.startswith('"') else word
