"""Set-up of an eBPF program before packets come: where it is attached, and what its maps and variables hold.

The set-up is a part of the build under test. Files are read here, as texts in lists and mappings. The object's types
give them their meaning (`pdrgate.bpf.filling`).
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from pdrgate.values.errors import DataError, UsageError

Plain: TypeAlias = "str | Sequence[Plain] | Mapping[str, Plain]"
"""Value in a file: a text, or a list or a mapping of values."""
Attach = Literal[
    "auto", "xdp", "xdp-generic", "tc-ingress", "tc-egress", "tcx-ingress", "tcx-egress", "nf-prerouting", "nf-input",
    "nf-forward", "nf-output", "nf-postrouting",
]  # fmt: skip
ATTACHES: Mapping[Attach, Literal["xdp", "tc", "netfilter"]] = {
    "xdp": "xdp", "xdp-generic": "xdp", "tc-ingress": "tc", "tc-egress": "tc", "tcx-ingress": "tc", "tcx-egress": "tc",
    **dict.fromkeys(("nf-prerouting", "nf-input", "nf-forward", "nf-output", "nf-postrouting"), "netfilter"),
}  # fmt: skip
"""Places where a program can be attached, at the SUT's ports or at hooks of netfilter, with its kind there."""

_LARGEST = 64 << 20
_SIZES = ("max_entries", "key_size", "value_size")
_LONG_FORM = frozenset({"entries", "from", *_SIZES})
_EXAMPLE = "vip_map: {198.18.0.1: 5}"


@dataclass(frozen=True, slots=True)
class Filling:
    """Entries of one map."""

    map: str
    entries: tuple[tuple[Plain, Plain], ...]
    """Keys and values."""
    source: str = ""
    """The file that says so."""
    max_entries: int = 0
    """Number of elements that the map may have; 0: as many as the object says."""
    key_size: int = 0
    value_size: int = 0
    """Bytes of keys and of values; 0: as many as the object says."""


@dataclass(frozen=True, slots=True)
class ProgramSetup:
    """Attachment, maps and variables of a program."""

    attach: Attach = "auto"
    """Place where it is attached; auto is the place that its data path chooses."""
    maps: tuple[Filling, ...] = ()
    variables: tuple[tuple[str, Plain], ...] = ()
    """Global variables, such as ``volatile const`` ones, and what they are before the program is loaded."""
    replaces: str = ""
    """A function of a dispatcher that it replaces (freplace), ``OBJECT:PROGRAM/FUNCTION``; empty: none."""

    digest: str = field(init=False, compare=False)
    """The digest of what it says, but for the dispatcher; empty if it says nothing. Names of files are no part of it.
    """

    def __post_init__(self) -> None:
        digest = ""
        if self.attach != "auto" or self.maps or self.variables:
            maps = [
                {"map": one.map, "entries": one.entries, "max_entries": one.max_entries}
                | {name: size for name in ("key_size", "value_size") if (size := getattr(one, name))}
                for one in self.maps
            ]
            content = {"attach": self.attach, "maps": maps, "variables": self.variables}
            digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        object.__setattr__(self, "digest", digest)  # once: a hundred thousand elements take half a second

    def and_then(self, later: ProgramSetup) -> ProgramSetup:
        """The set-up with additions of ``later``, which replaces values that both have."""
        attach = self.attach if later.attach == "auto" else later.attach
        return ProgramSetup(
            attach, (*self.maps, *later.maps), (*self.variables, *later.variables), later.replaces or self.replaces
        )

    def recorded(self) -> dict[str, str]:
        """Entries of result.json on the set-up."""
        entries: dict[str, str] = {} if self.attach == "auto" else {"attached": self.attach}
        entries |= {f"map {one.map}": f"filled by {len(one.entries)} entries" for one in self.maps}
        return entries | {f"variable {name}": str(value) for name, value in self.variables}


def program_setup(
    attach: Attach = "auto", maps: Path | None = None, rodata: Sequence[str] = (), replaces: str = ""
) -> ProgramSetup:
    """Set-up that a run asks for, see `fillings` and `variables`. Raises UsageError."""
    return ProgramSetup(attach, fillings(maps) if maps is not None else (), variables(rodata), replaces)


def fillings(path: Path) -> tuple[Filling, ...]:
    """The fillings in a file: a YAML mapping of maps' names to their entries. Raises UsageError."""
    maps = _yaml(path)
    if not isinstance(maps, Mapping):
        raise UsageError(f"{path}: has no maps by their names; write {_EXAMPLE}")
    return tuple(filling(name, entries, path) for name, entries in maps.items())


