"""Common part of knobs whose state is set in one way, whether it is wanted or put back."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

from pdrgate.hosts.host import Host


class SetKnob(ABC):
    """Base of frozen dataclasses that satisfy `Knob`. One command sets all of a state, unless a knob says otherwise by
    its own `halfway`."""

    __slots__ = ()

    kind: ClassVar[str]
    """The knob's word in journals."""
    value: str

    def gone(self, host: Host) -> bool:
        return False

    def apply(self, host: Host) -> None:
        self._set(host, self.value)

    def restore(self, host: Host, old: str) -> None:
        self._set(host, old)

    def holds(self, actual: str, wanted: str) -> bool:
        return actual == wanted

    def halfway(self, actual: str, old: str, wanted: str) -> bool:
        return False

    def to_record(self) -> dict[str, str]:
        names = [field.name for field in dataclasses.fields(cast(Any, self)) if field.name != "value"]
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    @abstractmethod
    def _set(self, host: Host, wanted: str) -> None:
        """Bring a state about. Raises as `Knob.apply` does."""
