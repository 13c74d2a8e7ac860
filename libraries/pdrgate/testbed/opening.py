"""From a testbed file to a testbed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import cast

from pdrgate.cache import cache_folder
from pdrgate.errors import TestbedError
from pdrgate.sut.builds import KernelBuild, kernel_build
from pdrgate.sut.cpus import plan_cpus
from pdrgate.sut.guest import GuestConfig
from pdrgate.sut.journal import Journal
from pdrgate.testbed.file import TestbedConfig
from pdrgate.testbed.netns import NetnsTestbed
from pdrgate.testbed.protocol import Testbed
from pdrgate.testbed.vm import VmTestbed
from pdrgate.traffic.embedded import Engine

_TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}


def open_testbed(config: TestbedConfig, journal: Journal) -> Testbed:
    """Set up the testbed that a file describes, noting every change in ``journal`` first.

    Raises:
        TestbedError: not root, one CPU only, missing tools or kernel features; what was made is removed again.
    """
    if config.sut.vm is not None:
        if config.sut.vm.kernel is None:
            raise TestbedError(
                f"testbed {config.name} boots kernel builds, and none was named; write one as sut.kernel in "
                f"{config.source}, such as linux-image-amd64, or compare two builds"
            )
        return open_guest(config, kernel_build(config.sut.vm.kernel), journal, cache_folder() / "consoles")
    _check(config)
    return NetnsTestbed(
        config.sut.hops,
        plan_cpus(config.generator.cpu, config.sut.cpus),
        journal,
        engine=cast(Engine, config.generator.engine),
        isolate=config.sut.isolate,
        knobs=config.sut.knobs,
    )


def open_guest(config: TestbedConfig, build: KernelBuild, journal: Journal, folder: Path) -> VmTestbed:
    """Boot ``build`` in the guest that a file of kind local-vm describes; its console log goes into ``folder``.

    Raises:
        TestbedError: as `open_testbed`, or the testbed is of another kind.
        BuildError: the build can never come up in a guest.
        GuestError: it did not come up this time.
    """
    vm = config.sut.vm
    if vm is None:
        raise TestbedError(
            f"testbed {config.name} ({config.source}) has the kernel of this machine and boots no other; use one of "
            "kind local-vm, such as resources/testbeds/local-vm.yaml"
        )
    _check(config)
    cpus = plan_cpus(config.generator.cpu, config.sut.cpus)
    return VmTestbed(
        build,
        cpus,
        journal,
        folder,
        machine=GuestConfig(
            cpus=cpus.sut,
            vcpus=vm.vcpus,
            memory=vm.memory,
            accelerator=vm.accelerator,
            isolate=config.sut.isolate,
            cmdline=vm.cmdline,
        ),
        engine=cast(Engine, config.generator.engine),
        ring=vm.ring,
        knobs=config.sut.knobs,
    )


def _check(config: TestbedConfig) -> None:
    if os.geteuid() != 0:
        raise TestbedError(f"testbed {config.name} makes network namespaces, which takes root; run with sudo")
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise TestbedError(f"{tool} is not installed; run ./ci/bootstrap, or: apt-get install {package}")
