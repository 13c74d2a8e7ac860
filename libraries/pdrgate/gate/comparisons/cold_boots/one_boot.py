"""A boot of a build is measured by one replicate, and its faults are its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pdrgate.builds.bpf_build import BpfRefusedError
from pdrgate.crashes.faults import Crash
from pdrgate.gate.comparisons.pairs.comparison_task import Build
from pdrgate.gate.scenarios.replicate_samples import Replicate
from pdrgate.gate.sut.prepared_sut import PreparedSut
from pdrgate.guests.guest import GuestError
from pdrgate.results.model import BootResult, CrashResult, Side
from pdrgate.values.errors import SutError, TestbedError


class Boot(Replicate):
    """A boot that is up, and measured as a replicate. What goes wrong meanwhile is its own fault."""

    def __init__(self, build: Build, sut: PreparedSut) -> None:
        super().__init__(sut, ())
        self.build = build

    def go_on(self) -> bool:
        with self.blamed():
            return super().go_on()

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        try:
            yield
        except TestbedError as error:
            raise BootError(self.build.side, error, self.sut.boot_id, self.sut.kernel) from error


class BootError(Exception):
    """A boot of a build failed."""

    def __init__(self, side: Side, error: TestbedError, boot_id: str = "", kernel: str = "") -> None:
        self.side = side
        self.error = error
        self.boot_id = boot_id
        self.kernel = kernel

    @property
    def sut_failed(self) -> bool:
        """Whether the SUT failed, and not a tool or this machine, which had no CPU for it."""
        starved = isinstance(self.error, GuestError) and self.error.starved
        return isinstance(self.error, SutError) and not starved

    def result(self, pair: int) -> BootResult:
        """The boot as result.json has it."""
        crash = self.error.crash if isinstance(self.error, GuestError) else None
        return BootResult(
            side=self.side, pair=pair, boot=self.boot_id, kernel=self.kernel, failure=str(self.error),
            sut_failed=self.sut_failed, refused=isinstance(self.error, BpfRefusedError),
            crash=_crash_result(crash) if crash else None,
        )  # fmt: skip


def _crash_result(crash: Crash) -> CrashResult:
    return CrashResult(
        kind=crash.kind, line=crash.line, rip=crash.rip, trace=crash.trace, fingerprint=crash.fingerprint
    )
