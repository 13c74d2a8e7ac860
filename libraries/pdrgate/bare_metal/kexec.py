"""Kexec: the running kernel starts another one itself. Whatever restarts the host after that ends up at its loader."""

from __future__ import annotations

from pdrgate.bare_metal.layout import InstalledKernel, has
from pdrgate.bare_metal.loader import BootLoader, LoaderError
from pdrgate.hosts.kernel_parameters import KernelParameters

PANIC_SECONDS = 30
"""Seconds after a panic until the kernel restarts the host by itself. A person has time to see its console."""

_DISABLED = "/proc/sys/kernel/kexec_load_disabled"
_LOADED = "/sys/kernel/kexec_loaded"
_OF_THE_LOADER = ("BOOT_IMAGE", "initrd")
_LOAD_TIMEOUT = 60.0


class Kexec(BootLoader):
    """The loader that every host with kexec-tools has. What it starts need not be known to it before."""

    name = "kexec"

    def problem(self) -> str | None:
        if not has(self._host, "kexec"):
            return "there is no kexec, install kexec-tools"
        if self._host.exists(_DISABLED) and self._host.read(_DISABLED).strip() != "0":
            return "kernel.kexec_load_disabled is set until the next restart"
        return None

    def select_once(self, kernel: InstalledKernel) -> None:
        present = KernelParameters.parse(self._host.read("/proc/cmdline"))
        cmdline = str(present.without(*_OF_THE_LOADER, "panic").beside(f"panic={PANIC_SECONDS}"))
        ramdisk = () if kernel.ramdisk is None else (f"--initrd={kernel.ramdisk}",)
        # -a: by file, as locked-down kernels want it, else the old way.
        self._host.run("kexec", "-a", "-l", kernel.image, *ramdisk, f"--command-line={cmdline}", timeout=_LOAD_TIMEOUT)
        if self._host.read(_LOADED).strip() != "1":
            raise LoaderError(
                f"kexec loaded {kernel.release} on {self._host.name} without an error, and it is not there"
            )

    def deselect(self) -> None:
        self._host.run("kexec", "-u")

    def restart(self) -> tuple[str, ...]:
        # systemd stops what runs and unmounts before it does the same.
        return ("systemctl", "kexec") if has(self._host, "systemctl") else ("kexec", "-e")
