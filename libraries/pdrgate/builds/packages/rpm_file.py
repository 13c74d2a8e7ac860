"""Fields of an RPM package, ahead of its payload (rpm.org, "RPM V4 Package format").

An RPM is a stranger's file, so no other program takes it apart. bsdtar reads any archive that it finds in one, and one
form of them names files of the host, whose content it then takes. rpm2cpio leaves the cpio archive to be read, which is
most of the work, and PyPI's rpmfile holds a payload packed by zstd in memory as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pdrgate.builds.decompression import Source, read_all
from pdrgate.builds.packages.package_fields import PackageFields, checked_fields, role_of

RPM = b"\xed\xab\xee\xdb"
"""First bytes of an RPM package."""
_LEAD = 96
_SECTION = b"\x8e\xad\xe8\x01"
_MOST_ENTRIES = 1 << 16
_LARGEST = 64 << 20
"""Bytes of a header; that of 10 000 modules has two million."""
_NAME, _VERSION, _RELEASE, _REQUIRED, _FORMAT = 1000, 1001, 1002, 1049, 1124
"""Tags."""
_STRINGS = (6, 8, 9)
"""Types that are a text or several."""
_KERNEL = "-uname-r"
"""End of the names by which Fedora's packages of one kernel require each other, such as kernel-core-uname-r."""


def rpm_fields(package: Source) -> PackageFields:
    """Name, version and what is needed of a package that is read from its beginning; its payload is what follows.

    Raises:
        ValueError: it is no such package, damaged, or has a payload that is no cpio archive.
    """
    if not read_all(package, _LEAD).startswith(RPM):
        raise ValueError("it is no RPM package")
    _, size = _tags(package)  # signatures
    read_all(package, -size % 8)
    tags, _ = _tags(package)
    name, version, release = (next(iter(tags.get(tag, ())), "") for tag in (_NAME, _VERSION, _RELEASE))
    if tags.get(_FORMAT, ["cpio"]) != ["cpio"]:
        raise ValueError("its payload is no cpio archive")
    needs = (one.removesuffix(_KERNEL) for one in tags.get(_REQUIRED, ()) if one.endswith(_KERNEL))
    # "kernel-uname-r" is whatever holds the image; that package goes by another name.
    parts = tuple(dict.fromkeys(one for one in needs if role_of(one) is not None))
    return checked_fields(name, f"{version}-{release}", parts)


def _tags(package: Source) -> tuple[Mapping[int, list[str]], int]:
    """The texts of a section by their tags, and the size of its store."""
    head = read_all(package, 16)
    if len(head) < 16 or not head.startswith(_SECTION):
        raise ValueError("its header is damaged")
    count, size = struct.unpack(">II", head[8:])
    if count > _MOST_ENTRIES or size > _LARGEST:
        raise ValueError("it has a header that no kernel's has")
    index, store = read_all(package, 16 * count), read_all(package, size)
    if len(index) < 16 * count or len(store) < size:
        raise ValueError("it ends too early")
    wanted = (_NAME, _VERSION, _RELEASE, _REQUIRED, _FORMAT)
    return {
        tag: _texts(store, offset, number)
        for tag, kind, offset, number in struct.iter_unpack(">IIII", index)
        if tag in wanted and kind in _STRINGS
    }, size


def _texts(store: bytes, offset: int, number: int) -> list[str]:
    return [text.decode(errors="replace") for text in store[offset:].split(b"\0", number)[:number]]
