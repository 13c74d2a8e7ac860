"""The folders of runs: a new one, the newest, and whose they are."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from pdrgate.history.address import Address
from pdrgate.history.results import LATEST, ROOM_OF_A_RUN
from pdrgate.this_process.no_follow import first_linked_below, folder_no_follow
from pdrgate.values.errors import DataError, StorageError


def new_folder(output: Path) -> Path:
    """A folder for a new run below ``output``, named by time; a second run in the same second gets a suffix."""
    place = next(one for one in (output.absolute(), *output.absolute().parents) if one.exists())
    if (free := shutil.disk_usage(place).free) < ROOM_OF_A_RUN:
        raise StorageError(
            f"{place} has {free >> 20} MB free, and a run wants {ROOM_OF_A_RUN >> 20} MB: make room there, or choose "
            "another with --output"
        )
    moment = time.strftime("%Y%m%d-%H%M%S")
    names = (moment, *(f"{moment}-{number}" for number in range(2, 100)))
    try:
        with folder_no_follow(output, make=True) as runs:
            made = next((name for name in names if _made(name, runs)), "")
    except OSError as error:
        raise StorageError(f"cannot make {output / moment}: {error.strerror}; choose another with --output") from error
    if not made:
        raise StorageError(f"cannot make a new folder in {output}; choose another with --output")
    return output / made


def _made(name: str, runs: int) -> bool:
    try:
        os.mkdir(name, dir_fd=runs)
    except FileExistsError:
        return False
    return True


def refuse_linked(folder: Path) -> None:
    """Raise DataError where the folder of a run holds, or lies behind, what a run never leaves and what would be read
    or written in its place: a link, a device, a file that has another name elsewhere.
    """
    try:
        with folder_no_follow(folder):
            planted = first_linked_below(folder)
    except OSError as error:
        raise DataError(f"cannot go on with {folder}: {error.strerror}; start a new run") from error
    if planted is not None:
        raise DataError(
            f"cannot go on with {folder}: {planted} is a link, or no plain file, and no run leaves one; start a new run"
        )


def mark_latest(folder: Path) -> None:
    """Let ``latest`` beside a run's folder be it. What cannot be linked, or is somebody's own file, stays as it is."""
    link, partial = folder.parent / LATEST, folder.parent / f".{LATEST}-{os.getpid()}"
    if link.exists() and not link.is_symlink():
        return
    with contextlib.suppress(OSError):
        partial.symlink_to(folder.name)
        try:
            give_file_to_caller(partial)
            partial.replace(link)
        finally:
            partial.unlink(missing_ok=True)


def give_to_caller(folder: Path) -> None:
    """What root measured for somebody who used sudo is theirs, with the folder of runs if it was made just now."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    runs = folder.parent
    made = runs.stat().st_uid == 0 and runs.absolute().parent.stat().st_uid == int(uid)
    for path in (*((runs,) if made else ()), folder, *folder.rglob("*")):
        with contextlib.suppress(OSError):
            os.chown(path, int(uid), int(gid), follow_symlinks=False)


def give_history_to_caller(history: Address) -> None:
    """A history that root made in somebody's folder is theirs, to import into without sudo."""
    if history.file is not None:
        give_file_to_caller(history.file)


def give_file_to_caller(file: Path) -> None:
    """A file beside the runs that root made in somebody's folder is theirs."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    with contextlib.suppress(OSError):
        if file.lstat().st_uid == 0 and file.absolute().parent.stat().st_uid == int(uid):
            os.chown(file, int(uid), int(gid), follow_symlinks=False)
