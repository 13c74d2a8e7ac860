"""Types of an eBPF object or a kernel (BTF, Documentation/bpf/btf.rst): what maps, variables and structs are made of.

The file may be a stranger's: each length is looked at before it is believed. A kernel has a hundred thousand types: a
type is read when it is asked for.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from pdrgate.builds.elf_file import Section

_MAGIC = 0xEB9F
_LARGEST = 32 << 20
_DEEPEST = 64
"""Typedefs and qualifiers in a row."""
_LONGEST_NAME = 512
"""Bytes of a name, as the kernel has it."""
_MOST_FIELDS = 1 << 14
"""Members of a struct and of all its parts without a name."""
_LARGEST_STRUCT = 1 << 16
"""Largest struct, in bytes, whose bytes are assigned to members."""

(
    _INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR,
    _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64,
) = range(1, 20)  # fmt: skip
_PASSED_OVER = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)
_MORE = {_INT: 4, _ARRAY: 12, _VAR: 4, _DECL_TAG: 4}
"""Bytes behind a type's head, for kinds with a fixed number of them."""
_EACH = {_STRUCT: 12, _UNION: 12, _ENUM: 8, _FUNC_PROTO: 8, _DATASEC: 12, _ENUM64: 12}
"""Bytes per member behind a type's head, for kinds with members."""

