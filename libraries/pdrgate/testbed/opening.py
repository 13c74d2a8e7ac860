"""From a testbed file to a testbed."""

from __future__ import annotations

import os
import shutil
from typing import cast

from pdrgate.errors import TestbedError
from pdrgate.sut.cpus import plan_cpus
from pdrgate.sut.journal import Journal
from pdrgate.testbed.file import TestbedConfig
from pdrgate.testbed.netns import NetnsTestbed
from pdrgate.testbed.protocol import Testbed
from pdrgate.traffic.embedded import Engine

_TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}


def open_testbed(config: TestbedConfig, journal: Journal) -> Testbed:
    """Set up the testbed that a file describes, noting every change in ``journal`` first.

    Raises:
        TestbedError: not root, one CPU only, missing tools or kernel features; what was made is removed again.
    """
    if os.geteuid() != 0:
        raise TestbedError(f"testbed {config.name} makes network namespaces, which takes root; run with sudo")
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise TestbedError(f"{tool} is not installed; run ./ci/bootstrap, or: apt-get install {package}")
    return NetnsTestbed(
        config.sut.hops,
        plan_cpus(config.generator.cpu, config.sut.cpus),
        journal,
        engine=cast(Engine, config.generator.engine),
        isolate=config.sut.isolate,
        knobs=config.sut.knobs,
    )
