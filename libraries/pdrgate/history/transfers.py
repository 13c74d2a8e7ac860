"""The transfers of a run: each is on disk before the next one starts."""

from __future__ import annotations

from pdrgate.history.lines import LineFile
from pdrgate.record.transfer import Transfer


class TransferFile(LineFile):
    """Appends transfers to ``transfers.jsonl``, one line of JSON each."""

    def append(self, transfer: Transfer) -> None:
        """Write one transfer; when this returns, it is on disk."""
        self.append_line(transfer.to_json())
