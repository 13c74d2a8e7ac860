"""A history in a SQLite file is a plain file of those who run pdrgate.

Whoever may write in a folder that is not theirs alone can plant a link there, which makes root write elsewhere, or a
database with tries and boots that nobody measured.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pdrgate.this_process.no_follow import folder_no_follow, open_no_follow
from pdrgate.values.errors import DataError

_BESIDE = ("-wal", "-shm", "-journal")
"""SQLite keeps a part of the database in files with these endings while somebody has it open."""


def check_own(file: Path, *, create: bool) -> None:
    """Refuse what only looks like a history of this user, before SQLite opens it.

    Args:
        create: whether an empty file is made, with its folder, where there is none.

    Raises:
        DataError: it is no plain file, or another user's.
        OSError: it cannot be opened or made, or a link leads to it.
    """
    if create:
        with folder_no_follow(file.parent, make=True):
            pass
    fd = open_no_follow(file, os.O_RDONLY | os.O_NONBLOCK | (os.O_CREAT if create else 0))
    try:
        _refuse(file, os.fstat(fd))
    finally:
        os.close(fd)
    for beside in (file.with_name(f"{file.name}{ending}") for ending in _BESIDE):
        if os.path.lexists(beside):
            _refuse(beside, beside.lstat())


def _refuse(file: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"the history {file} is no plain file; name another with --history")
    us = {os.geteuid(), 0}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdecimal():
        us.add(int(caller))
    if status.st_uid not in us:
        raise DataError(
            f"the history {file} belongs to another user (uid {status.st_uid}), who could write anything there; name "
            "another with --history"
        )
