"""TRex, the traffic generator for network cards (trex-tgn.cisco.com), in stateless mode.

`generator` is what others use; `streams` says what is to be sent and `outcome` what came of it, `captured_frames`
how some of it came back, all without I/O; `process` runs `worker`, the one program that loads a TRex client.
"""

from pdrgate.traffic.trex.trex_generator import TRexGenerator

__all__ = ["TRexGenerator"]
