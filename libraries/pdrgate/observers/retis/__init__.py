"""Retis, a drop trace: each packet that a kernel drops, with its reason and the functions that dropped it.

The collector (https://retis.readthedocs.io) is a program of its own on the SUT's host, and what it has written is read
by its Python bindings, in a process of their own: both are GPL-2.0.
"""

from pdrgate.observers.retis.tracer import Retis

__all__ = ["Retis"]
