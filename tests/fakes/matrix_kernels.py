"""The kernels that tests run on besides the machine's own: one of each kind that differs in what is read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.builds.named_build import named_build

MATRIX: Mapping[str, Sequence[str]] = {
    "6.1": ("linux-image-cloud-amd64", "bookworm/linux-image-cloud-amd64"),
    "6.12": ("linux-image-6.12-cloud-amd64", "trixie/linux-image-cloud-amd64"),
    "6.18": ("trixie-backports/linux-image-6.18.15+deb13-cloud-amd64",),
    "7": ("trixie-backports/linux-image-cloud-amd64",),
}
"""The packages that may hold a kernel of each series, in the order in which they are tried."""


def matrix_build(series: str) -> KernelBuild:
    """A kernel of that series. Raises BuildError where none of its packages can be had, saying why."""
    why: list[str] = []
    for package in MATRIX[series]:
        try:
            build = named_build(package)
        except BuildError as error:
            why.append(str(error))
            continue
        if build.release.startswith(f"{series}."):
            return build
        why.append(f"{package}: is Linux {build.release}")
    raise BuildError(f"there is no Linux {series} here: {'; '.join(why)}")
