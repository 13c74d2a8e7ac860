"""The BPF maps of a guest, read in its memory."""

from pdrgate.guests.metering.memory.naming.maps.bpf_maps import MapAreas, MapOwner

__all__ = ["MapAreas", "MapOwner"]
