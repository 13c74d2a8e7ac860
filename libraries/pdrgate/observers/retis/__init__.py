"""Retis: each packet that a kernel drops, with its reason and the stack of functions that dropped it, on demand.

The collector (https://retis.readthedocs.io) is a program of its own on the SUT's host, and what it has written is read
by its Python bindings, in a process of their own: both are GPL-2.0.
"""

from pdrgate.observers.retis.collector import LARGEST, Collected, Collection, Retis
from pdrgate.observers.retis.events import MOST, Dropped, bindings_missing, read_events, way

__all__ = [
    "LARGEST",
    "MOST",
    "Collected",
    "Collection",
    "Dropped",
    "Retis",
    "bindings_missing",
    "read_events",
    "way",
]
