"""Lets suites say ``Library    PdrGate``."""

from pdrgate.keywords.library import PdrGate

__all__ = ["PdrGate"]
