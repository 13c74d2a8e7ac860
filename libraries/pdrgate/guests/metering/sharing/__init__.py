"""Trials in which lines are seen that two CPUs of a guest share: a plugin for QEMU, and its memory's reader."""

from pdrgate.guests.metering.sharing.sharing_meter import CPUS, SharingMeter
from pdrgate.guests.metering.sharing.sharing_observer import SharingObserver

__all__ = ["CPUS", "SharingMeter", "SharingObserver"]