def filling(name: str, content: Plain, source: Path) -> Filling:
    """Filling of one map.

    Args:
        content: its elements as a mapping of keys to values, or as a list of mappings with ``key`` and ``value``; the
            name of a CSV file beside ``source``, whose columns are ``key``, ``value``, or their fields (``key.port``);
            or a mapping of ``entries`` or ``from``, and of sizes: ``max_entries``, ``key_size``, ``value_size``.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(content, Mapping) and content and content.keys() <= _LONG_FORM:
        entries, sizes = content.get("entries", content.get("from", ())), []
        for size in _SIZES:
            number = content.get(size, "0")
            if not isinstance(number, str) or not number.isdecimal():
                raise UsageError(f"{source}: map {name}: {size} is a number")
            sizes.append(int(number))
        return Filling(name, filling(name, entries, source).entries, str(source), *sizes)
    if isinstance(content, str):
        file = source.parent / content
        return Filling(name, tuple(_of_csv(name, file)), str(file))
    if isinstance(content, Mapping):
        return Filling(name, tuple(content.items()), str(source))
    return Filling(name, tuple(_of_list(name, content, source)), str(source))


def filling_of_file(name: str, path: Path) -> Filling:
    """Filling of one map from a file of its entries in YAML or CSV. Raises UsageError."""
    if path.suffix == ".csv":
        return filling(name, path.name, path)
    return filling(name, _yaml(path), path)


def variables(texts: Iterable[str]) -> tuple[tuple[str, Plain], ...]:
    """Global variables: each ``NAME=VALUE``, or a YAML file with a mapping of names to values. Raises UsageError."""
    found: dict[str, Plain] = {}
    for one in texts:
        name, equals, value = one.partition("=")
        if equals:
            found[name.strip()] = _parsed(value, one)
            continue
        values = _yaml(Path(one))
        if not isinstance(values, Mapping):
            raise UsageError(f"{one}: has no variables by their names; write NAME: VALUE")
        found.update(values)
    return tuple(found.items())


def _of_list(name: str, entries: Sequence[Plain], source: Path) -> Iterator[tuple[Plain, Plain]]:
    for number, one in enumerate(entries, start=1):
        if not isinstance(one, Mapping) or one.keys() != {"key", "value"}:
            raise UsageError(f"{source}: map {name}: entry {number} has no key and value; write - {{key: 1, value: 2}}")
        yield one["key"], one["value"]


def _of_csv(name: str, path: Path) -> Iterator[tuple[Plain, Plain]]:
    rows = csv.reader(_text(path).splitlines(), skipinitialspace=True)
    head = [column.strip() for column in next(rows, [])]
    if wrong := [column for column in head if column.partition(".")[0] not in ("key", "value")] or not head:
        raise UsageError(
            f"{path}: map {name}: column {wrong[0] if isinstance(wrong, list) else ''} is none of a key or a value; "
            "name columns key, value, key.FIELD or value.FIELD"
        )
    for row in rows:
        if not any(row) or row[0].startswith("#"):
            continue
        if len(row) != len(head):
            raise UsageError(f"{path}: line {rows.line_num} has {len(row)} columns and the first one {len(head)}")
        made: dict[str, Any] = {"key": {}, "value": {}}
        for column, text in zip(head, row, strict=True):
            *way, last = column.split(".")
            place = made
            for part in way:
                place = place.setdefault(part, {})
            place[last] = text.strip()
        yield made["key"], made["value"]


def _yaml(path: Path) -> Plain:
    return _parsed(_text(path), str(path))


def _parsed(text: str, source: str) -> Plain:
    """YAML whose scalars stay texts: 02:00:00:00:00:01 is no number of seconds, and 010 is ten. Raises UsageError."""
    try:
        parsed: Plain = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"{source}: is no YAML: {why}") from error
    return "" if parsed is None else parsed


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)  # a device has no end
        if len(raw) > _LARGEST:
            raise UsageError(f"{path}: is larger than {_LARGEST >> 20} MiB; write ranges, such as 10.0.0.0/16")
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; name a file of maps, such as {_EXAMPLE}") from error
    except ValueError as error:
        raise UsageError(f"{path}: is no text in UTF-8; write it as YAML or CSV") from error
