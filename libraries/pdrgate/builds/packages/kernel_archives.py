"""Content of a package file: a .deb, an .rpm, or a tar archive such as ``make targz-pkg`` and pacman make.

The file is read here and not by dpkg-deb, rpm or tar, for it is a stranger's: only the files that belong to a kernel
are written, into a folder of ours, as regular files first and links last, so that no link leads a file elsewhere.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from io import FileIO
from pathlib import Path, PurePosixPath

from pdrgate.builds.decompression import MissingToolError, Part, Source, Unpacked, is_packed, most_unpacked, read_all
from pdrgate.builds.handed_over import CHUNK, BuildError, new_place
from pdrgate.builds.packages.archive_member import Member
from pdrgate.builds.packages.cpio_stream import cpio_members
from pdrgate.builds.packages.package_fields import PackageFields, fields_of_control
from pdrgate.builds.packages.rpm_file import RPM, rpm_fields
from pdrgate.builds.packages.tar_stream import tar_members
from pdrgate.values.errors import StorageError

_AR = b"!<arch>\n"
_TAR = b"ustar"
_TAR_AT = 257

_KERNEL = re.compile(r"boot/(vmlinuz|config|System\.map)-[^/]+|(usr/)?lib/modules/[^/]+(/.+)?")
"""Files of a package that are a kernel's."""
_BESIDE = re.compile(r"(usr/)?lib/modules/[^/]+/(build|source)(/.*)?|.*\.pdrgate.*")
"""Files that are not taken: links to where it was built."""
_WAYS = frozenset({"boot", "lib", "usr", "usr/lib", "lib/modules", "usr/lib/modules"})
"""Folders on the way to it, which some packages have as links."""

_LARGEST_CONTROL = 64 << 20
_LARGEST_FIELDS = 1 << 20
_LARGEST_FILE = 2 << 30
_SMALL = 256 << 20
"""Bytes that a package may unpack to, however small it is."""
_MOST_MEMBERS = 500_000
_OURS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.EIO)
"""Errors in writing that are no fault of what is written."""


def is_package(head: bytes) -> bool:
    """Whether a file that begins so (with 512 bytes) may be a package that can be unpacked here."""
    return head.startswith((_AR, RPM)) or is_packed(head) or head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR


def unpack_kernel(package: FileIO, path: Path, folder: Path) -> PackageFields:
    """Write what a package has of a kernel into a new folder.

    Args:
        path: what the package is called in errors.

    Raises:
        BuildError: it is damaged, holds something that lies outside of it, or more than a kernel has.
        StorageError: there is no room for it.
        MissingToolError: what unpacks it is not installed.
    """
    try:
        folder.mkdir()
        return _unpacked(package, path, folder)
    except MissingToolError as error:
        raise MissingToolError(f"{path}: {error}") from error
    except ValueError as error:
        raise BuildError(f"{path}: cannot be unpacked: {error}; is it whole?") from error
    except OSError as error:
        if error.errno in _OURS:
            raise StorageError(f"cannot unpack {path} in {folder}: {error.strerror}; make room there") from error
        raise BuildError(f"{path}: cannot be unpacked: {error.strerror}; is it whole?") from error


def package_fields(package: FileIO) -> PackageFields | None:
    """The fields of a .deb or an .rpm; None for any other file. Raises ValueError if it is damaged."""
    head = package.read(len(_AR))
    package.seek(0)
    if head.startswith(RPM):
        return rpm_fields(package)
    return _control_fields(package) if head == _AR else None


def _unpacked(package: FileIO, path: Path, folder: Path) -> PackageFields:
    most = most_unpacked(os.fstat(package.fileno()).st_size, _SMALL)
    head = package.read(len(_AR))
    package.seek(0)
    if head.startswith(RPM):
        fields = rpm_fields(package)
        _write_kernel(package, most, cpio_members, folder)
        return fields
    if head == _AR:
        fields = _control_fields(package)
        for name, part in _ar_members(package):
            if name.startswith("data.tar"):
                _write_kernel(part, most, tar_members, folder)
        return fields
    _write_kernel(package, most, tar_members, folder)
    return PackageFields(re.sub(r"\.(pkg\.)?(tar|tgz)(\.\w+)?$", "", path.name))


def _ar_members(package: FileIO) -> Iterator[tuple[str, Part]]:
    """The members of a package as deb(5) has it, from its beginning; the reader may leave them unread."""
    package.seek(len(_AR))
    while head := read_all(package, 60):
        name, size = head[:16].decode("ascii", "replace").rstrip(" /"), head[48:58].strip()
        if len(head) < 60 or head[58:] != b"`\n" or not size.isdigit():
            raise ValueError("its members are damaged")
        begins, length = package.tell(), int(size)
        end = begins + length
        if end > os.fstat(package.fileno()).st_size:
            raise ValueError("it ends too early")
        yield name, Part(package, length)
        package.seek(end + end % 2)


def _control_fields(package: FileIO) -> PackageFields:
    for name, part in _ar_members(package):
        if name.startswith("control.tar"):
            with closing(Unpacked(part, _LARGEST_CONTROL)) as archive:
                for member in tar_members(archive):
                    if member.name.removeprefix("./") == "control" and member.size <= _LARGEST_FIELDS:
                        return fields_of_control(read_all(member.content, member.size).decode(errors="replace"))
            break
    raise ValueError("it has no control.tar with the fields of a package")


def _write_kernel(
    packed: Source, most: int, members: Callable[[Source], Iterator[Member]], folder: Path
) -> None:  # fmt: skip
    """Write what an archive has of a kernel."""
    with closing(Unpacked(packed, most)) as archive:
        _write_members(members(archive), folder)


def _write_members(members: Iterator[Member], folder: Path) -> None:
    links: dict[str, str] = {}
    written: set[str] = set()
    for number, member in enumerate(members):
        if number >= _MOST_MEMBERS:
            raise ValueError(f"it holds more than {_MOST_MEMBERS} files")
        name = _place(member.name)
        if not (_KERNEL.fullmatch(name) or name in _WAYS) or _BESIDE.fullmatch(name):
            continue
        match member.kind:
            case "file":
                if member.size > _LARGEST_FILE:
                    raise ValueError(f"{name} has {member.size >> 20} MiB, more than any file of a kernel")
                _copy(member.content, new_place(folder, name), member.changed)
                written.add(name)
            case "link":
                links[name] = member.target
            case "hard link":
                if (target := _place(member.target)) not in written:
                    raise ValueError(f"{name} is a hard link to {target}, which is no file of it that was taken")
                os.link(folder / target, new_place(folder, name))
                written.add(name)
            case "other":
                raise ValueError(f"{name} is a device or a FIFO")
    for name, target in links.items():
        # Where it leads is judged when a file is taken by it.
        new_place(folder, name).symlink_to(target)


def _place(name: str) -> str:
    """Place of a member below the folder. Raises ValueError if it has none."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or not name.isprintable():
        raise ValueError(f"it holds {name!a}, which lies outside of it or has no proper name")
    return "/".join(parts)


def _copy(file: Source, place: Path, changed: int) -> None:
    with place.open("xb") as copy:
        while chunk := file.read(CHUNK):
            copy.write(chunk)
    os.utime(place, (changed, changed))
