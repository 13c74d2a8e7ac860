"""Stanzas of fields, the form in which Debian's packages and apt's sources are described (deb822(5))."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def stanzas(text: str) -> Iterator[Mapping[str, str]]:
    """The stanzas of a text: each field's value by its name in lower case, with line breaks where it has several lines.

    A line that is neither a field nor goes on with one is passed over.
    """
    found: dict[str, str] = {}
    key = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if found:
                yield found
            found, key = {}, ""
        elif line[0] in " \t":
            if key:
                found[key] += f"\n{line}"
        elif not line.startswith("#"):
            name, colon, value = line.partition(":")
            key = name.strip().lower() if colon else ""
            if key:
                found[key] = value.strip()
