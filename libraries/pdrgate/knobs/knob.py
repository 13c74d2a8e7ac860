"""The protocol of a knob, and of the log of changes by knobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from pdrgate.hosts.host import Host

Missing = Literal["error", "skip", "ignore"]
"""Treatment of a knob that a host lacks: skip reports it, ignore does not."""

ANY = "any"
"""The value of a knob that changes nothing: what is there is noted, and put back after other knobs have spoilt it.
Those know it whose settings belong to something that other knobs replace, such as a queue."""


class Knob(Protocol):
    """One setting and the value wanted for it. All texts are the kernel's or the tool's own notation.

    A setting may have several parts, such as the queues of a device. Its states are then words ``part=value``.
    """

    @property
    def value(self) -> str: ...

    def describe(self) -> str:
        """Setting and wanted value in words."""

    def lacking(self, host: Host) -> str | None:
        """Why this host cannot have the value, as a sentence without an end; None when it can.

        Raises:
            TestbedError: the host cannot be asked, for want of a tool for one, or it could have the value and then
                could not get back what is there.
        """

    def gone(self, host: Host) -> bool:
        """Whether there is no such setting any more, so that there is nothing to put back."""

    def read(self, host: Host) -> str:
        """The present state, in the form that `restore` needs to bring it back."""

    def apply(self, host: Host) -> None:
        """Set the wanted value. Raises TestbedError when the host refuses it or reads back otherwise."""

    def restore(self, host: Host, old: str) -> None:
        """Set what `read` returned earlier. Raises as `apply` does."""

    def holds(self, actual: str, wanted: str) -> bool:
        """Whether the state ``actual``, as read, is or includes the state ``wanted``."""

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        """Whether ``actual`` can be what an `apply` left that was killed: each part as in ``old`` or as wanted."""

    def to_record(self) -> dict[str, str]:
        """The setting without its value, for `knob_from_record`."""


class ChangeLog(Protocol):
    """Log of changes, which notes a change before it is made, see `pdrgate.safety.journal.Journal`."""

    def change(self, host: str, knob: Mapping[str, str], old: str, new: str) -> int:
        """Note that a knob is about to be set; return the note's number."""

    def undone(self, number: int) -> None:
        """Note that the change of that number no longer needs to be undone."""
