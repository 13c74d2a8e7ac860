"""Trials in which lines are seen that the CPUs of a guest share: a plugin for QEMU, and its memory's reader."""

from pdrgate.guests.metering.sharing.lockstep_observer import LockstepObserver
from pdrgate.guests.metering.sharing.sharing_meter import FEWEST_CPUS, MOST_CPUS, SharingMeter
from pdrgate.guests.metering.sharing.sharing_observer import SharingObserver

__all__ = ["FEWEST_CPUS", "MOST_CPUS", "LockstepObserver", "SharingMeter", "SharingObserver"]
