"""How a suite writes an option that an error names: ``--wait 1h`` of the command line is ``wait=1 h`` there."""

from __future__ import annotations

import re

from pdrgate.gate.run.declaration import declarations
from pdrgate.gate.run.options import Options

_NAMED = re.compile(r"--([a-z][a-z-]*)(?: (\d+)([^\s,;)]*))?")


def as_arguments(sentence: str) -> str:
    """The sentence with arguments of `Open Testbed` in place of options; what these have not stays as it is."""
    return _NAMED.sub(_argument, sentence.replace("--set ", ""))


def _argument(named: re.Match[str]) -> str:
    name = named[1].replace("-", "_")
    one = declarations(Options).get(name)
    if one is None:
        return named[0]
    if one.flag:
        return f"{name}=True"
    number, unit = named[2], named[3]
    if number is None:
        return f"{name}=…"
    return f"{name}={number} {unit}" if unit.isalpha() else f"{name}={number}{unit}"
