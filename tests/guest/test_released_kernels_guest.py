"""Each role has a function in kernels of several releases, and who clears pages and calls whom is known by code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.data_paths.catalogue import data_path
from pdrgate.gate.sut.measurer import Measurer
from pdrgate.gate.sut.open_loop_traffic import OpenLoopTraffic
from pdrgate.history.trials import TrialFile
from pdrgate.measurands import Ask
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import LINES_OF_PAGE, Belonging
from pdrgate.testbeds.vm.vm_testbed import VmTestbed
from pdrgate.traffic.frames import Frames

_CLEARS = re.compile(r"clear_(?:high)?page|init_pages")
"""Names of what clears pages in these kernels."""

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def test_each_role_has_a_function_and_code_tells_who_clears_pages_and_calls_whom(
    matrix_kernel: KernelBuild, shared_testbed: Callable[..., VmTestbed], tmp_path: Path
) -> None:
    testbed = shared_testbed(matrix_kernel, metered=True)
    path = data_path("ipv6-routing")
    path.apply(testbed.hops)
    generator, file = testbed.generator(path.family), TrialFile(tmp_path / "trials.jsonl")
    try:
        measurer = Measurer(
            OpenLoopTraffic(generator, Frames(path.family, 64), busy=testbed.executed.busy),
            testbed.observers(),
            file,
            Belonging("roles", boot=testbed.boot_id),
            counting=testbed.executed.counting(),
            during={Phase.MEMORY: testbed.executed.memory()},
        )
        first, last = [
            measurer.measure(Ask(120_000.0, 2048 / 120_000.0 if phase == Phase.MEMORY else 0.1, phase))
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
    fill = {name for name, one in seen.functions.items() if one.fills_pages}
    # A kernel whose driver keeps its pages clears none here.
    cleared = {name for name, one in seen.functions.items() if _CLEARS.search(name) and one.lines >= LINES_OF_PAGE}
    assert fill == cleared
    callers = first.seen.callers
    assert "ip6_rcv_core" in callers
    assert set(callers["ip6_rcv_core"]) <= {"ipv6_rcv", "ip6_list_rcv", "ipv6_list_rcv"}
    assert all(name in first.seen.functions for own in callers.values() for name in own)
