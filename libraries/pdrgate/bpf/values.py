"""Values as a person writes them, in the bytes that an eBPF program reads.

Numbers are written as in C. Addresses (IPv4, IPv6, MAC) stand in the order of a packet, and so do numbers of the types
__be16, __be32 and __be64. ``net 53`` is a number in that order whatever its type, ``host 10.0.0.1`` an address in the
machine's. ``hex 00 11`` is bytes as they are. A struct is a mapping by the names of its fields, the rest of it 0. A
union has one of them. A name that begins with @ stands for a value of the SUT, such as ``@in.ifindex``.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from pdrgate.bpf.btf import TypeKind, TypeMember, Types
from pdrgate.builds.program_setup import Plain

_RANGE = re.compile(r"(\S+?)\.\.(\S+)")
_EACH = re.compile(r"each /(\d+) of (\S+)")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")
_WORDS = {"true": 1, "false": 0}
_DEEPEST = 32
LARGEST = 1 << 16
"""Bytes of one value."""
MOST_KEYS = 1 << 21
"""Elements that ranges of one map may come to."""


class MisfitError(ValueError):
    """A value that its type has no room for. The message says where, and what would fit."""


class Writer:
    """Writes values of an object's types.

    Args:
        names: what is known of the SUT, by names that begin with @.
    """

    def __init__(self, types: Types, names: Mapping[str, str]) -> None:
        self._types = types
        self.names = names
        self.used_names: dict[str, str] = {}
        """Names of the SUT that were written, with their values."""

    def written(self, number: int, value: Plain, at: str) -> bytes:
        """A value of the type of this number.

        Args:
            at: where it stands, in words.

        Raises:
            MisfitError: it does not fit.
        """
        return self._written(number, value, at, 0)

    def sized(self, size: int, value: Plain, at: str) -> bytes:
        """A value of which only the size is known. Raises MisfitError."""
        if not isinstance(value, str):
            raise MisfitError(f"{at} is {size} bytes of an undeclared type; write a number, or hex 00 11")
        return self._special(size, value, at) or self._number(size, False, value, at)

    def name(self, text: str, at: str) -> str:
        """The text, or what the SUT is known by that name. Raises MisfitError."""
        if not text.startswith("@"):
            return text
        if text not in self.names:
            raise MisfitError(f"{at}: there is no {text}; there are {', '.join(self.names)}")
        self.used_names[text] = self.names[text]
        return self.used_names[text]

    def _written(self, number: int, value: Plain, at: str, depth: int) -> bytes:
        kind = self._types.kind(number)
        if depth > _DEEPEST:
            raise MisfitError(f"{at} is nested too deeply")
        if kind.size > LARGEST:
            raise MisfitError(f"{at} has {kind.size} bytes; no more than {LARGEST} can be written")
        if isinstance(value, str) and (special := self._special(kind.size, value, at, kind)) is not None:
            return special
        match kind.sort:
            case "struct" | "union":
                return self._struct(kind, value, at, depth)
            case "array":
                return self._array(kind, value, at, depth)
            case "int" | "enum":
                if not isinstance(value, str):
                    raise MisfitError(f"{at} is a number of {kind.size} bytes; write one")
                if kind.sort == "enum" and (named := [one for one in kind.members if one.name == value]):
                    return (named[0].at % (1 << 8 * kind.size)).to_bytes(kind.size, "little")
                return self._number(kind.size, kind.network_order, value, at)
            case _:
                raise MisfitError(f"{at} is a {kind.sort}, which has no value here; leave it out")

    def _special(self, size: int, value: str, at: str, kind: TypeKind | None = None) -> bytes | None:
        """Bytes of a value that is written alike for any type of that size; None for other values."""
        text = self.name(value, at)
        if text.startswith("hex "):
            try:
                found = bytes.fromhex(text.removeprefix("hex "))
            except ValueError as error:
                raise MisfitError(f"{at}: {value} is no row of bytes; write hex 00 11") from error
            if len(found) != size:
                raise MisfitError(f"{at} has {size} bytes, and {value} is {len(found)}")
            return found
        in_order, _, rest = text.rpartition(" ")
        if _MAC.fullmatch(rest):
            found = bytes.fromhex(rest.replace(":", "").replace("-", ""))
        else:
            try:
                found = ipaddress.ip_address(rest).packed
            except ValueError:
                return None
        if in_order == "host":
            found = found[::-1]
        if len(found) == size:
            return found
        # Of a union of addresses, or of a MAC in a number, what is left is 0.
        if kind is not None and ((kind.sort == "union" and len(found) == 4) or (kind.sort == "int" and size == 8)):
            return found.ljust(size, b"\0")
        if kind is not None and kind.sort == "array" and not kind.network_order and size < len(found):
            raise MisfitError(f"{at} has {size} bytes, and {value} is {len(found)}")
        raise MisfitError(f"{at} has {size} bytes, and {value} is {len(found)}")

    def _number(self, size: int, network: bool, value: str, at: str) -> bytes:
        text = self.name(value, at)
        network |= text.startswith("net ")
        digits = text.removeprefix("net ").strip()
        try:
            number = _WORDS[digits] if digits in _WORDS else int(digits, 16 if digits[:2].lower() == "0x" else 10)
            return (number % (1 << 8 * size) if number < 0 else number).to_bytes(size, "big" if network else "little")
        except OverflowError:
            raise MisfitError(f"{at} has {size} bytes, and {value} does not fit into them") from None
        except ValueError:
            raise MisfitError(f"{at} is a number of {size} bytes, and {value!r} is none") from None

    def _array(self, kind: TypeKind, value: Plain, at: str, depth: int) -> bytes:
        if isinstance(value, str):
            text = value.encode()
            if self._types.size(kind.element) == 1 and len(text) <= kind.count:
                return text.ljust(kind.size, b"\0")
            raise MisfitError(f"{at} has {kind.count} elements, {kind.size} bytes; write them as a list")
        if isinstance(value, Mapping):
            raise MisfitError(f"{at} has {kind.count} elements and no fields; write them as a list")
        if len(value) > kind.count:
            raise MisfitError(f"{at} has {kind.count} elements, and {len(value)} are given")
        return b"".join(
            self._written(kind.element, one, f"{at}[{number}]", depth + 1) for number, one in enumerate(value)
        ).ljust(kind.size, b"\0")

    def _struct(self, kind: TypeKind, value: Plain, at: str, depth: int) -> bytes:
        fields = {one.name: one for one in self._types.fields(kind)}
        known = ", ".join(fields) or "none"
        if not isinstance(value, Mapping):
            raise MisfitError(f"{at} is a {kind.sort}; write its fields by their names: {known}")
        content = bytearray(kind.size)
        for name, one in value.items():
            if name not in fields:
                raise MisfitError(f"{at} has no field {name}; its fields are {known}")
            self._put(content, fields[name], one, f"{at}.{name}", depth + 1)
        return bytes(content)

    def _put(self, content: bytearray, member: TypeMember, value: Plain, at: str, depth: int) -> None:
        if not member.bits:
            written = self._written(member.type, value, at, depth)
            content[member.at // 8 : member.at // 8 + len(written)] = written
            return
        number = int.from_bytes(self._written(member.type, value, at, depth), "little")
        if number >> member.bits:
            raise MisfitError(f"{at} has {member.bits} bits, and {value} does not fit into them")
        whole = int.from_bytes(content, "little") & ~(((1 << member.bits) - 1) << member.at)
        content[:] = (whole | number << member.at).to_bytes(len(content), "little")


def expanded(value: Plain, *, prefixes: bool = False) -> Iterator[Plain]:
    """The values that one with ranges stands for: ``0..9``, ``10.0.0.0/16``, ``each /24 of 10.0.0.0/8``.

    Args:
        prefixes: whether a network is one value by itself.
    """
    if isinstance(value, str):
        yield from _range(value, prefixes)
    else:
        parts = value.values() if isinstance(value, Mapping) else value
        ways = itertools.product(
            *(itertools.islice(expanded(part, prefixes=prefixes), MOST_KEYS + 1) for part in parts)
        )
        yield from (dict(zip(value, way, strict=True)) for way in ways) if isinstance(value, Mapping) else ways


def numbered(value: Plain, number: int) -> Plain:
    """The value, with @n as the number of the element within its range."""
    if isinstance(value, str):
        return str(number) if value == "@n" else value
    if isinstance(value, Mapping):
        return {name: numbered(one, number) for name, one in value.items()}
    return [numbered(one, number) for one in value]


def prefix(text: str) -> tuple[int, bytes] | None:
    """The length and the address of a network in words; None if it is none."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    return network.prefixlen, network.network_address.packed


def _range(text: str, prefixes: bool) -> Iterator[str]:
    try:
        if each := _EACH.fullmatch(text):
            yield from map(str, ipaddress.ip_network(each[2], strict=False).subnets(new_prefix=int(each[1])))
            return
        if bounds := _RANGE.fullmatch(text):
            yield from _between(bounds[1], bounds[2])
            return
        if "/" in text and not prefixes:
            yield from map(str, ipaddress.ip_network(text, strict=False))
            return
    except ValueError:
        pass
    yield text


def _between(first: str, last: str) -> Sequence[str] | Iterator[str]:
    if first.isdecimal() and last.isdecimal():
        return map(str, range(int(first), int(last) + 1))
    lowest, highest = ipaddress.ip_address(first), ipaddress.ip_address(last)
    return (str(lowest + step) for step in range(int(highest) - int(lowest) + 1))
