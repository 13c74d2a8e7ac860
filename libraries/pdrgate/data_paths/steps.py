"""What a data path is set up with: steps, each of which is applied, read back and undone."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, Literal, Protocol, TypeVar

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.data_paths.contract import DataPath, Hop
from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs import ChangeLog, Knob, KnobSet, Missing, put_back, sysctl
from pdrgate.traffic.delivery import Arrivals
from pdrgate.traffic.generator import ClosedLoop
from pdrgate.values.errors import TestbedError

_Entered = TypeVar("_Entered")


class Step(ABC):
    """A step sets one thing up on the SUT, once."""

    @cached_property
    def _undo(self) -> list[Callable[[], object]]:
        """Calls that put back what `apply` has done so far, in its order."""
        return []

    @abstractmethod
    def apply(self) -> None:
        """Set it up. Raises TestbedError when the host refuses."""

    def read_back(self) -> None:  # noqa: B027 - most steps are in effect once a host takes them
        """See that it is as it was applied, once all steps are. Raises TestbedError when it is not."""

    def undo(self) -> Sequence[str]:
        """Put back what `apply` did, also after it failed half-way; sentences on what could not be done as expected.

        Raises TestbedError when the host refuses.
        """
        sentences = []
        while self._undo:
            try:
                self._undo.pop()()
            except TestbedError as error:
                sentences.append(str(error))
        return sentences

    def _enter(self, context: AbstractContextManager[_Entered]) -> _Entered:
        """Enter a context that ends when the step is undone."""
        stack = ExitStack()
        entered = stack.enter_context(context)
        self._undo.append(stack.close)
        return entered


def undo_all(steps: list[Step]) -> list[str]:
    """Undo steps, the last first, and leave none; sentences on what could not be done as expected."""
    sentences: list[str] = []
    while steps:
        try:
            sentences += steps.pop().undo()
        except TestbedError as error:
            sentences.append(str(error))
    return sentences


@dataclass
class Command(Step):
    """A command of the host's, and the one that undoes it."""

    host: Host
    command: tuple[str, ...]
    opposite: tuple[str, ...]
    check: Callable[[], None] | None = None
    """Reads back what the command did; None: a kernel that accepts it has shown that it is in effect."""
    needs: str = ""
    """The option of the kernel without which it is refused; empty: any kernel takes it."""

    def apply(self) -> None:
        try:
            self.host.run(*self.command)
        except CommandError as error:
            if not self.needs:
                raise
            raise TestbedError(f"{error}; has its kernel {self.needs}?") from error
        self._undo[:] = [partial(self.host.run, *self.opposite)]

    def read_back(self) -> None:
        if self.check is not None:
            self.check()


class KnobSetting(Step):
    """A knob of the host's, which reads back what it sets.

    Args:
        missing: whether a host may lack it.
        changes: where it is noted first; None: it ends with the host.
    """

    def __init__(self, host: Host, knob: Knob, *, missing: Missing = "error", changes: ChangeLog | None = None) -> None:
        self._host = host
        self._knob = knob
        self._missing = missing
        self._knobs = KnobSet(changes)

    def apply(self) -> None:
        self._knobs.apply(self._host, self._knob, missing=self._missing)

    def undo(self) -> Sequence[str]:
        return self._knobs.restore()


