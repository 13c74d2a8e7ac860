"""Values of a field that traffic is chosen by: a number or an address, or all from one to another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

from pdrgate.values.errors import UsageError

_NUMBERS = re.compile(r"(0x[0-9a-f]+|\d+)(?:-(0x[0-9a-f]+|\d+))?", re.IGNORECASE | re.ASCII)
_SIDE = re.compile(r"@(in|out)([46])?(\+\d{1,5}(?:-\d{1,5})?)?", re.ASCII)
_LAST_OF_SIDE = 0xFFFE
"""The last address of a network of the testbed's that is used, counted from its first."""

SutSide = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from ``low`` to ``high``."""

    low: int
    high: int

    @property
    def count(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True, slots=True)
class Addresses:
    """IP addresses of one version, as numbers; where ``side`` is set, counted from the first of a testbed's network."""

    span: Span
    version: Literal[4, 6] | None = None
    """None: the testbed's."""
    side: SutSide | None = None


def number_span(text: str, least: int, most: int) -> Span:
    """``53``, ``0x35`` or ``1024-2047``. Raises UsageError."""
    found = _NUMBERS.fullmatch(text)
    if found is None or len(text) > 40:
        raise UsageError(f"{text[:40]!r} is no number and no range; use such as {least} or {least}-{most}")
    low = int(found[1], 0) if found[1][:2].lower() == "0x" else int(found[1])
    high = low if found[2] is None else int(found[2], 0) if found[2][:2].lower() == "0x" else int(found[2])
    if not least <= low <= most or not least <= high <= most:
        raise UsageError(f"{text} is out of range; use {least} to {most}")
    if low > high:
        raise UsageError(f"{text} begins above its end; write {high}-{low}")
    return Span(low, high)


def addresses(text: str) -> Addresses:
    """``198.18.0.1``, ``10.0.0.0/16``, ``10.0.0.1-10.0.0.9``, ``@out``, ``@in+5`` or ``@out6+1-9``. Raises UsageError.

    Of an IPv4 prefix, its first and last address are left out where it has others.
    """
    if text.startswith("@"):
        return _of_side(text)
    try:
        if "/" in text:
            network = ip_network(text)
            low, high = int(network.network_address), int(network.broadcast_address)
            if network.version == 4 and network.num_addresses > 2:
                low, high = low + 1, high - 1
            return Addresses(Span(low, high), network.version)
        first, _, last = text.partition("-")
        begin = ip_address(first)
        end = ip_address(last) if last else begin
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no address ({error}); use such as 198.18.0.1, 10.0.0.0/16, 10.0.0.1-10.0.0.9 or @out"
        ) from error
    if begin.version != end.version or int(begin) > int(end):
        raise UsageError(f"{text} does not lead from an address to a later one; write the lower one first")
    return Addresses(Span(int(begin), int(end)), begin.version)


def packed(value: int, version: int) -> bytes:
    """An address's bytes."""
    return (IPv4Address(value) if version == 4 else IPv6Address(value)).packed


def _of_side(text: str) -> Addresses:
    found = _SIDE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is no network of the testbed; use @out or @in, one address of it as @out+1, or of an IP version "
            "as @out6"
        )
    side: SutSide = "in" if found[1] == "in" else "out"
    version: Literal[4, 6] | None = None if found[2] is None else 4 if found[2] == "4" else 6
    span = Span(1, _LAST_OF_SIDE) if found[3] is None else number_span(found[3][1:], 1, _LAST_OF_SIDE)
    return Addresses(span, version, side)
