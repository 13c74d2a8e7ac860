"""Trials of a data path on a guest that is up, as a gate makes them."""

from __future__ import annotations

from pathlib import Path

from pdrgate.data_paths.catalogue import SetUp, data_path
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.history.trials import TrialFile
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging
from pdrgate.record.trial import Trial
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

OVERLOAD, DURATION = 120_000.0, 0.1
PACKETS = 2048


def guest_trials(
    testbed: VmTestbed, file: Path, path_name: str, *phases: Phase, program: Path | None = None,
    set_up: SetUp | None = None,
) -> list[Trial]:  # fmt: skip
    """Trials of a path's packets at saturation, in these phases; their lines are put into a file."""
    path = data_path(path_name, program, set_up=set_up)
    path.apply(testbed.hops)
    generator, trials = testbed.generator(path.family), TrialFile(file)
    try:
        measurer = Measurer(
            OpenLoopTraffic(generator, Frames(path.family, 64), busy=testbed.executed.busy),
            testbed.observers(),
            trials,
            Belonging("memory", boot=testbed.boot_id, pair=1),
            counting=testbed.executed.counting(),
            during={Phase.MEMORY: testbed.executed.memory()},
        )
        return [
            measurer.measure(Ask(OVERLOAD, PACKETS / OVERLOAD if phase == Phase.MEMORY else DURATION, phase))
            for phase in phases
        ]
    finally:
        generator.close()
        trials.close()
        path.restore()
