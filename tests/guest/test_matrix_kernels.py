"""The kernels of the matrix, which other tests run on, are in reach and boot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pdrgate.builds.kernel_build import KernelBuild
from pdrgate.guests.guest import Guest

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("booting")]


def test_a_kernel_of_the_matrix_boots_as_the_release_of_its_image(
    matrix_kernel: KernelBuild, boot: Callable[..., Guest]
) -> None:
    guest = boot(matrix_kernel)
    assert guest.run("uname", "-r").stdout.strip() == matrix_kernel.release
    assert guest.run("uname", "-v").stdout.strip() == matrix_kernel.version
    assert matrix_kernel.config is not None
