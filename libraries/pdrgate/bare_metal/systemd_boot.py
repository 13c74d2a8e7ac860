"""The boot loader systemd-boot: entries made by kernel-install, one selected by a variable that the loader deletes."""

from __future__ import annotations

import re

from pdrgate.bare_metal.layout import InstalledKernel, has
from pdrgate.bare_metal.loader import BootLoader, LoaderError

_ONE_SHOT = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_INSTALL_TIMEOUT = 600.0


class SystemdBoot(BootLoader):
    """The loader of hosts that start by systemd-boot."""

    name = "systemd-boot"

    def problem(self) -> str | None:
        for tool, package in (("bootctl", "systemd-boot"), ("kernel-install", "systemd")):
            if not has(self._host, tool):
                return f"there is no {tool}, install {package}"
        if self._host.run("bootctl", "is-installed", check=False).stdout.strip() != "yes":
            return "it is not this host's boot loader (bootctl is-installed)"
        if self._default() is None:
            return "bootctl status names no default entry; set one with bootctl set-default"
        return None

    def register(self, kernel: InstalledKernel) -> None:
        default = self._default()
        ramdisk = () if kernel.ramdisk is None else (kernel.ramdisk,)
        self._host.run("kernel-install", "add", kernel.release, kernel.image, *ramdisk, timeout=_INSTALL_TIMEOUT)
        if (now := self._default()) != default:
            raise LoaderError(
                f"systemd-boot on {self._host.name} would start {now} by default as soon as {kernel.release} is "
                f"there; fix the default with: bootctl set-default {default}"
            )

    def unregister(self, kernel: InstalledKernel) -> None:
        self._host.run("kernel-install", "remove", kernel.release, timeout=_INSTALL_TIMEOUT)

    def select_once(self, kernel: InstalledKernel) -> None:
        self._host.run("bootctl", "set-oneshot", self._entry(kernel.release))
        if not self._host.exists(_ONE_SHOT):
            raise LoaderError(
                f"bootctl set-oneshot on {self._host.name} reported no error, and there is no LoaderEntryOneShot; are "
                "EFI variables writable there?"
            )

    def deselect(self) -> None:
        self._host.run("bootctl", "set-oneshot", "")

    def _default(self) -> str | None:
        status = self._host.run("bootctl", "status", check=False).stdout
        match = re.search(r"(?ms)^Default Boot Loader Entry:.*?^\s+id: (\S+)", status)
        return None if match is None else match[1]

    def _entry(self, release: str) -> str:
        """The entry of a release, be it a file with words or one image of all (``.efi``).

        kernel-install ends its name with the release and, maybe, counted tries. Where other tools name it the entry
        says its version.
        """
        listing = self._host.run("bootctl", "list", "--no-pager").stdout
        listed = re.finditer(r"(?ms)^\s+id: (\S+)(.*?)(?=^\s+id: |\Z)", listing)
        versions = {one[1]: re.search(rf"(?m)^\s+version: {re.escape(release)}$", one[2]) for one in listed}
        pattern = re.compile(rf"(?:.*-)?{re.escape(release)}(?:\+\d+(?:-\d+)?)?\.(?:conf|efi)", re.IGNORECASE)
        found = [entry for entry in versions if pattern.fullmatch(entry)]
        found = found or [entry for entry, version in versions.items() if version]
        if len(found) != 1:
            raise LoaderError(
                f"bootctl list on {self._host.name} names {len(found)} entries of {release}, and it must be one; it "
                f"names {', '.join(versions) or 'none'}"
            )
        return found[0]
