"""Orders for the loader: what the maps and variables of a program hold before packets come.

Elements of program arrays name a program of the object. Elements of devmaps and cpumaps are an interface's number or
the length of a queue, or a mapping of that (``ifindex``, ``qsize``) and of the ``program`` that is run there.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from pdrgate.bpf.btf import MapType, Types
from pdrgate.bpf.old_maps import content_of
from pdrgate.bpf.values import LARGEST, MOST_KEYS, MisfitError, Writer, expanded, numbered, prefix
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError
from pdrgate.builds.elf_file import ElfFile
from pdrgate.builds.program_setup import Filling, Plain, ProgramSetup

_PROG_ARRAY, _LPM_TRIE, _DEVMAP, _CPUMAP, _XSKMAP, _DEVMAP_HASH = 3, 11, 14, 16, 17, 25
"""Kinds of maps (enum bpf_map_type)."""
_OF_SOCKETS = {15: "sockmap", 18: "sockhash", _XSKMAP: "xskmap", 7: "stack_trace", 12: "array_of_maps",
               13: "hash_of_maps", 26: "struct_ops", 27: "ringbuf", 4: "perf_event_array"}  # fmt: skip
_PLACES = {_DEVMAP: "ifindex", _DEVMAP_HASH: "ifindex", _CPUMAP: "qsize"}
"""Maps whose value is a number and a program (struct bpf_devmap_val, struct bpf_cpumap_val), and the number's name."""

SUT_NAMES: Mapping[str, str] = {
    "@in.ifindex": "1", "@out.ifindex": "2", "@in.mac": "02:00:00:00:00:01", "@out.mac": "02:00:00:00:00:02",
    "@in.peer.mac": "02:00:00:00:00:03", "@out.peer.mac": "02:00:00:00:00:04",
}  # fmt: skip
"""Names of a SUT's ports with examples, for checks before there is a SUT."""


@dataclass(frozen=True, slots=True)
class _Written:
    """Orders of one map."""

    text: str
    used_names: Mapping[str, str]
    """Names of the SUT that the orders use, with their values."""


_written: dict[tuple[str, str, int], _Written] = {}
"""Orders by object, set-up and number of the map: a build is loaded on each boot, and to write a hundred thousand
elements takes seconds."""


def check_setup(build: BpfBuild) -> BpfBuild:
    """The build, once its maps can be declared and what they shall hold is known to fit. Raises BpfBuildError."""
    if build.kind != "any":
        content_of(build)
    orders(build, SUT_NAMES)
    if build.dispatcher is not None:
        dispatcher_orders(build, build.dispatcher.build, SUT_NAMES)
    return build


def orders(build: BpfBuild, names: Mapping[str, str]) -> str:
    """The lines that the loader reads (see bpf_load.c), for the build's own object.

    Raises:
        BpfBuildError: the object has no such map or variable, or what it shall hold does not fit; the message names the
            field.
    """
    setup = build.setup if build.dispatcher is None else _shared(build, build.dispatcher.build)[0]
    return _orders(replace(build, setup=setup), names)


def dispatcher_orders(build: BpfBuild, dispatcher: BpfBuild, names: Mapping[str, str]) -> str:
    """The lines for the object of a build's dispatcher, by those names that the build's own does not have.

    Raises:
        BpfBuildError: as `orders` does.
    """
    return _orders(replace(dispatcher, setup=_shared(build, dispatcher)[1]), names)


def _shared(build: BpfBuild, dispatcher: BpfBuild) -> tuple[ProgramSetup, ProgramSetup]:
    """Set-up of the build's own object, and set-up of its dispatcher. Raises BpfBuildError."""
    setup = build.setup
    if not setup.maps and not setup.variables:
        return setup, ProgramSetup()
    own, other = _types(build), _types(dispatcher)
    maps = tuple(entry for entry in setup.maps if entry.map not in own.maps and entry.map in other.maps)
    variables = tuple(
        entry for entry in setup.variables if entry[0] not in own.variables and entry[0] in other.variables
    )
    return (
        replace(
            setup,
            maps=tuple(entry for entry in setup.maps if entry not in maps),
            variables=tuple(entry for entry in setup.variables if entry not in variables),
        ),
        ProgramSetup(maps=maps, variables=variables),
    )


def _types(build: BpfBuild) -> Types:
    try:
        types = Types(ElfFile(io.BytesIO(content_of(build))))
        types.maps, types.variables  # noqa: B018 -- damaged ones are reported here
    except ValueError as error:
        raise BpfBuildError(f"{build.path}: cannot fill its maps: {error}") from error
    return types


