"""Boot loaders that start a kernel at the next start of a host, and only then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pdrgate.bare_metal.layout import InstalledKernel, Layout, has
from pdrgate.hosts.host import Host
from pdrgate.values.errors import TestbedError

LoaderName = Literal["auto", "grub", "systemd-boot", "kexec"]


class LoaderError(TestbedError):
    """A boot loader cannot do what is asked, or did something else."""


class BootLoader(ABC):
    """Boot loader of one host. All methods raise TestbedError when a tool there fails."""

    name: ClassVar[LoaderName]

    def __init__(self, host: Host, layout: Layout) -> None:
        self._host = host
        self._layout = layout

    @abstractmethod
    def problem(self) -> str | None:
        """Why this host cannot start a kernel once by it, with what to do; None if it can."""

    def register(self, kernel: InstalledKernel) -> None:  # noqa: B027 - kexec has nothing to do
        """Register the kernel with the loader, and check that its default is unchanged. Raises LoaderError if it is
        not."""

    def unregister(self, kernel: InstalledKernel) -> None:  # noqa: B027
        """Let the loader forget a kernel whose files are gone, or never were."""

    @abstractmethod
    def select_once(self, kernel: InstalledKernel) -> None:
        """Select a kernel for the next start alone, and read that back."""

    @abstractmethod
    def deselect(self) -> None:
        """Take the selection back, when no restart came of it."""

    def restart(self) -> tuple[str, ...]:
        """The command that restarts the host into what was selected."""
        return plain_restart(self._host)


def plain_restart(host: Host) -> tuple[str, ...]:
    """The command that restarts a host into what its boot loader starts."""
    return ("systemctl", "reboot") if has(host, "systemctl") else ("reboot",)
