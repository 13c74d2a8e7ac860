"""Knobs: settings of a host that are applied, read back, and put back as they were.

A `Knob` knows one setting; a `KnobSet` keeps what the knobs it applied have replaced. The kernel may take a value and
use another one, so no knob is believed before it was read back. `plan_knobs` makes knobs of a testbed file.
"""

from pdrgate.knobs.batching import batching
from pdrgate.knobs.cpu import Governor, IdleLatency, Smt, Turbo, idle_latency
from pdrgate.knobs.cpu_shares import each, in_turn
from pdrgate.knobs.egress_filter import MOST_INSTRUCTIONS, EgressFilter, egress_filter
from pdrgate.knobs.ethtool import EthtoolSettings, channels, coalescing, pause_frames, rings
from pdrgate.knobs.file_knob import FileKnob, device_attribute, mtu, sysctl, threaded_napi
from pdrgate.knobs.firewall import NO_RULES, FirewallRules
from pdrgate.knobs.interrupts import InterruptAffinity, device_interrupts
from pdrgate.knobs.irqbalance import Irqbalance
from pdrgate.knobs.knob import ANY, ChangeLog, Knob, Missing
from pdrgate.knobs.knob_set import KnobSet, Undone, put_back
from pdrgate.knobs.neighbours import StaticNeighbours, neighbours, static_neighbours
from pdrgate.knobs.offloads import EthtoolFeatures, offloads
from pdrgate.knobs.plan import PlannedKnob, knobs_text, plan_contradictions, plan_knobs, sysctls
from pdrgate.knobs.qdisc import RootQdisc
from pdrgate.knobs.queues import QueueFiles, rfs_off, rps, rps_cpus, rps_knobs, rps_off, xps
from pdrgate.knobs.records import knob_from_record, of_whole_machine
from pdrgate.knobs.rss import FlowHash, IndirectionTable, flow_hash
from pdrgate.knobs.side_routes import SideRoutes, most_side_routes, side_routes
from pdrgate.knobs.threads import KernelThreadNice

__all__ = [
    "ANY", "MOST_INSTRUCTIONS", "NO_RULES", "ChangeLog", "EgressFilter", "EthtoolFeatures", "EthtoolSettings",
    "FileKnob", "FirewallRules", "FlowHash", "Governor", "IdleLatency", "IndirectionTable", "InterruptAffinity",
    "Irqbalance", "KernelThreadNice", "Knob", "KnobSet", "Missing", "PlannedKnob", "QueueFiles", "RootQdisc",
    "SideRoutes", "Smt", "StaticNeighbours", "Turbo", "Undone", "batching", "channels", "coalescing",
    "device_attribute", "device_interrupts", "each", "egress_filter", "flow_hash", "idle_latency", "in_turn",
    "knob_from_record", "knobs_text", "most_side_routes", "mtu", "neighbours", "of_whole_machine", "offloads",
    "pause_frames", "plan_contradictions", "plan_knobs", "put_back", "rfs_off", "rings", "rps", "rps_cpus", "rps_knobs",
    "rps_off", "side_routes", "static_neighbours", "sysctl", "sysctls", "threaded_napi", "xps",
]  # fmt: skip
