"""The folders of runs: a new one, the newest, and whose they are."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from pdrgate.errors import StorageError
from pdrgate.history.results import LATEST, ROOM_OF_A_RUN


def new_folder(output: Path) -> Path:
    """A folder for a new run below ``output``, named by time; a second run in the same second gets a suffix."""
    place = next(one for one in (output.absolute(), *output.absolute().parents) if one.exists())
    if (free := shutil.disk_usage(place).free) < ROOM_OF_A_RUN:
        raise StorageError(
            f"{place} has {free >> 20} MB free, and a run wants {ROOM_OF_A_RUN >> 20} MB: make room there, or choose "
            "another with --output"
        )
    name = time.strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        folder = output / f"{name}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error.strerror}; choose another with --output") from error
        return folder
    raise StorageError(f"cannot make a new folder in {output}; choose another with --output")


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


def followed(path: Path) -> Path:
    """The path, and what ``latest`` in it stands for by now: it will be another run soon."""
    for one in (path, path.parent):
        if one.name == LATEST and one.is_symlink():
            return one.parent / one.readlink() / path.relative_to(one)
    return path


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


def give_file_to_caller(file: Path) -> None:
    """A file beside the runs that root made in somebody's folder is theirs: a history, to import into without sudo."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    with contextlib.suppress(OSError):
        if file.lstat().st_uid == 0 and file.absolute().parent.stat().st_uid == int(uid):
            os.chown(file, int(uid), int(gid), follow_symlinks=False)
