"""Paths of a host's kernels, and of a build's files among them."""

from __future__ import annotations

from dataclasses import dataclass

from pdrgate.hosts.host import Host


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of a host's kernels. ``root`` is put before each path, for a system that is not the running one's."""

    root: str = ""

    def at(self, path: str) -> str:
        """The path on the host."""
        return self.root + path

    @property
    def boot_folder(self) -> str:
        return self.at("/boot")

    def image(self, release: str) -> str:
        return self.at(f"/boot/vmlinuz-{release}")

    def config(self, release: str) -> str:
        return self.at(f"/boot/config-{release}")

    def system_map(self, release: str) -> str:
        return self.at(f"/boot/System.map-{release}")

    def ramdisks(self, release: str) -> tuple[str, str]:
        """Names of the initial RAM disk by Debian's and by Fedora's tools."""
        return self.at(f"/boot/initrd.img-{release}"), self.at(f"/boot/initramfs-{release}.img")

    def modules(self, release: str) -> str:
        return self.at(f"/lib/modules/{release}")

    def marker(self, release: str) -> str:
        """The file that says that a kernel was installed by pdrgate, and so may be removed by it."""
        return f"{self.modules(release)}/pdrgate.installed"


@dataclass(frozen=True, slots=True)
class InstalledKernel:
    """A build that lies on the host, with all that it takes to start it."""

    name: str
    """Name of the build, as pdrgate calls it."""
    release: str
    image: str
    """Path on the host."""
    ramdisk: str | None = None
    """Path on the host; None for a kernel that starts without one."""


def has(host: Host, tool: str) -> bool:
    """Whether the host has a program of that name."""
    return host.run("sh", "-c", 'command -v -- "$1"', "sh", tool, check=False).exit_code == 0


def running_release(host: Host) -> str:
    """The release of the kernel that runs there, as ``uname -r``."""
    return host.run("uname", "-r").stdout.strip()