class Sysctls(Step):
    """Numbers of a host's own that are set at once and end with it, each as `KnobSetting` would.

    To ask an emulated guest for one takes it as long as to set them all.

    Args:
        values: by name, as `sysctl` takes it.
    """

    def __init__(self, host: Host, values: Mapping[str, int]) -> None:
        self._host = host
        self._wanted = [sysctl(name, value) for name, value in values.items()]
        self._knobs = KnobSet()
        """Settings that are made one by one, where all at once failed: so the lacking or refused one is found, and the
        reason."""
        self._old: list[str] | None = None

    def apply(self) -> None:
        wanted = [knob.value for knob in self._wanted]
        old, new = self._values(f"{self._read} && {self._writing(wanted)} && {self._read}", 2)
        if old is not None and new == wanted:
            self._old = old
            return
        if old is not None:
            self._values(f"{self._writing(old)} && {self._read}", 1)
        for knob in self._wanted:
            self._knobs.apply(self._host, knob)

    def undo(self) -> Sequence[str]:
        old, self._old = self._old, None
        if old is None:
            return self._knobs.restore()
        wanted = "\n".join(knob.value for knob in self._wanted)
        still = f'[ "$({self._read})" = {shlex.quote(wanted)} ]'
        if self._values(f"{still} && {self._writing(old)} && {self._read}", 1) == [old]:
            return ()
        undone = [put_back(self._host, knob, was, knob.value) for knob, was in zip(self._wanted, old, strict=True)]
        return [one.sentence for one in undone if one is not None and not one.is_back]

    @property
    def _read(self) -> str:
        return f"cat {' '.join(shlex.quote(knob.path) for knob in self._wanted)}"

    def _writing(self, values: Sequence[str]) -> str:
        pairs = zip(values, self._wanted, strict=True)
        return " && ".join(f"echo {shlex.quote(value)} >{shlex.quote(knob.path)}" for value, knob in pairs)

    def _values(self, script: str, times: int) -> list[list[str] | None]:
        """Values that a script prints, as often as it prints them; None where one of them cannot be read or written."""
        lines, count = self._host.script(script).stdout.split(), len(self._wanted)
        found = [lines[at : at + count] for at in range(0, count * times, count)]
        return [one if len(one) == count else None for one in found]


class _Closes(Protocol):
    def close(self) -> None: ...


AnyProgram = TypeVar("AnyProgram", bound=_Closes)


class Started(Step, Generic[AnyProgram]):
    """A program that runs as long as the path is applied.

    Args:
        start: returns it once it is known to run, else raises TestbedError.
    """

    def __init__(self, start: Callable[[], AnyProgram]) -> None:
        self._start = start
        self.program: AnyProgram | None = None

    def apply(self) -> None:
        self.program = self._start()

    def undo(self) -> Sequence[str]:
        program, self.program = self.program, None
        if program is not None:
            program.close()
        return ()


class SteppedPath(DataPath):
    """A data path as its steps.

    Args:
        carried: returns a frame as it leaves the last of some hops in a direction; None where it does not come back.
    """

    def __init__(
        self, name: str, family: Literal[4, 6], carried: Callable[[bytes, Sequence[Hop], int], bytes] | None = None
    ) -> None:
        super().__init__(name, family)
        self._carried = carried
        self._hops: tuple[Hop, ...] = ()
        self._taken: list[Step] = []

    @abstractmethod
    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        """The steps in their order; each is asked for once the one before is applied."""

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return self._carried(frame, self._hops, direction) if self._carried is not None and self._hops else None

    def apply(self, hops: Sequence[Hop]) -> None:
        self._hops = tuple(hops)
        for step in self.steps(self._hops):
            self._take(step)
        for step in self._taken:
            step.read_back()

    def restore(self) -> list[str]:
        return undo_all(self._taken)

    def _take(self, step: Step) -> None:
        self._taken.append(step)
        step.apply()


class PathAbove(DataPath):
    """A data path of a user's own on top of another one, which answers whatever a subclass does not."""

    def __init__(self, beneath: DataPath) -> None:
        super().__init__(beneath.name, beneath.family)
        self._beneath = beneath

    @property
    def mode(self) -> str:
        return self._beneath.mode

    @property
    def by_kernel(self) -> bool:
        return self._beneath.by_kernel

    @property
    def arrivals(self) -> Arrivals | None:
        return self._beneath.arrivals

    @property
    def loop(self) -> ClosedLoop | None:
        return self._beneath.loop

    @property
    def of_user(self) -> bool:
        return True

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return self._beneath.forwarded(frame, direction)

    def load_cost(self) -> Mapping[str, int]:
        return self._beneath.load_cost()

    def explain(self, packet: bytes) -> PacketOutcome | None:
        return self._beneath.explain(packet)

    def redirected(self) -> int | None:
        return self._beneath.redirected()
