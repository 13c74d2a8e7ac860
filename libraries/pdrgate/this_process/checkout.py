"""What a message tells its reader to type: a checkout's scripts, or what an installed package has in their place."""

from __future__ import annotations

from pathlib import Path

FROM_CHECKOUT = (Path(__file__).parents[3] / "ci/gate").is_file()
"""Whether pdrgate runs from a checkout, where its scripts and pages are."""

GATE_COMMAND = "./ci/gate" if FROM_CHECKOUT else "pdrgate gate"
"""The command that measures and judges."""


BUILT_ANEW = "run ./ci/bootstrap" if FROM_CHECKOUT else "install pdrgate again"
"""How its own compiled programs become those of this version."""


def own_testbed_file(name: str, *, checkout: bool = FROM_CHECKOUT) -> str:
    """Where a testbed file that comes with pdrgate lies, for who copies it."""
    path = Path(f"resources/testbeds/{name}.yaml")
    return str(path if checkout else Path(__file__).parents[1] / path)


def how_to_install(packages: str, *, checkout: bool = FROM_CHECKOUT) -> str:
    """How the distribution's packages are installed, at the end of an error."""
    return f"run {'./ci/bootstrap, or' if checkout else 'as root'}: apt-get install {packages}"
