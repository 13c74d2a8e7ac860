"""A session on guests of this machine, whose sentences are printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pdrgate.gate.run.options import Options
from pdrgate.gate.run.progress import RunObserver
from pdrgate.gate.run.run_record import RunRecord
from pdrgate.gate.run.session import Session
from pdrgate.history.database.experience import Experience
from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.vm.vm_config import LocalVm

_VM_FILE = Path(__file__).parents[2] / "resources/testbeds/local-vm.yaml"


class _Printing(RunObserver):
    def said(self, sentence: str) -> None:
        print(sentence)


@contextmanager
def vm_session(
    folder: Path, *, resume: bool = False, sharing_vcpus: int = 2, experience: Experience | None = None
) -> Iterator[Session]:
    """A session whose run is kept in the folder, or goes on with the one that is there."""
    testbed = load_testbed(_VM_FILE)
    assert isinstance(testbed, LocalVm)
    testbed = replace(testbed, sharing_vcpus=sharing_vcpus)
    record = RunRecord(folder / "run", "smoke", resume=resume)
    state = folder / ("again" if resume else "state")
    session = Session(testbed, Options(profile="smoke"), record, _Printing(), experience=experience, state=state)
    session.take()
    try:
        yield session
    finally:
        session.close()
        record.close()
