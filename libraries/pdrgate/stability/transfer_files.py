"""Transfers from files: our ``transfers.jsonl``, one Transfer per line, which may end in a line that a killed run did
not finish."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from pathlib import Path

from pdrgate.record.transfer import Transfer
from pdrgate.stability.content import opened_content
from pdrgate.stability.experiments import experiments
from pdrgate.values.errors import DataError

TRANSFERS_FILE = "transfers.jsonl"


@dataclass(frozen=True, slots=True)
class TransferExperiment:
    """The transfers of one scenario and boot, or of one side of a comparison, in measured order."""

    source: str
    transfers: tuple[Transfer, ...]
    scenario: str = ""


def holds_transfers(path: Path) -> bool:
    """Whether a file is one of transfers, by its first line; False of one that cannot be read."""
    try:
        with opened_content(path) as stream:
            record = json.loads(stream.readline().removeprefix(codecs.BOM_UTF8))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "window" in record and "intended_load" not in record


def read_transfers(path: Path) -> list[Transfer]:
    """The transfers of a run in measured order; none where there is no file.

    Raises:
        DataError: the file cannot be read, or a line is no transfer.
    """
    try:
        with opened_content(path) as stream:
            text = stream.read().decode("utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); it should hold one line of JSON per transfer") from error
    lines = text.split("\n")
    torn = lines.pop()  # only the write that a kill interrupted leaves a line without its newline
    found = []
    for number, line in enumerate(lines, start=1):
        found.append(_transfer(path, number, line))
    if torn.strip():
        try:
            found.append(_transfer(path, len(lines) + 1, torn))
        except DataError:
            if not found:
                raise
    return found


def read_transfer_experiments(path: Path) -> list[TransferExperiment]:
    """Every experiment in one file, in order of appearance: see `experiments`.

    Raises:
        DataError: as `read_transfers`, or the file holds none.
    """
    transfers = read_transfers(path)
    if not transfers:
        raise DataError(f"{path}: is empty or not there; it should hold one line of JSON per transfer")
    found = experiments(transfers)
    return [
        TransferExperiment(
            f"{path} ({name})" if len(found) > 1 and name else str(path), tuple(members), members[0].belonging.scenario
        )
        for name, members in found
    ]


def _transfer(path: Path, number: int, line: str) -> Transfer:
    try:
        return Transfer.from_mapping(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: line {number} is no transfer ({error}); move the file away") from error
