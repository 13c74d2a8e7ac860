"""Paths and commands that messages name: a checkout's scripts, or their counterparts in an installed package."""

from __future__ import annotations

from pathlib import Path

FROM_CHECKOUT = (Path(__file__).parents[3] / "ci/gate").is_file()
"""Whether pdrgate runs from a checkout, where its scripts and pages are."""

GATE_COMMAND = "./ci/gate" if FROM_CHECKOUT else "pdrgate gate"
"""The command that measures and judges."""


BUILT_ANEW = "run ./ci/bootstrap" if FROM_CHECKOUT else "install pdrgate again"
"""How pdrgate's own compiled programs are built again for this version."""


def own_testbed_file(name: str, *, checkout: bool = FROM_CHECKOUT) -> str:
    """Path of a testbed file that comes with pdrgate, for users who copy it."""
    path = Path(f"resources/testbeds/{name}.yaml")
    return str(path if checkout else Path(__file__).parents[1] / path)


def how_to_install(packages: str, option: str = "", *, checkout: bool = FROM_CHECKOUT) -> str:
    """How to install packages of the distribution, as the end of an error.

    Args:
        option: option of ci/bootstrap that installs them.
    """
    return f"run {f'./ci/bootstrap{option}, or' if checkout else 'as root'}: apt-get install {packages}"