def _orders(build: BpfBuild, names: Mapping[str, str]) -> str:
    setup = build.setup
    if not setup.maps and not setup.variables:
        return ""
    types = _types(build)
    maps, known = types.maps, types.variables
    found = []
    for name, value in setup.variables:
        if name not in known:
            has = ", ".join(known) or "none"
            raise BpfBuildError(f"{build.path}: has no global variable {name}; it has {has}")
        try:
            found.append(f"value {name} {Writer(types, names).written(known[name], value, name).hex()}\n")
        except ValueError as error:
            raise BpfBuildError(f"{build.path}: variable {error}") from error
    for number, one in enumerate(setup.maps):
        if one.map not in maps:
            raise BpfBuildError(
                f"{one.source or build.path}: {build.name} has no map {one.map}; it has {', '.join(maps) or 'none'}"
            )
        try:
            found.append(_of_map(_Filler(maps[one.map], one, Writer(types, names), build), number))
        except ValueError as error:
            raise BpfBuildError(f"{one.source or build.path}: map {one.map}: {error}") from error
    return "".join(found)


class _Filler:
    """The orders of one map."""

    def __init__(self, kind: MapType, filling: Filling, writer: Writer, build: BpfBuild) -> None:
        # Placeholders have sizes of 0, and their own loader says how large they are.
        self._kind = replace(
            kind, key_size=filling.key_size or kind.key_size, value_size=filling.value_size or kind.value_size
        )
        self._filling = filling
        self.writer = writer
        self.build = build
        self._trie = kind.kind == _LPM_TRIE

    def orders(self) -> Iterator[str]:
        if self._filling.entries and (sort := _OF_SOCKETS.get(self._kind.kind)) is not None:
            raise MisfitError(
                f"a {sort} takes no elements from a file; fill it by a loader of your own, a step of a scenario file"
            )
        if self._filling.entries and max(self._kind.key_size, self._kind.value_size) > LARGEST:
            raise MisfitError(
                f"has elements of more than {LARGEST} bytes; fill it by a loader of your own, a step of a scenario file"
            )
        if self._filling.max_entries:
            yield f"size {self._filling.map} {self._filling.max_entries}\n"
        for what, size in (("keys", self._filling.key_size), ("values", self._filling.value_size)):
            if size:
                yield f"{what} {self._filling.map} {size}\n"
        keys = (key for entry, _ in self._filling.entries for key in expanded(entry, prefixes=self._trie))
        # Before any is written, which takes many times as long.
        if next(islice(keys, MOST_KEYS, None), None) is not None:
            raise MisfitError(f"its ranges come to more than {MOST_KEYS} elements; make them smaller")
        for key, value in self._filling.entries:
            for number, one in enumerate(expanded(key, prefixes=self._trie)):
                yield self._order(self._key(one).hex(), numbered(value, number))

    def _key(self, key: Plain) -> bytes:
        kind = self._kind
        if self._trie and isinstance(key, str) and (network := prefix(self.writer.name(key, "key"))) is not None:
            length, address = network
            if 4 + len(address) > kind.key_size:
                raise MisfitError(f"key {key} has {len(address)} bytes, and the trie's addresses {kind.key_size - 4}")
            return struct.pack("<I", length) + address.ljust(kind.key_size - 4, b"\0")
        return self._bytes(kind.key, kind.key_size, key, "key")

    def _order(self, key: str, value: Plain) -> str:
        kind, name = self._kind, self._filling.map
        if kind.kind == _PROG_ARRAY:
            return f"program {name} {key} 00000000 0 {self._program(value)}\n"
        if (number := _PLACES.get(kind.kind)) is not None:
            fields = value if isinstance(value, Mapping) else {number: value}
            if wrong := fields.keys() - {number, "program"}:
                raise MisfitError(f"value has no field {min(wrong)}; its fields are {number}, program")
            first = self.writer.sized(4, fields.get(number, "0"), f"value.{number}").ljust(kind.value_size or 4, b"\0")
            if "program" in fields:
                if kind.value_size < 8:
                    raise MisfitError("value has no room for a program; the object's values have 4 bytes")
                return f"program {name} {key} {first.hex()} 4 {self._program(fields['program'])}\n"
            return f"element {name} {key} {first.hex()}\n"
        return f"element {name} {key} {self._bytes(kind.value, kind.value_size, value, 'value').hex()}\n"

    def _program(self, value: Plain) -> str:
        known = [one.name for one in self.build.programs]
        if not isinstance(value, str) or value not in known:
            raise MisfitError(f"value is a program of the object, and {value} is none; it has {', '.join(known)}")
        return value

    def _bytes(self, number: int, size: int, value: Plain, at: str) -> bytes:
        return self.writer.written(number, value, at) if number else self.writer.sized(size, value, at)


def _of_map(filler: _Filler, number: int) -> str:
    """The orders of a set-up's map of this number, written anew only where what they have of the SUT is another.

    Raises ValueError.
    """
    which = (filler.build.sha256, filler.build.setup.digest, number)
    kept = _written.get(which)
    if kept is None or any(filler.writer.names.get(name) != value for name, value in kept.used_names.items()):
        kept = _written[which] = _Written("".join(filler.orders()), dict(filler.writer.used_names))
    return kept.text