Sort = Literal["int", "array", "struct", "union", "enum", "pointer", "other"]
_SORTS: Mapping[int, Sort] = {
    _INT: "int", _PTR: "pointer", _ARRAY: "array", _STRUCT: "struct", _UNION: "union", _ENUM: "enum", _ENUM64: "enum",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypeMember:
    """A member of a struct, union or enum."""

    name: str
    type: int = 0
    at: int = 0
    """Offset in bits; of an enum its value."""
    bits: int = 0
    """Width in bits of a bit field; else 0."""


@dataclass(frozen=True, slots=True)
class TypeKind:
    """A type, without the names and qualifiers that lead to it."""

    sort: Sort
    name: str
    size: int
    members: tuple[TypeMember, ...] = ()
    element: int = 0
    """The type of an array's elements."""
    count: int = 0
    """Number of an array's elements."""
    network_order: bool = False
    """Whether its name is __be16, __be32 or __be64."""


@dataclass(frozen=True, slots=True)
class _Raw:
    name: str
    kind: int
    flag: bool
    number: int
    """Size, or type."""
    more: bytes


@dataclass(frozen=True, slots=True)
class MapType:
    """Declaration of a map in an object."""

    name: str
    kind: int
    """BPF_MAP_TYPE_…"""
    key: int
    value: int
    """Types of key and value; 0 if only the size is declared."""
    key_size: int
    value_size: int


class HasSections(Protocol):
    """File whose sections can be read, such as an `ElfFile`."""

    def section(self, name: str) -> Section | None:
        """The section of that name."""

    def content(self, section: Section, most: int) -> bytes:
        """Content of a section, ``most`` bytes at most."""


class Types:
    """The types of a file.

    Args:
        base: the kernel's types, for a module's file. The module's own types are numbered after them.

    Raises:
        ValueError: the file has no types, or they are damaged. All methods may raise it.
    """

    def __init__(self, elf: HasSections, base: Types | None = None) -> None:
        self._base = base
        if (section := elf.section(".BTF")) is None:
            raise ValueError("it has no types of its maps (BTF); compile it with clang -g")
        data = elf.content(section, _LARGEST)
        try:
            magic, _, _, head, types, length, names, names_length = struct.unpack_from("<HBBIIIII", data)
        except struct.error as error:
            raise ValueError("its types (BTF) are damaged") from error
        if magic != _MAGIC:
            raise ValueError("its types (BTF) are of another byte order, or damaged")
        self._names = data[head + names : head + names + names_length]
        self._data = data[head + types :][:length]
        self._places = array("L", () if base else (0,))
        """Offset of each type. The first is void, which has none."""
        self._structs: dict[int, int] = {}
        """Numbers of structs by where their names stand."""
        self._of_variables: list[int] = []
        """Numbers of sections of variables."""
        self._find(0 if base is None else base.count)

    def _find(self, first: int) -> None:
        data, at, end, heads = self._data, 0, len(self._data) - 12, struct.Struct("<III").unpack_from
        while at <= end:
            name, info, _ = heads(data, at)
            kind = info >> 24 & 0x1F
            if kind == _STRUCT:
                self._structs.setdefault(name, first + len(self._places))
            elif kind == _DATASEC:
                self._of_variables.append(first + len(self._places))
            self._places.append(at)
            at += 12 + _MORE.get(kind, 0) + (_EACH[kind] * (info & 0xFFFF) if kind in _EACH else 0)
        if at > len(data):
            raise ValueError("its types (BTF) are damaged")

    @property
    def count(self) -> int:
        """Number of types, void and the kernel's included."""
        return len(self._places) + (self._base.count if self._base else 0)

    @property
    def _names_before(self) -> int:
        return self._base._names_end if self._base else 0

    @property
    def _names_end(self) -> int:
        return self._names_before + len(self._names)

    def _name(self, at: int) -> str:
        if self._base is not None and at < self._names_before:
            return self._base._name(at)
        at -= self._names_before
        end = self._names.find(b"\0", at, at + _LONGEST_NAME)
        if end < 0:
            raise ValueError("its types (BTF) are damaged")
        return self._names[at:end].decode(errors="replace")

    def _raw(self, number: int) -> _Raw:
        before = self._base.count if self._base is not None else 0
        if self._base is not None and 0 <= number < before:
            return self._base._raw(number)
        if not before <= number < before + len(self._places):
            raise ValueError("its types (BTF) are damaged")
        if number == 0:
            return _Raw("void", 0, False, 0, b"")
        at = self._places[number - before]
        name, info, size_or_type = struct.unpack_from("<III", self._data, at)
        kind = info >> 24 & 0x1F
        size = _MORE.get(kind, 0) + _EACH.get(kind, 0) * (info & 0xFFFF)
        return _Raw(self._name(name), kind, bool(info >> 31), size_or_type, self._data[at + 12 : at + 12 + size])

    def number_of(self, name: str) -> int | None:
        """Number of the struct of that name, a module's own before the kernel's; None if there is none."""
        # A module has no name twice that the kernel has, too.
        found = (self._structs.get(at) for at in self._name_places(name))
        own = next((number for number in found if number is not None), None)
        return own if own is not None or self._base is None else self._base.number_of(name)

    def _name_places(self, name: str) -> Iterator[int]:
        """Offsets of a name among the names of this file and of the kernel."""
        if (at := self._names.find(b"\0" + name.encode() + b"\0")) >= 0:
            yield self._names_before + at + 1
        if self._base is not None:
            yield from self._base._name_places(name)

    def kind(self, number: int) -> TypeKind:
        """The type of this number."""
        raw, network = self._raw(number), False
        for _ in range(_DEEPEST):
            if raw.kind not in _PASSED_OVER:
                break
            network |= raw.name in ("__be16", "__be32", "__be64")
            raw = self._raw(raw.number)
        sort = _SORTS.get(raw.kind, "other")
        if sort == "array":
            element, _, count = self._array(raw)
            return TypeKind(sort, "", self.size(element) * count, element=element, count=count)
        size = 8 if sort == "pointer" else raw.number
        return TypeKind(sort, raw.name, size, tuple(self._members(raw)), network_order=network)

    def size(self, number: int, depth: int = 0) -> int:
        """Bytes that a type takes."""
        raw = self._raw(number)
        if depth > _DEEPEST:
            raise ValueError("its types (BTF) are damaged")
        if raw.kind in _PASSED_OVER:
            return self.size(raw.number, depth + 1)
        if raw.kind == _ARRAY:
            element, _, count = self._array(raw)
            return self.size(element, depth + 1) * count
        return 8 if raw.kind == _PTR else raw.number

    def _array(self, raw: _Raw) -> tuple[int, int, int]:
        try:
            element, index, count = struct.unpack("<III", raw.more)
        except struct.error as error:
            raise ValueError("its types (BTF) are damaged") from error
        return element, index, count

    def _members(self, raw: _Raw) -> Iterator[TypeMember]:
        if raw.kind in (_STRUCT, _UNION):
            for name, number, at in struct.iter_unpack("<III", raw.more):
                yield TypeMember(
                    self._name(name), number, at & 0xFFFFFF if raw.flag else at, at >> 24 if raw.flag else 0
                )  # fmt: skip
        elif raw.kind == _ENUM:
            for name, value in struct.iter_unpack("<Ii" if raw.flag else "<II", raw.more):
                yield TypeMember(self._name(name), at=value)
        elif raw.kind == _ENUM64:
            for name, low, high in struct.iter_unpack("<III", raw.more):
                yield TypeMember(self._name(name), at=high << 32 | low)

    def _sections(self, wanted: str) -> Iterator[_Raw]:
        """The variables of a section, or of all sections except those of maps and of the kernel's configuration."""
        for section in map(self._raw, self._of_variables):
            ours = section.name.startswith((".rodata", ".data", ".bss"))
            if section.name == wanted if wanted else ours:
                for number, _, _ in struct.iter_unpack("<III", section.more):
                    variable = self._raw(number)
                    if variable.kind == _VAR:
                        yield variable

    @cached_property
    def variables(self) -> Mapping[str, int]:
        """Types of global variables by their names."""
        return {one.name: one.number for one in self._sections("")}

    def placed(self, section: str) -> Mapping[int, int]:
        """Types of the variables of a section, by where in it they begin."""
        whole = next((one for one in map(self._raw, self._of_variables) if one.name == section), None)
        found = () if whole is None else struct.iter_unpack("<III", whole.more)
        return {at: variable.number for number, at, _ in found if (variable := self._raw(number)).kind == _VAR}

    @cached_property
    def maps(self) -> Mapping[str, MapType]:
        """The maps by their names."""
        return {one.name: self._map(one) for one in self._sections(".maps")}

    def fields(self, kind: TypeKind) -> Iterator[TypeMember]:
        """The members of a struct or union that have names, also those of its parts without a name."""
        room = _MOST_FIELDS - len(kind.members)
        parts = [(0, iter(kind.members))]
        while parts:
            begin, members = parts[-1]
            if (one := next(members, None)) is None:
                parts.pop()
            elif one.name:
                yield TypeMember(one.name, one.type, begin + one.at, one.bits)
            else:
                part = self.kind(one.type)
                room -= 1 + len(part.members)
                if room < 0:  # a struct that is a part of itself has no end
                    raise ValueError("its types (BTF) are damaged")
                if part.sort in ("struct", "union"):
                    parts.append((begin + one.at, iter(part.members)))

    def layout(self, number: int) -> tuple[str, ...]:
        """Member name by byte of a struct or union, the first of several; empty for padding."""
        size = self.size(number)
        if size > _LARGEST_STRUCT:
            raise ValueError(f"a struct of {size} bytes is larger than any of a kernel")
        names, taken = [""] * size, bytearray(size)
        for member in self.fields(self.kind(number)):
            begin = member.at // 8
            end = min(begin + ((member.at % 8 + member.bits + 7) // 8 if member.bits else self.size(member.type)), size)
            while (free := taken.find(0, begin, end)) >= 0:
                held = taken.find(1, free, end)
                begin = held if held >= 0 else end
                names[free:begin] = [member.name] * (begin - free)
                taken[free:begin] = b"\1" * (begin - free)
        return tuple(names)

    def place_of(self, structure: str, member: str) -> int | None:
        """Byte at which a member of a struct begins, also of an unnamed part; None if there is no such member."""
        number = self.number_of(structure)
        fields = () if number is None else self.fields(self.kind(number))
        return next((field.at // 8 for field in fields if field.name == member), None)

    def size_behind(self, structure: str, member: str) -> int | None:
        """Size in bytes of what a member points to; None if there is no such member or it is no pointer."""
        number = self.number_of(structure)
        for candidate in () if number is None else self.kind(number).members:
            if candidate.name == member and (raw := self._raw(candidate.type)).kind == _PTR:
                return self.size(raw.number)
        return None

    def _map(self, variable: _Raw) -> MapType:
        types_by_member = {member.name: member.type for member in self.kind(variable.number).members}

        def number(name: str) -> int:
            return self._pointed(types_by_member[name]).count if name in types_by_member else 0

        key, value = (
            self._raw(types_by_member[name]).number if name in types_by_member else 0 for name in ("key", "value")
        )
        return MapType(
            variable.name, number("type"), key, value,
            self.size(key) if key else number("key_size"), self.size(value) if value else number("value_size"),
        )  # fmt: skip

    def _pointed(self, number: int) -> TypeKind:
        """The type that a pointer points to. libbpf encodes numbers as arrays of so many elements."""
        return self.kind(self._raw(number).number)
