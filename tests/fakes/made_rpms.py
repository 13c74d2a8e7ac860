"""RPM packages that are made up, byte by byte: with what they require, and with payloads that no tool would make."""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Entry = tuple[str, int, bytes]
"""Name, mode and content of a file; a link's content is the place that it points to."""


def rpm(
    path: Path,
    name: str,
    files: Mapping[str, bytes] | Iterable[Entry] = (),
    requires: Iterable[str] = (),
    version: str = "6.14.0",
    release: str = "63.fc42",
    pack: Callable[[bytes], bytes] = bytes,
    payload: bytes | None = None,
    form: str = "cpio",
) -> Path:
    """Write a package; ``payload`` stands in place of the archive of its files."""
    entries = (
        [(one, stat.S_IFREG | 0o644, content) for one, content in files.items()]
        if isinstance(files, Mapping)
        else files
    )
    signatures = _section({1000: "ignored"})
    header = _section({1000: name, 1001: version, 1002: release, 1049: list(requires), 1124: form, 1125: "zstd"})
    lead = b"\xed\xab\xee\xdb\x03\0\0\0\0\1".ljust(96, b"\0")
    content = pack(cpio_archive(entries)) if payload is None else payload
    path.write_bytes(lead + signatures + bytes(-len(signatures) % 8) + header + content)
    return path


def _regular(files: Mapping[str, bytes]) -> list[Entry]:
    return [(name, stat.S_IFREG | 0o644, content) for name, content in files.items()]


def cpio_archive(entries: Iterable[Entry], links: Mapping[str, int] | None = None) -> bytes:
    """An archive in the form "newc"; ``links`` are inodes of files that have several names."""
    made = b""
    for number, (name, mode, content) in enumerate((*entries, ("TRAILER!!!", 0, b"")), 1):
        inode = (links or {}).get(name, number)
        shared = 2 if name in (links or {}) else 1
        fields = (inode, mode, 0, 0, shared, 1_700_000_000, len(content), 0, 0, 0, 0, len(name.encode()) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        made += head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
    return made


def _section(tags: Mapping[int, str | list[str]]) -> bytes:
    index, store = b"", b""
    for tag, value in tags.items():
        texts = [value] if isinstance(value, str) else value
        index += struct.pack(">IIII", tag, 6 if isinstance(value, str) else 8, len(store), len(texts))
        store += b"".join(text.encode() + b"\0" for text in texts)
    return b"\x8e\xad\xe8\x01\0\0\0\0" + struct.pack(">II", len(tags), len(store)) + index + store
