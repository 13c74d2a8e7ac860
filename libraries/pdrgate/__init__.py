"""pdrgate: is this build's packet data path still as fast as it was, and can the measurement be trusted?"""

__version__ = "0.1.0"
