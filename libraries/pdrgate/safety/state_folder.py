"""Folders of locks and journals, and the id of this machine's boot."""

from __future__ import annotations

from pathlib import Path

from pdrgate.values.errors import TestbedError

STATE_DIR = Path("/run/pdrgate")
"""Folder of locks and journals, which a reboot empties."""

LASTING_DIR = Path("/var/lib/pdrgate")
"""Folder of other machines' journals, unless a test has a place of its own for all of them."""

SUT_LOCK = Path("/run/pdrgate-sut.lock")
"""The lock of a machine that something is measured on: controllers take it by SSH, and its own runs."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def lasting(directory: Path) -> Path:
    """Folder of other machines' journals, for runs whose state is in ``directory``."""
    return LASTING_DIR if directory == STATE_DIR else directory


def sut_lock(directory: Path) -> Path:
    """The lock of this machine for runs whose state is in ``directory``: controllers know one place only."""
    return SUT_LOCK if directory == STATE_DIR else directory / "locks" / SUT_LOCK.name


def make(directory: Path) -> None:
    """Make a directory of the state. Raises TestbedError when that is not allowed."""
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise TestbedError(f"cannot make {directory}: {error.strerror}; run as root or with sudo") from error


def boot_id() -> str:
    """The boot id of this machine."""
    return Path(BOOT_ID).read_text().strip()
