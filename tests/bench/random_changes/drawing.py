"""Places in a kernel's sources at which a change is drawn by chance, and the sources with these changes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

FOLDERS = ("net", "drivers/net", "mm", "kernel", "lib")
"""Where changes are made."""
_WORK = "\tfor (int pdrgate_turn = 0; pdrgate_turn < 64; pdrgate_turn++)\n\t\tbarrier();\n"
"""More work at the begin of a function: a loop that no compiler takes away."""
_SIMPLE = r"(?:u8|u16|u32|u64|__be16|__be32|bool|(?:unsigned )?int|unsigned long|long|atomic_t|(?:struct )?\w+ \*)"
_FIELD = rf"^\t{_SIMPLE}\s*(\w+);\n"


@dataclass(frozen=True, slots=True)
class Place:
    """A place where one change can be made."""

    kind: str
    file: str
    name: str
    """The function, variable or field that is changed."""
    start: int
    """The first character of what is replaced."""
    end: int
    text: str
    """What is put there instead."""

    @property
    def label(self) -> str:
        """The change in a few words, such as ``default: tcp_max_orphans in net/ipv4/tcp.c``."""
        return f"{self.kind}: {self.name} in {self.file}"


def drawn(
    sources: Mapping[str, str], compiled: AbstractSet[str], wanted: Mapping[str, int], chance: random.Random
) -> Sequence[Place]:
    """Draw so many places of each kind, of functions and variables that the kernel has; never two of one file.

    Args:
        sources: the text of each file.
        compiled: the names of the kernel's functions and variables.
        wanted: how many of each kind, of the keys of `KINDS`.

    Raises:
        ValueError: there are not so many places of a kind.
    """
    chosen: list[Place] = []
    files = _compiled_files(sources, compiled)
    for kind, number in wanted.items():
        places = [place for file in files for place in KINDS[kind](file, sources[file], compiled)]
        chance.shuffle(places)
        for place in places:
            if number and place.file not in {other.file for other in chosen}:
                chosen.append(place)
                number -= 1
        if number:
            raise ValueError(f"{kind}: {number} places too few in these sources")
    return chosen


def changed_text(text: str, places: Sequence[Place]) -> str:
    """A file's text with the changes of these places, which do not overlap."""
    for place in sorted(places, key=lambda place: -place.start):
        text = text[: place.start] + place.text + text[place.end :]
    return text


def _another(number: str) -> str:
    """Another number in place of a default: what is on or off is switched, and others are doubled."""
    return {"0": "1", "1": "0"}.get(number) or str(2 * int(number))


def _functions(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    for match in re.finditer(r"^(?!.*\binline\b)[a-z][\w *]*?\b(\w+)\([^;{}()]*\)\n\{\n", text, re.M):
        if file.endswith(".c") and match[1] in compiled and "__init" not in match[0]:
            yield Place("function", file, match[1], match.end(), match.end(), _WORK)


def _inlined(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    for match in re.finditer(r"^static (?:__always_)?inline [\w *]*?\b(\w+)\([^;{}()]*\)\n\{\n", text, re.M):
        yield Place("inlined", file, match[1], match.end(), match.end(), _WORK)


def _defaults(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    number = r"^(?:static )?(?:unsigned )?(?:int|long|u8|u32|u64) (\w+) (?:__read_mostly )?= (\d+);"
    for match in re.finditer(number, text, re.M):
        if match[1] in compiled:
            yield Place("default", file, match[1], match.start(2), match.end(2), _another(match[2]))


def _set_at_boot(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    for match in re.finditer(r"^\t+\S*\b(sysctl_\w+) = (\d+);", text, re.M):
        yield Place("set at boot", file, match[1], match.start(2), match.end(2), _another(match[2]))


def _static_keys(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    for match in re.finditer(r"^static DEFINE_STATIC_KEY_(TRUE|FALSE)\((\w+)\)", text, re.M):
        if match[2] in compiled:
            other = {"TRUE": "FALSE", "FALSE": "TRUE"}[match[1]]
            yield Place("static key", file, match[2], match.start(1), match.end(1), other)


def _fields(file: str, text: str, compiled: AbstractSet[str]) -> Iterator[Place]:
    for struct in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        for match in re.finditer(_FIELD + _FIELD, struct[2], re.M):
            first, second = match[0].splitlines(keepends=True)
            begin = struct.start(2) + match.start()
            name = f"{struct[1]}.{match[1]} and .{match[2]}"
            yield Place("fields swapped", file, name, begin, begin + len(match[0]), second + first)


def _compiled_files(sources: Mapping[str, str], compiled: AbstractSet[str]) -> list[str]:
    """The sources that the kernel has, and the headers beside these.

    A third of a source's functions have a name in the kernel, for others are inlined. Names of fewer are those of other
    sources by chance.
    """
    defined = re.compile(r"^[a-z][\w *]*?\b(\w+)\([^;{}()]*\)\n\{\n", re.M)
    sure: set[str] = set()
    for file, text in sources.items():
        names = frozenset(defined.findall(text)) if file.endswith(".c") else frozenset()
        if names and 3 * len(names & compiled) >= len(names):
            sure.add(file)
    folders = {file.rpartition("/")[0] for file in sure}
    return sorted(sure | {file for file in sources if file.endswith(".h") and file.rpartition("/")[0] in folders})


KINDS: Mapping[str, Callable[[str, str, AbstractSet[str]], Iterator[Place]]] = {
    "function": _functions,
    "inlined": _inlined,
    "default": _defaults,
    "set at boot": _set_at_boot,
    "static key": _static_keys,
    "fields swapped": _fields,
}
