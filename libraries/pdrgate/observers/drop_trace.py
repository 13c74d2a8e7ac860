"""Drop traces: observers that see each packet that the SUT's kernel drops.

A trace costs time in the trial that it watches. Therefore it watches a trial that serves nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pdrgate.observers.watching import Observer
from pdrgate.record.trial import Trial
from pdrgate.results.drops import DropsResult


class DropTrace(Observer, Protocol):
    """Watches one trial, and keeps what it saw in a file.

    `end` raises TestbedError where the trace failed, and StorageError where its file cannot be written.
    """

    def drops(self, trial: Trial) -> DropsResult:
        """The packets of this trial by the function that dropped them, once it has ended. Raises TestbedError."""


class DropTracer(Protocol):
    """Tracer of the drops of a SUT."""

    @property
    def name(self) -> str:
        """A word that the names of its files begin with."""

    @property
    def version(self) -> str:
        """The tracer's name and version, as a person writes them."""

    def trace(self, into: Path) -> DropTrace:
        """A trace of one trial; its file is made when the trial has ended."""
