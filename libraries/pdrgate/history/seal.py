"""Seals of files: whether pdrgate wrote a file here, or a stranger has handed it over.

A seal is a keyed digest (HMAC, RFC 2104) of a file's path and content, in a file beside it. The key lies in the cache
folder, where only the user who made it can read it. Without a key nothing is sealed, and nothing is taken for sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from pdrgate.history.whole_file import write_whole
from pdrgate.this_process.cache import cache_folder
from pdrgate.this_process.no_follow import open_no_follow, read_no_follow

_ENDING = ".seal"
_KEY_FILE = "seal.key"
_KEY_BYTES = 32
_LARGEST_SEALED = 64 << 20
"""Bytes of a file that can be sealed."""


def seal(path: Path) -> None:
    """Leave a seal beside a file that was just written; none where no key can be kept.

    Raises:
        StorageError: the seal cannot be written.
    """
    if key := _key(make=True):
        write_whole(_beside(path), _digest(path, key).encode(), durable=False)


def is_sealed(path: Path) -> bool:
    """Whether a file is as pdrgate wrote it in this place, for this user."""
    key = _key(make=False)
    try:
        told = read_no_follow(_beside(path), 1024)
        return bool(key) and hmac.compare_digest(told, _digest(path, key).encode())
    except OSError:
        return False


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{_ENDING}")


def _digest(path: Path, key: bytes) -> str:
    content = read_no_follow(path, _LARGEST_SEALED)
    place = os.fsencode(path.parent.resolve() / path.name)
    return hmac.new(key, b"\0".join((place, content)), hashlib.sha256).hexdigest()


def _key(*, make: bool) -> bytes:
    """The key of this user; empty where there is none, or others could know it."""
    path = cache_folder().resolve() / _KEY_FILE
    try:
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = open_no_follow(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(fd, "wb") as file:  # noqa: PTH123 - it is a descriptor
                file.write(secrets.token_bytes(_KEY_BYTES))
        status = path.lstat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return b""
        key = read_no_follow(path, _KEY_BYTES)
    except OSError:
        return b""
    return key if len(key) == _KEY_BYTES else b""
