"""Kernel builds on bare metal: installed beside the host's own kernels, started once, and removed again.

A build never becomes the host's default: the boot loader starts it the next time only (GRUB's next_entry,
systemd-boot's one-shot entry) or kexec starts it, so that any further restart, a power cycle included, brings the
default kernel back. docs/bare-metal.md says what a host needs, and what of this has never run on hardware.
"""

from pdrgate.bare_metal.booting import BareMetal

__all__ = ["BareMetal"]
