"""Each role has a function in kernels of several releases, and what clears pages is known by what its code does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.trial_measurer import TrialMeasurer
from pdrgate.history.trials import TrialFile
from pdrgate.phase import Phase
from pdrgate.stretch import Belonging
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def test_each_role_has_a_function_and_what_fills_pages_is_known(
    matrix_kernel: KernelBuild, shared_testbed: Callable[..., VmTestbed], tmp_path: Path
) -> None:
    testbed = shared_testbed(matrix_kernel, metered=True)
    path = data_path("udp-delivery")
    path.apply(testbed.hops)
    generator, file = testbed.generator(path.family), TrialFile(tmp_path / "trials.jsonl")
    try:
        measurer = TrialMeasurer(
            generator, Frames(path.family, 64), testbed.observers(), file, Belonging("roles", boot=testbed.boot_id),
            counting=testbed.executed.counting(), seeing_memory=testbed.executed.memory(),
            busy=testbed.executed.busy,
        )  # fmt: skip
        *_, last = [
            measurer.measure(120_000.0, 2048 / 120_000.0 if phase == Phase.MEMORY else 0.1, phase)
            for phase in (Phase.SATURATION, Phase.MEMORY)
        ]
    finally:
        generator.close()
        file.close()
        path.restore()
    assert testbed.executed.unknown == ()
    assert not any("no function is known" in sentence for sentence in testbed.check())
    seen = last.seen.memory
    assert seen is not None
    filled = {name: one.filled_pages for name, one in seen.functions.items() if one.fills_pages}
    # Packets wait in pages that are cleared; whatever the function is called, it has something of that in its name.
    assert sum(filled.values()) >= 16
    assert all("clear" in name or "init_pages" in name for name in filled), filled
