"""The transfers of a run: each is on disk before the next one starts."""

from __future__ import annotations

import json
from pathlib import Path

from pdrgate.errors import DataError
from pdrgate.history.lines import LineFile
from pdrgate.transfer import Transfer

TRANSFERS_FILE = "transfers.jsonl"


class TransferFile(LineFile):
    """Appends transfers to ``transfers.jsonl``, one line of JSON each."""

    def append(self, transfer: Transfer) -> None:
        """Write one transfer; when this returns, it is on disk."""
        self.append_line(transfer.to_json())


def read_transfers(path: Path) -> list[Transfer]:
    """The transfers of a run in measured order; none where there is no file.

    Raises:
        DataError: the file cannot be read, or a line is no transfer.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); it should hold one line of JSON per transfer") from error
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(Transfer.from_mapping(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: line {number} is no transfer ({error}); move the file away") from error
    return found
