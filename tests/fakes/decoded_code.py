"""Code of a kernel as Capstone decodes it, beside what our plugins take it for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import capstone

from pdrgate.builds.architecture import X86_64
from pdrgate.guests.metering.plugin import guest_code

_SOURCE = Path(__file__).with_suffix(".c")
_CAPSTONE = Path(capstone.__file__).parent
_LIBRARY = _CAPSTONE / "lib" / "libcapstone.so"
_DIFFERS = "differs: "


@dataclass(frozen=True, slots=True)
class DecodedCode:
    """What Capstone and our plugins say of a piece of code."""

    differing: tuple[str, ...]
    """Instructions that they take for something else, in words."""
    counts: dict[str, int]
    """Instructions that Capstone decoded, those of each kind, and bytes that it could not decode."""


def decoded_code(code: bytes, address: int, functions: Sequence[int], folder: Path) -> DecodedCode:
    """What code of x86 is.

    Args:
        address: where it begins.
        functions: the addresses in it at which functions begin: padding and data between them shift nothing.
        folder: one of the test's own.
    """
    program, lengths = folder / "decoded_code", folder / "functions"
    if not program.exists():
        options = ("-O2", "-Wall", "-Werror", f"-I{_CAPSTONE / 'include'}", *guest_code(X86_64))
        subprocess.run(("gcc", *options, _SOURCE, _LIBRARY, "-o", program), check=True)
    bounds = sorted({address, address + len(code), *functions})
    lengths.write_text("".join(f"{end - begin}\n" for begin, end in pairwise(bounds)))
    done = subprocess.run(
        (program, f"{address:x}"), input=code, capture_output=True, check=True,
        env=os.environ | {"FUNCTIONS": str(lengths), "LD_PRELOAD": str(_LIBRARY)},
    )  # fmt: skip
    said = done.stdout.decode().splitlines()
    counts = (line.rpartition(": ") for line in said if not line.startswith(_DIFFERS))
    return DecodedCode(
        tuple(line.removeprefix(_DIFFERS) for line in said if line.startswith(_DIFFERS)),
        {kind: int(number) for kind, _, number in counts},
    )
