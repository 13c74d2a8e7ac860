"""A guest's virtual CPUs counted, and held at a constant speed: a plugin for QEMU, and its memory's reader."""

from pdrgate.guests.metering.meter import VcpuMeter
from pdrgate.guests.metering.plugin import MEMORY_TRIAL, SHARED_LINES, VCPU_METER, plugin
from pdrgate.guests.metering.speed import CpuSpeed, SpeedChoice, SpeedObserver, SpeedRecord, step_below, unheld_speed

__all__ = [
    "MEMORY_TRIAL",
    "SHARED_LINES",
    "VCPU_METER",
    "CpuSpeed",
    "SpeedChoice",
    "SpeedObserver",
    "SpeedRecord",
    "VcpuMeter",
    "plugin",
    "step_below",
    "unheld_speed",
]
