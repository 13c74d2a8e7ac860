"""A kernel build on a rack: installed on the SUT's host, started once for the measurement, and gone again after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.errors import TestbedError
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.opening import open_testbed
from pdrgate.testbeds.testbed_file import TestbedConfig

if TYPE_CHECKING:
    from pdrgate.testbeds.rack import RackTestbed


def boots_builds(config: TestbedConfig) -> bool:
    """Whether the SUT of a rack is a whole machine, reached from another one, that can be restarted."""
    rack = config.sut.rack
    return rack is not None and rack.host.ssh is not None and rack.host.namespace is None


def boot_on_rack(
    config: TestbedConfig, build: KernelBuild, journal: Journal, told: Callable[[str], None]
) -> RackTestbed:
    """Start ``build`` on the SUT's host and set the testbed up there; its `close` brings the default kernel back.

    Args:
        told: gets a sentence on each step; a restart may take minutes.

    Raises:
        TestbedError: the SUT is no machine of its own, or what `pdrgate.bare_metal.BareMetal` and `open_testbed`
            raise; the host then runs its default kernel, or did not come back, as the message says.
    """
    # Only here: SSH takes a while to load.
    from pdrgate.bare_metal import BareMetal
    from pdrgate.hosts.ssh import SshConnection, SshHost

    rack = config.sut.rack
    if rack is None or rack.host.ssh is None or rack.host.namespace is not None:
        raise TestbedError(
            f"testbed {config.name} ({config.source}) boots no kernels: its SUT is no machine that is reached by SSH; "
            "use one of kind local-vm, or name the SUT's machine as sut.host without a namespace"
        )
    with contextlib.ExitStack() as stack:
        host = SshHost(SshConnection(rack.host.ssh), owns=True)
        stack.callback(host.close)
        stack.enter_context(BareMetal(host, host, told=told).running(build))
        testbed = cast("RackTestbed", open_testbed(config, journal))
        testbed.after_close(stack.pop_all().close)
    return testbed
