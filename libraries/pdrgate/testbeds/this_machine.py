"""What a testbed needs of this machine before anything of it is made."""

from __future__ import annotations

import os
import shutil

from pdrgate.checkout import how_to_install
from pdrgate.errors import TestbedError

_TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}


def check_this_machine(testbed: str, why: str) -> None:
    """Raise TestbedError unless this process is root's and the tools are installed; ``why`` says what takes root."""
    if os.geteuid() != 0:
        raise TestbedError(f"testbed {testbed} {why}, which takes root; run with sudo")
    for tool, package in _TOOLS.items():
        if shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            raise TestbedError(f"{tool} is not installed; {how_to_install(package)}")
