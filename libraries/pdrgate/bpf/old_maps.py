"""Objects with maps in ``SEC("maps")``, which libbpf took until 1.0, made ones that it takes: with maps in ``.maps``.

There a map is a variable whose type says what it is (BTF): a struct with a pointer to an array for each number, whose
length is the number. The object keeps its code, its symbols and its relocations. Its own types are left out, for they
call the maps by another section.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError
from pdrgate.builds.elf_file import ElfFile

OLD_MAPS = "maps"
_LARGEST = 1 << 20
_NAMED = (0, 1)
"""Types of symbols that may be maps: of no type, and variables. Others are sections and files."""
_OF_MAPS = {12: "an array of maps", 13: "a hash of maps"}
"""BPF_MAP_TYPE_ARRAY_OF_MAPS and BPF_MAP_TYPE_HASH_OF_MAPS, whose inner maps old sections name in several ways."""
_FIELDS = ("type", "key_size", "value_size", "max_entries", "map_flags")
_INT, _PTR, _ARRAY, _STRUCT, _VAR, _DATASEC = 1, 2, 3, 4, 14, 15
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")


def content_of(build: BpfBuild) -> bytes:
    """The object of a build with its maps declared by types. Raises BpfBuildError where one cannot be."""
    try:
        return with_declared_maps(build.read())
    except ValueError as error:
        raise BpfBuildError(
            f'{build.path}: {error}; define it in SEC(".maps"), with aya by #[btf_map] (aya-ebpf 0.2), or have its own '
            "loader load the file $BPF, a step of --scenario FILE.yaml"
        ) from error


def with_declared_maps(read: bytes) -> bytes:
    """The object with its maps declared by types, or as it is where it has none in the old section.

    Raises:
        ValueError: it is no object, or a map of it cannot be declared so.
    """
    elf = ElfFile(io.BytesIO(read))
    number = next((at for at, one in enumerate(elf.sections) if one.name == OLD_MAPS and one.size), None)
    if number is None:
        return read
    content = elf.content(elf.sections[number], _LARGEST)
    places = sorted(
        (one.value, one.name) for one in elf.all_symbols()
        if one.section == number and one.name and one.info & 0xF in _NAMED
    )  # fmt: skip
    ends = [at for at, _ in places[1:]] + [len(content)]
    maps = [(name, at, end - at, _numbers(name, content[at:end])) for (at, name), end in zip(places, ends, strict=True)]
    return _rewritten(read, elf, _types(maps, len(content)))


def _numbers(name: str, content: bytes) -> tuple[int, ...]:
    """Type, sizes, elements and flags of a map: what all layouts begin with, those of libbpf, iproute2 and aya."""
    if len(content) < 16:
        raise ValueError(f'its map {name} has {len(content)} bytes in SEC("maps"), and 16 are the least')
    found = struct.unpack("<5I", content[:20].ljust(20, b"\0"))
    if found[0] in _OF_MAPS:
        raise ValueError(f"its map {name} is {_OF_MAPS[found[0]]}")
    return found


def _types(maps: list[tuple[str, int, int, tuple[int, ...]]], size: int) -> bytes:
    """The types (BTF) of maps: name, place, size and numbers of each."""
    names, types, count = bytearray(b"\0"), bytearray(), 0

    def named(text: str) -> int:
        names.extend(text.encode() + b"\0")
        return len(names) - len(text.encode()) - 1

    def add(kind: int, name: int, number: int, more: bytes, members: int = 0) -> int:
        nonlocal count
        types.extend(struct.pack("<III", name, kind << 24 | members, number) + more)
        count += 1
        return count

    integer = add(_INT, named("int"), 4, struct.pack("<I", 1 << 24 | 32))
    fields = {name: named(name) for name in _FIELDS}
    variables = []
    for name, at, length, numbers in maps:
        members = []
        for field, number in zip(_FIELDS, numbers, strict=True):
            array = add(_ARRAY, 0, 0, struct.pack("<III", integer, integer, number))
            members.append(struct.pack("<III", fields[field], add(_PTR, 0, array, b""), 0))
        # All members begin where the struct does, so that it fits into what an old map takes.
        whole = add(_STRUCT, 0, 8, b"".join(members), len(members))
        variables.append(struct.pack("<III", add(_VAR, named(name), whole, struct.pack("<I", 1)), at, length))
    add(_DATASEC, named(".maps"), size, b"".join(variables), len(variables))
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names)) + types + names


def _rewritten(read: bytes, elf: ElfFile, types: bytes) -> bytes:
    """The file with other names and other types; both, and the table of its sections, follow at the end."""
    (table,), (count, text) = struct.unpack_from("<Q", read, 40), struct.unpack_from("<HH", read, 60)
    headers = [list(one) for one in _headers(read, table, count)]
    section = elf.sections[text]
    names = bytes(read[section.offset : section.offset + section.size]) + b"\0.maps\0.BTF\0"
    made = bytearray(read.ljust(-(-len(read) // 8) * 8, b"\0"))
    maps_name, types_name = section.size + 1, section.size + 7
    for one, header in zip(elf.sections, headers, strict=True):
        if one.name == OLD_MAPS:
            header[0] = maps_name
        elif one.name.startswith((".BTF", ".rel.BTF")):
            header[0] = header[1] = 0
    headers[text][4:6] = len(made), len(names)
    made += names.ljust(-(-len(names) // 8) * 8, b"\0")
    headers.append([types_name, 1, 0, 0, len(made), len(types), 0, 0, 4, 0])
    made += types.ljust(-(-len(types) // 8) * 8, b"\0")
    struct.pack_into("<Q", made, 40, len(made))
    struct.pack_into("<H", made, 60, len(headers))
    return bytes(made) + b"".join(_SECTION_HEADER.pack(*one) for one in headers)


def _headers(read: bytes, table: int, count: int) -> Iterator[tuple[int, ...]]:
    for number in range(count):
        yield _SECTION_HEADER.unpack_from(read, table + 64 * number)
