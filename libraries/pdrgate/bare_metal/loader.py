"""Boot loaders that start a kernel at the next start of a host, and only then."""

from __future__ import annotations

from typing import Literal, Protocol

from pdrgate.bare_metal.layout import InstalledKernel
from pdrgate.values.errors import TestbedError

LoaderName = Literal["auto", "grub", "systemd-boot", "kexec"]


class LoaderError(TestbedError):
    """A boot loader cannot do what is asked, or did something else."""


class BootLoader(Protocol):
    """Boot loader of one host. All methods raise TestbedError when a tool there fails."""

    @property
    def name(self) -> str: ...

    def problem(self) -> str | None:
        """Why this host cannot start a kernel once by it, with what to do; None if it can."""

    def register(self, kernel: InstalledKernel) -> None:
        """Register the kernel with the loader, and check that its default is unchanged. Raises LoaderError if it is
        not."""

    def unregister(self, kernel: InstalledKernel) -> None:
        """Let the loader forget a kernel whose files are gone, or never were."""

    def select_once(self, kernel: InstalledKernel) -> None:
        """Select a kernel for the next start alone, and read that back."""

    def deselect(self) -> None:
        """Take the selection back, when no restart came of it."""

    def restart(self) -> tuple[str, ...]:
        """The command that restarts the host into what was selected."""
