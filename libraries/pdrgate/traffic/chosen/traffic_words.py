"""The words that traffic is chosen by, and what they mean: ``udp dst=198.18.0.1 dport=53 src=10.0.0.0/16 flows=1000``.

    TRAFFIC  = part {";" part}
    part     = (layer {"in" layer} | FILE.pcap) {option}      options stand anywhere in it
    layer    = NAME {key=value}

So each word has one place where it is explained, and an error names it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pdrgate.traffic.chosen.capture_file import captured_packets
from pdrgate.traffic.chosen.chosen_traffic import CapturedTraffic, ChosenTraffic, Draw, Flows, Kind, Layer
from pdrgate.traffic.chosen.spans import Addresses, SutSide, addresses, number_span
from pdrgate.traffic.headers import FLAGS
from pdrgate.values.errors import PdrGateError, UsageError

MOST_FLOWS = 65536
MOST_FRAGMENTS = 45
_MOST_WEIGHT, _MOST_PARTS, _MOST_OPTIONS = 1000, 64, 40
_CAPTURES = (".pcap", ".pcapng", ".cap")
_IN = "in"
_Read = Callable[[str], Any]


def _number(least: int, most: int) -> _Read:
    return lambda text: number_span(text, least, most)


def _one(least: int, most: int) -> _Read:
    def read(text: str) -> int:
        found = number_span(text, least, most)
        if found.count > 1:
            raise UsageError(f"{text} are several, and there is one; use such as {found.low}")
        return found.low

    return read


def _choice(*names: str) -> _Read:
    def read(text: str) -> str:
        if text not in names:
            raise UsageError(f"{text!r} is none; use {' or '.join(names)}")
        return text

    return read


def _mac(text: str) -> bytes:
    try:
        found = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        found = b""
    if len(found) != 6 or len(text) != 17:
        raise UsageError(f"{text!r} is no MAC address; use such as 02:00:00:00:00:01")
    return found


def _mac_or_side(text: str) -> bytes | SutSide:
    if text in ("@in", "@out"):
        return "in" if text == "@in" else "out"
    return _mac(text)


def _flags(text: str) -> int:
    if not text or set(text.upper()) - set(FLAGS):
        raise UsageError(f"{text!r} are no TCP flags; use letters of {FLAGS}, such as S or SA")
    return sum(1 << FLAGS.index(letter) for letter in set(text.upper()))


def _labels(text: str) -> tuple[int, ...]:
    found = tuple(_one(0, (1 << 20) - 1)(part) for part in text.split(","))
    if len(found) > 8:
        raise UsageError(f"{len(found)} labels are too many; use 8 at most")
    return found


def _segments(text: str) -> tuple[Addresses, ...]:
    found = tuple(addresses(part) for part in text.split(","))
    if len(found) > 8 or any(one.span.count > 1 or one.version == 4 for one in found):
        raise UsageError(f"{text} are no segments; use 1 to 8 IPv6 addresses, with commas between")
    return found


def _payload(text: str) -> bytes:
    return _hexadecimal(text) if text.startswith("0x") else text.encode()


def _options(text: str) -> bytes:
    found = _hexadecimal(text) if text.startswith("0x") else b""
    if not found or len(found) % 4 or len(found) > _MOST_OPTIONS:
        raise UsageError(
            f"{text} are no options of TCP; write 4 to {_MOST_OPTIONS} bytes, a multiple of 4, such as 0x020405b4"
        )
    return found


def _hexadecimal(text: str) -> bytes:
    try:
        return bytes.fromhex(text[2:])
    except ValueError as error:
        raise UsageError("has no whole bytes; write two hexadecimal digits for each") from error


_BYTE, _WORD = _number(0, 255), _number(0, 65535)
_IP: Mapping[str, _Read] = {"src": addresses, "dst": addresses, "ttl": _number(1, 255), "tos": _BYTE}
_MORE: Mapping[str, _Read] = {"extensions": _one(1, 8)}
_LINK: Mapping[str, _Read] = {"vlan": _number(1, 4094), "vlan2": _number(1, 4094), "smac": _mac, "dmac": _mac_or_side}
_PORTS: Mapping[str, _Read] = {"sport": _WORD, "dport": _WORD}
_MESSAGE: Mapping[str, _Read] = {"type": _BYTE, "code": _BYTE, "id": _WORD}
INNERMOST: Mapping[str, Mapping[str, _Read]] = {
    "udp": {**_IP, **_PORTS, **_MORE},
    "tcp": {**_IP, **_PORTS, "flags": _flags, "options": _options, **_MORE},
    "icmp": {**_IP, **_MESSAGE},
    "icmpv6": {**_IP, **_MESSAGE, **_MORE},
    "ip": {**_IP, "proto": _BYTE, **_MORE},
}
"""Kinds of packets, and the keys that each takes."""
AROUND: Mapping[str, Mapping[str, _Read]] = {
    "ipip": _IP,
    "gre": {**_IP, "key": _number(0, (1 << 32) - 1)},
    "vxlan": {**_IP, **_PORTS, "vni": _number(0, (1 << 24) - 1)},
    "srv6": {**_IP, "via": _segments},
    "mpls": {"label": _labels},
}
"""Surrounding layers, and the keys that each takes."""
_OF_CAPTURES: Mapping[str, _Read] = {
    "weight": _one(1, _MOST_WEIGHT),
    "from": _choice(*get_args(SutSide)),
    "macs": _choice("keep"),
}
_OF_FLOWS: Mapping[str, _Read] = {
    "weight": _one(1, _MOST_WEIGHT),
    "from": _choice(*get_args(SutSide)),
    "flows": _one(1, MOST_FLOWS),
    "draw": _choice(*get_args(Draw)),
    "size": _one(64, 1518),
    "fragments": _one(1, MOST_FRAGMENTS),
    "payload": _payload,
}
_V4_ONLY, _V6_ONLY = ("icmp",), ("icmpv6", "srv6")


def chosen_traffic(texts: Iterable[str], beside: Path = Path()) -> ChosenTraffic:
    """The traffic that words mean; capture files that they name are read.

    Args:
        texts: each of one part or of several with ``;`` between. One that begins with ``key=value`` goes on with the
            part before it.
        beside: the folder that relative names of capture files start from.

    Raises:
        UsageError: the words have no meaning; the message says which.
        DataError: a capture file is of no use.
    """
    parts: list[str] = []
    for text in texts:
        for at, part in enumerate(one.strip() for one in text.split(";")):
            if parts and not at and "=" in part.split(" ", 1)[0]:
                parts[-1] += f" {part}"
            elif part:
                parts.append(part)
    if not parts:
        raise UsageError("no traffic is chosen; say such as: udp dst=198.18.0.1 dport=53 flows=1000")
    if len(parts) > _MOST_PARTS:
        raise UsageError(f"{len(parts)} parts of traffic are too many; use {_MOST_PARTS} at most")
    return ChosenTraffic(tuple(_part(part, beside) for part in parts))


def from_anywhere(text: str) -> str:
    """The words with capture files by their absolute paths."""
    parts = [part.strip().split(" ", 1) for part in text.split(";")]
    return "; ".join(
        " ".join((str(Path(part[0]).expanduser().absolute()), *part[1:]) if _is_file(part[0]) else part)
        for part in parts
    )


def _is_file(word: str) -> bool:
    return word.lower().endswith(_CAPTURES)


def _part(text: str, beside: Path) -> Flows | CapturedTraffic:
    try:
        words = shlex.split(text)
        if words and _is_file(words[0]):
            return _capture(words, beside)
        return _flows(words)
    except ValueError as error:
        if isinstance(error, PdrGateError):
            raise
        raise UsageError(f"traffic {text!r}: {str(error).lower()}; close the quotation") from error
    except UsageError as error:
        raise UsageError(f"traffic {text!r}: {error}") from error


def _capture(words: list[str], beside: Path) -> CapturedTraffic:
    file, *others = words
    options = _values(others, _OF_CAPTURES, "a capture")
    path = beside / Path(file).expanduser()
    return CapturedTraffic(
        name=path.name, frames=captured_packets(path), weight=options.get("weight", 1),
        origin=options.get("from", "in"), keep_macs="macs" in options, text=shlex.join([path.name, *others]),
    )  # fmt: skip


def _flows(words: list[str]) -> Flows:
    layers: list[list[str]] = [[]]
    options: list[str] = []
    for word in words:
        if word == _IN:
            layers.append([])
        elif word.partition("=")[0] in _OF_FLOWS and "=" in word:
            options.append(word)
        else:
            layers[-1].append(word)
    values = _values(options, _OF_FLOWS, "traffic")
    made = tuple(
        _layer(one, INNERMOST if not at else AROUND, has_link=_has_link(layers, at)) for at, one in enumerate(layers)
    )
    flows = Flows(
        layers=made, flows=values.get("flows"), draw=values.get("draw", "turn"), size=values.get("size"),
        weight=values.get("weight", 1), origin=values.get("from", "in"), fragments=values.get("fragments", 1),
        payload=values.get("payload", b""), text=shlex.join(words),
    )  # fmt: skip
    if flows.fragments > 1 and made[0].kind == "ip":
        raise UsageError("fragments are made of udp, tcp or icmp; leave fragments out")
    return flows


def _has_link(layers: list[list[str]], at: int) -> bool:
    """Whether an Ethernet header is right around a layer: around the outermost, and in VXLAN."""
    return at == len(layers) - 1 or layers[at + 1][:1] == ["vxlan"]


def _layer(words: list[str], known: Mapping[str, Mapping[str, _Read]], *, has_link: bool) -> Layer:
    name, *others = words or [""]
    if name not in known:
        where = "behind `in`" if known is AROUND else "first"
        raise UsageError(f"{name!r} is no word that can stand {where}; use {', '.join(known)}")
    values = _values(others, {**known[name], **(_LINK if has_link else {})}, name)
    kind: Kind = next(one for one in get_args(Kind) if one == name)
    version = {one.version for key in ("src", "dst") if (one := values.get(key)) is not None} - {None}
    wanted: Literal[4, 6] | None = 4 if name in _V4_ONLY else 6 if name in _V6_ONLY else None
    if len(version) > 1 or (wanted and version - {wanted}):
        raise UsageError(f"{name} has addresses of another IP version; use those of IPv{wanted or '4 or of IPv6'}")
    if values.get("vlan2") and not values.get("vlan"):
        raise UsageError(f"{name} has a second tag and no first; say vlan=100 too")
    if name == "mpls" and not values.get("label"):
        raise UsageError("mpls has no label; say such as label=100")
    return Layer(kind=kind, **values)


def _values(words: list[str], known: Mapping[str, _Read], what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word!r} says nothing of {what}; use key=value, with {', '.join(known)}")
        if key not in known:
            raise UsageError(f"{what} has no {key!r}; it has {', '.join(known)}")
        if key in found:
            raise UsageError(f"{key} is said twice; leave one out")
        try:
            found[key] = known[key](value)
        except UsageError as error:
            raise UsageError(f"{key}: {error}") from error
    return found
