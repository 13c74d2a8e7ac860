"""Facts that guests have shown of this machine since it was started, for the runs after them."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pdrgate.values.errors import StorageError


@dataclass(frozen=True, slots=True)
class Remembered:
    """A small record that holds until this machine is started anew."""

    folder: Path
    """A place that a reboot empties, such as the journal's."""
    name: str

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.json"

    def read(self) -> Mapping[str, Any] | None:
        """Facts written since this machine was started; None if there are none."""
        try:
            facts = json.loads(self.path.read_text())
            return facts if isinstance(facts, dict) and facts["boot"] == _boot_id() else None
        except (OSError, ValueError, KeyError):
            return None

    def write(self, facts: Mapping[str, Any]) -> None:
        """Note the facts. Raises StorageError when that fails: runs would not know what their guests run by."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.folder, prefix=f"{self.name}-", delete=False) as file:
                json.dump({"boot": _boot_id(), **facts}, file)
            Path(file.name).replace(self.path)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}; make room there, start again") from error


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
