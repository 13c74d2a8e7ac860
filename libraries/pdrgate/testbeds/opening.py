"""From a testbed file to a testbed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import cast

from pdrgate.builds.kernel_build import KernelBuild, named_build
from pdrgate.cache import cache_folder
from pdrgate.errors import TestbedError
from pdrgate.guests.guest import GuestConfig
from pdrgate.hosts.cpus import plan_cpus
from pdrgate.hosts.host import Host, local_host, netns_host
from pdrgate.safety.journal import Journal
from pdrgate.testbeds.netns import NetnsTestbed
from pdrgate.testbeds.protocol import Testbed
from pdrgate.testbeds.testbed_file import RackConfig, TestbedConfig
from pdrgate.testbeds.vm import VmTestbed
from pdrgate.traffic.embedded import Engine

_TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}


def open_testbed(config: TestbedConfig, journal: Journal) -> Testbed:
    """Set up the testbed that a file describes, noting every change in ``journal`` first.

    Raises:
        TestbedError: not root, one CPU only, missing tools or kernel features; what was made is removed again.
    """
    if config.sut.rack is not None:
        return _open_rack(config, config.sut.rack, journal)
    if config.sut.vm is not None:
        if config.sut.vm.kernel is None:
            raise TestbedError(
                f"testbed {config.name} boots kernel builds, and none was named; write one as sut.kernel in "
                f"{config.source}, such as linux-image-amd64, or compare two builds"
            )
        return open_guest(config, named_build(config.sut.vm.kernel), journal, cache_folder() / "consoles")
    _check(config)
    return NetnsTestbed(
        config.sut.hops,
        plan_cpus(config.generator.cpu, config.sut.cpus),
        journal,
        engine=cast(Engine, config.generator.engine),
        isolate=config.sut.isolate,
        section=config.sut.knobs,
    )


def open_guest(config: TestbedConfig, build: KernelBuild, journal: Journal, folder: Path) -> VmTestbed:
    """Boot ``build`` in the guest that a file of kind local-vm describes, and wait for it; see `start_guest`."""
    return start_guest(config, build, journal, folder).ready()


def start_guest(config: TestbedConfig, build: KernelBuild, journal: Journal, folder: Path) -> VmTestbed:
    """Begin to boot ``build`` in the guest of a file of kind local-vm; its console log goes into ``folder``.

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
            # The generator has nothing to do while a guest boots.
            boot_cpus=(cpus.generator, *cpus.sut),
        ),
        engine=cast(Engine, config.generator.engine),
        ring=vm.ring,
        section=config.sut.knobs,
    )


def _open_rack(config: TestbedConfig, rack: RackConfig, journal: Journal) -> Testbed:
    # Only here: SSH takes a while to load.
    from pdrgate.hosts.ssh import SshConnection, SshHost
    from pdrgate.testbeds.rack import RackTestbed
    from pdrgate.testbeds.traffic_source import EmbeddedSource, TrafficSource, TRexSource

    host = rack.host
    source: TrafficSource
    if config.generator.trex is not None:
        source = TRexSource(config.generator.trex)
    else:
        _check(config)
        first, second = config.generator.ports
        cpu = config.generator.cpu
        if cpu is None:
            # Where the SUT has CPUs of this machine, it gets others.
            own = host.kind != "ssh"
            cpu = plan_cpus(None, config.sut.cpus if own else None).generator
        source = EmbeddedSource(
            (first, second),
            cpu,
            journal,
            namespace=config.generator.namespace,
            engine=cast(Engine, config.generator.engine),
        )
    machine: Host
    if host.ssh is not None:
        machine = SshHost(SshConnection(host.ssh), owns=True)
        router: Host = SshHost(machine.connection, host.namespace) if host.namespace else machine
    else:
        machine = local_host()
        router = netns_host(host.namespace) if host.namespace else machine
    return RackTestbed(
        machine, router, rack.ports, source, journal,
        cpus=config.sut.cpus, isolate=config.sut.isolate, knobs=config.sut.knobs, buffer=rack.buffer,
        steering=rack.steering,
    )  # fmt: skip


def _check(config: TestbedConfig) -> None:
    if os.geteuid() != 0:
        why = "sends from interfaces of this machine" if config.sut.rack else "makes network namespaces"
        raise TestbedError(f"testbed {config.name} {why}, which takes root; run with sudo")
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise TestbedError(f"{tool} is not installed; run ./ci/bootstrap, or: apt-get install {package}")
