"""Steps that let sockets of the SUT call an eBPF program: those that share a port, and those in a table of sockets."""

from __future__ import annotations

from collections.abc import Sequence

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_links import AttachedLinks
from pdrgate.data_paths.attached_programs import Sent
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.cpu_groups import cgroup_root
from pdrgate.traffic.frames import MARKED_PORT


def attached_to_reuseport(hop: Hop, build: BpfBuild, sent: Sent) -> AttachedLinks:
    """The step by which a program chooses among the receivers of a hop, which are in its table of sockets."""
    return AttachedLinks(hop, build, build.load_as, sent, lambda: (f"reuseport {MARKED_PORT}",))


def attached_to_sockets(hop: Hop, build: BpfBuild, sent: Sent) -> AttachedLinks:
    """The step that attaches a program to its table of sockets, which TCP connections of a hop come into.

    The object's own program of sock_ops puts them there, or pdrgate's where it has none.
    """

    def links() -> Sequence[str]:
        return (f"sockets {cgroup_root(hop.host)}",)

    return AttachedLinks(hop, build, build.load_as, sent, links)
