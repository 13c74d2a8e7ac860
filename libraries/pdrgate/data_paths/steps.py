"""What a data path is set up with: steps, each of which is applied, read back and undone."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from pdrgate.bpf.prog_run import PacketOutcome
from pdrgate.data_paths.contract import DataPath, Hop
from pdrgate.hosts.host import CommandError, Host
from pdrgate.knobs import ChangeLog, Knob, KnobSet, Missing, put_back, sysctl
from pdrgate.traffic.delivery import Arrivals
from pdrgate.traffic.generator import ClosedLoop
from pdrgate.values.errors import TestbedError


class Step(Protocol):
    """A step sets one thing up on the SUT, once."""

    def apply(self) -> None:
        """Set it up. Raises TestbedError when the host refuses."""

    def read_back(self) -> None:
        """See that it is as it was applied, once all steps are. Raises TestbedError when it is not."""

    def undo(self) -> Sequence[str]:
        """Put back what `apply` did, also after it failed half-way; sentences on what could not be done as expected.

        Raises TestbedError when the host refuses.
        """


def undo_all(steps: list[Step]) -> list[str]:
    """Undo steps, the last first, and leave none; sentences on what could not be done as expected."""
    sentences: list[str] = []
    while steps:
        try:
            sentences += steps.pop().undo()
        except TestbedError as error:
            sentences.append(str(error))
    return sentences


def _nothing() -> None:
    """Default check of a command. A kernel that accepts the command has shown that it is in effect."""


@dataclass(slots=True)
class Command:
    """A command of the host's, and the one that undoes it."""

    host: Host
    command: tuple[str, ...]
    opposite: tuple[str, ...]
    check: Callable[[], None] = _nothing
    """Reads back what the command did."""
    needs: str = ""
    """The option of the kernel without which it is refused; empty: any kernel takes it."""
    _is_done: bool = field(default=False, init=False)

    def apply(self) -> None:
        try:
            self.host.run(*self.command)
        except CommandError as error:
            if not self.needs:
                raise
            raise TestbedError(f"{error}; has its kernel {self.needs}?") from error
        self._is_done = True

    def read_back(self) -> None:
        self.check()

    def undo(self) -> Sequence[str]:
        if self._is_done:
            self._is_done = False
            self.host.run(*self.opposite)
        return ()


class KnobSetting:
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

    def read_back(self) -> None:
        """`KnobSet` has done so."""

    def undo(self) -> Sequence[str]:
        return self._knobs.restore()


class Sysctls:
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

    def read_back(self) -> None:
        """`apply` has done so."""

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


class Started(Generic[AnyProgram]):
    """A program that runs as long as the path is applied.

    Args:
        start: returns it once it is known to run, else raises TestbedError.
    """

    def __init__(self, start: Callable[[], AnyProgram]) -> None:
        self._start = start
        self.program: AnyProgram | None = None

    def apply(self) -> None:
        self.program = self._start()

    def read_back(self) -> None:
        """Do nothing: the program has reported that it runs."""

    def undo(self) -> Sequence[str]:
        program, self.program = self.program, None
        if program is not None:
            program.close()
        return ()


class SteppedPath(ABC):
    """A data path as its steps.

    The defaults here are those of a path on which the kernel forwards. Satisfies `DataPath`.
    """

    def __init__(self, name: str, family: Literal[4, 6]) -> None:
        self._name = name
        self._family: Literal[4, 6] = family
        self._hops: tuple[Hop, ...] = ()
        self._taken: list[Step] = []

    @abstractmethod
    def steps(self, hops: Sequence[Hop]) -> Iterator[Step]:
        """The steps in their order; each is asked for once the one before is applied."""

    @abstractmethod
    def sentence(self) -> str: ...

    @property
    def name(self) -> str:
        return self._name

    @property
    def family(self) -> Literal[4, 6]:
        return self._family

    @property
    def mode(self) -> str:
        return "kernel"

    @property
    def by_kernel(self) -> bool:
        return True

    @property
    def arrivals(self) -> Arrivals | None:
        return None

    @property
    def loop(self) -> ClosedLoop | None:
        return None

    def describe(self) -> Mapping[str, str]:
        return {}

    def redirected(self) -> int | None:
        return None

    def forwarded(self, frame: bytes, direction: int) -> bytes | None:
        return None

    def load_cost(self) -> Mapping[str, int]:
        return {}

    def explain(self, packet: bytes) -> PacketOutcome | None:
        return None

    @property
    def of_user(self) -> bool:
        return False

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


class PathAbove:
    """A data path of a user's own on top of another one, which answers whatever a subclass does not.

    Satisfies `DataPath`, as the path beneath does.
    """

    def __init__(self, beneath: DataPath) -> None:
        self._beneath = beneath

    @property
    def name(self) -> str:
        return self._beneath.name

    @property
    def family(self) -> Literal[4, 6]:
        return self._beneath.family

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
