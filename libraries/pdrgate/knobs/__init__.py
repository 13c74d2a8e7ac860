"""Knobs: settings of a host that are applied, read back, and put back as they were.

A `Knob` knows one setting; a `KnobSet` keeps what the knobs it applied have replaced. The kernel may take a value and
use another one, so no knob is believed before it was read back. `plan_knobs` makes knobs of a testbed file.
"""

from pdrgate.knobs.batching import batching
from pdrgate.knobs.cpu_shares import each, in_turn
from pdrgate.knobs.egress_filter import MOST_INSTRUCTIONS, egress_filter
from pdrgate.knobs.ethtool import rings
from pdrgate.knobs.file_knob import sysctl
from pdrgate.knobs.interrupts import InterruptAffinity, device_interrupts
from pdrgate.knobs.knob import ChangeLog, Knob, Missing
from pdrgate.knobs.knob_set import KnobSet, put_back
from pdrgate.knobs.offloads import offloads
from pdrgate.knobs.plan import PlannedKnob, knobs_text, plan_contradictions, plan_knobs, sysctls
from pdrgate.knobs.qdisc import RootQdisc
from pdrgate.knobs.queues import rps, rps_off
from pdrgate.knobs.records import knob_from_record, of_whole_machine
from pdrgate.knobs.side_routes import most_side_routes, side_routes
from pdrgate.knobs.threads import KernelThreadNice

__all__ = [
    "MOST_INSTRUCTIONS", "ChangeLog", "InterruptAffinity", "KernelThreadNice", "Knob", "KnobSet", "Missing",
    "PlannedKnob", "RootQdisc", "batching", "device_interrupts", "each", "egress_filter", "in_turn", "knob_from_record",
    "knobs_text", "most_side_routes", "of_whole_machine", "offloads", "plan_contradictions", "plan_knobs", "put_back",
    "rings", "rps", "rps_off", "side_routes", "sysctl", "sysctls",
]  # fmt: skip
