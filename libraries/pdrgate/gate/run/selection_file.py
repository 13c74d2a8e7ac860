"""The file selection.json: the paths that a run measures because their code differs, decided before it begins."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import msgspec

from pdrgate import __version__
from pdrgate.history.whole_file import write_whole
from pdrgate.results.selection import Selection
from pdrgate.testbeds import TestbedConfig
from pdrgate.this_process.no_follow import read_no_follow
from pdrgate.values.errors import DataError

SELECTION_FILE = "selection.json"
_LARGEST = 64 << 20
"""Largest selection file that is read, bytes."""


def code_key(digest: str, config: TestbedConfig) -> str:
    """What a kernel on a testbed is known by in the history: a guest with another CPU or device runs other code."""
    anywhere = dataclasses.replace(config, source=Path())
    return hashlib.sha256(f"{__version__}\n{digest}\n{anywhere!r}".encode()).hexdigest()


def write_selection(folder: Path, selection: Selection) -> None:
    """Put the selection of a run on disk. Raises StorageError."""
    write_whole(folder / SELECTION_FILE, msgspec.json.encode(selection))


def read_selection(folder: Path) -> Selection | None:
    """The selection of the run in ``folder``; None where it measures all that it was asked for.

    Raises:
        DataError: it cannot be read.
    """
    path = folder / SELECTION_FILE
    try:
        return msgspec.json.decode(read_no_follow(path, _LARGEST), type=Selection)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); start a new run") from error
