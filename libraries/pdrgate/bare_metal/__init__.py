"""Kernel builds on a host of metal: installed beside its own kernels, started once, and taken away again.

A build never becomes the host's default: the boot loader is told to start it the next time only (GRUB's next_entry,
systemd-boot's one-shot entry) or it is started by kexec, so that any further restart, a power cycle included, brings
the default kernel back. docs/bare-metal.md says what a host needs, and what of this has never run on hardware.
"""

from pdrgate.bare_metal.booting import BareMetal

__all__ = ["BareMetal"]
