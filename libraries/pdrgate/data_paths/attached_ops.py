"""Steps that register operations of the kernel's (struct_ops), which the SUT uses: a congestion control, or a qdisc."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pdrgate.bpf.struct_ops import registered_ops
from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.attached_links import AttachedLinks
from pdrgate.data_paths.attached_programs import Sent
from pdrgate.data_paths.contract import Hop
from pdrgate.data_paths.steps import KnobSetting, Step, undo_all
from pdrgate.knobs import RootQdisc, sysctl
from pdrgate.values.errors import TestbedError

CONGESTION_CONTROL, QDISC = "tcp_congestion_ops", "Qdisc_ops"


class AttachedOps(Step):
    """Operations of a build are registered on a hop, and used there: by new TCP connections, or at both ports."""

    def __init__(self, hop: Hop, build: BpfBuild, sent: Sent) -> None:
        self._hop = hop
        self._registered = AttachedLinks(hop, build, build.load_as, sent, lambda: ("register",))
        self._build = build
        self._done: list[Step] = []

    def apply(self) -> None:
        ops = registered_ops(self._build)
        uses = _USES.get(ops.structure)
        if uses is None:
            raise TestbedError(
                f"{self._build.path}: registers struct {ops.structure}, which no path of pdrgate's uses; those of "
                f"{' and '.join(_USES)} are measured"
            )
        for step in (self._registered, *uses(self._hop, ops.name)):
            self._done.append(step)
            step.apply()

    def undo(self) -> Sequence[str]:
        return undo_all(self._done)


def _by_connections(hop: Hop, name: str) -> Sequence[Step]:
    return (KnobSetting(hop.host, sysctl("net/ipv4/tcp_congestion_control", name)),)


def _at_ports(hop: Hop, name: str) -> Sequence[Step]:
    return [KnobSetting(hop.host, RootQdisc(port.interface, name)) for port in hop.ports]


_USES: dict[str, Callable[[Hop, str], Sequence[Step]]] = {CONGESTION_CONTROL: _by_connections, QDISC: _at_ports}
"""Steps by which a hop uses operations of a name, by the kernel's struct of them."""
