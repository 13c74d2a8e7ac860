"""Keywords that say what is measured: the Given steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

from robot.api.deco import keyword

from pdrgate.data_paths.catalogue import DATA_PATHS, UNDER_STEPS, Call, SetUp, StreamDirection
from pdrgate.data_paths.set_up import named_set_up, set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.keywords.state import State
from pdrgate.testbeds import Pinning
from pdrgate.units import Duration, Rate, Ratio


class ScenarioKeywords:
    """Describe the scenario; the SUT is set up at the first trial."""

    def __init__(self, state: State) -> None:
        self._state = state

    @keyword
    def set_data_path(self, name: str) -> None:
        """Chooses what the SUT does with packets."""
        self._state.describe(data_path=name)

    @keyword(name="Set Up SUT")
    def set_up_sut(
        self, *steps: str, data_path: str | None = None, name: str = "", files: list[Path] | None = None
    ) -> None:
        """Runs commands on the SUT when it is set up for the scenario, on each boot and on each hop, in their order.

        A step is a line for the shell. It runs as root in a folder with the ``files`` of `Put On SUT`, and finds the
        ports in its environment: ``$IN`` and ``$OUT`` are the interfaces that forward traffic comes in at and leaves
        by, ``$IN_MAC`` and ``$IN_PEER_MAC`` the addresses of the port and of who faces it, ``$IN_IP4``,
        ``$IN_PEER_IP4``, ``$IN_IP6`` and ``$IN_PEER_IP6`` those of the link where the kernel routes; the same of
        ``OUT``. ``$HOP`` counts routers from 1. A file of this machine that a step names by its absolute path is put on
        the SUT too.

        A step that fails ends the scenario, with what it printed. ``undo: COMMAND`` behind a step undoes it. A host
        that outlives the scenario is looked at before and after: links, addresses, routes, rules, neighbours, tables
        of nftables, queueing disciplines and IPsec that are new are taken away, and what is left is told. What else a
        step changes, such as a sysctl, needs its undo.

        The steps stand on a ``data_path``, see `Set Data Path`: IPv4 and IPv6 routing unless another was chosen, or
        ``bare-ipv4`` and ``bare-ipv6`` for nothing but the steps. Programs that steps begin with, such as ``nft``,
        get into a guest by themselves, and so do the modules of its kernel that words of the steps name.

        What the steps are is in the scenario's ``name``: by a digest, unless they are called something.

        | Set Up SUT    ip link add v0 type vxlan id 7 dstport 4789 remote $OUT_PEER_IP4 dev $OUT    ip link set v0 up
        | Set Up SUT    nft -f ${CURDIR}/nat.nft
        """
        earlier = self._state.test.scenario
        usual = earlier.data_path == Scenario().data_path
        put = () if earlier.set_up is None else earlier.set_up.files
        made = set_up_of(steps, files or (), put)
        if earlier.set_up is not None:
            made = SetUp((*earlier.set_up.steps, *made.steps), made.files, earlier.set_up.name)
        if name:
            made = named_set_up(name, made)
        self._state.describe(set_up=made, data_path=data_path or (UNDER_STEPS if usual else earlier.data_path))

    @keyword(name="Put On SUT")
    def put_on_sut(self, *files: Path) -> None:
        """Puts files of this machine into the folder on the SUT that the steps of `Set Up SUT` run in.

        They keep their names and whether they are executable. They are part of what makes results comparable.
        """
        self.set_up_sut(files=list(files))

    @keyword
    def read_scenario(self, file: Path) -> None:
        """Takes all that a scenario is from a YAML file, as ``--scenario-file`` does; see docs/reference.md."""
        asked = scenario_of(file)
        self._state.describe(**{field.name: getattr(asked, field.name) for field in dataclasses.fields(asked)})

    @keyword
    def pin_interrupts(self, pinning: Pinning) -> None:
        """Chooses the CPUs of the SUT's packet work: ``unpinned``, ``1 cpu`` or ``2 cpus``."""
        self._state.describe(pinning=pinning)

    @keyword
    def set_receive_buffers(self, packets: int) -> None:
        """Sets how many packets wait at the SUT's receive side before they are dropped.

        On namespaces that is the backlog of a CPU, on a network card its receive ring.
        """
        self._state.describe(buffer=packets)

    @keyword
    def set_receivers(self, count: int = 1, call: Call = "recvmsg", busy_poll: Duration = Duration(0)) -> None:  # noqa: B008
        """Sets who receives where the data path delivers UDP: 1 to 8 programs, which share a port by SO_REUSEPORT.

        ``call`` is the system call that they make: ``recvmsg`` for one packet, ``recvmmsg`` for as many as wait. With
        ``busy_poll``, such as ``50 us``, it looks for packets itself before it sleeps.
        """
        self._state.describe(receivers=count, call=call, busy_poll=round(busy_poll * 1e6))

    @keyword(name="Share CPU")
    def share_cpu(self, *percent: int, background: int = 0) -> None:
        """Gives each receiver a share of the CPU in percent, by the weights of cgroups (v2).

        ``background`` is how many further processes of the same priority want the CPU while a trial lasts.
        """
        self._state.describe(cpu_shares=percent, background=background)

    @keyword(name="Set TCP Streams")
    def set_tcp_streams(
        self,
        count: int | None = None,
        window: int | None = None,
        congestion: str | None = None,
        direction: StreamDirection | None = None,
        delay: Duration | None = None,
        loss: Ratio | None = None,
    ) -> None:
        """Sets what moves where the data path is TCP; what is not given stays as it is.

        ``count`` streams (1) between the SUT, which ``receives`` (or ``sends``, by ``direction``), and the generator's
        machine. ``window`` is what a receiver advertises to each at most, in KiB (1024), ``congestion`` the senders'
        congestion control (cubic). The path may have a ``delay``, such as ``10 ms``, and a ``loss``, such as ``0.1%``,
        by netem where a kernel has that.
        """
        given: dict[str, Any] = {
            "count": count, "window": window, "congestion": congestion, "direction": direction,
            "delay": None if delay is None else float(delay), "loss": None if loss is None else float(loss),
        }  # fmt: skip
        changed = {name: value for name, value in given.items() if value is not None}
        self._state.describe(tcp=dataclasses.replace(self._state.test.scenario.tcp, **changed))

    @keyword
    def set_socket_buffers(self, size: float) -> None:
        """Sets the bytes that are asked for each receiver's socket buffer, in MiB.

        The kernel doubles them, and charges each packet what it takes in memory, which is more than its bytes.
        """
        self._state.describe(socket_buffer=round(size * 1024))

    @keyword
    def set_batching(self, gro: Literal["on", "off"] | None = None, wait: Duration | None = None) -> None:
        """Sets how packets are batched on receipt; what is not given stays as it is.

        ``gro`` is whether the SUT's ports put packets of a flow together (generic receive offload). With ``wait``, such
        as ``1 ms``, interrupts stay off for so long after a poll (``napi_defer_hard_irqs``, ``gro_flush_timeout``), so
        that each poll finds more packets and the first of them has waited longer.
        """
        if gro is not None:
            self._state.describe(gro=gro)
        if wait is not None:
            self._state.describe(wait=round(wait * 1e6))

    @keyword
    def offer_overload(self, factor: float) -> None:
        """Offers loads far beyond saturation besides, doubling up to ``factor`` times what the SUT can take.

        So two more things are measured and judged by the PDR's tolerance: the overload throughput, forwarded at the
        highest of them, and the livelock threshold, the load at which half of the most is forwarded.
        """
        self._state.describe(overload=factor)

    @keyword
    def take_latency(self) -> None:
        """Measures latency at 50, 90 and 99 % of the PDR besides, with probes among the packets of trials of their own.

        Two more things are judged, by a tolerance of their own (``latency_tolerance`` of `Open Testbed`): the median at
        50 % and the 99th percentile at 90 %. Where builds or runs are compared, both are offered the same loads: shares
        of the baseline's PDR.
        """
        self._state.describe(latency=True)

    @keyword
    def set_frame_size(self, size: int | Literal["imix"]) -> None:
        """Sets the frame size in bytes with FCS (RFC 2544), 64 to 1518. 64 means 66 with IPv6.

        ``imix`` is the simple Internet mix: of twelve frames seven have 64 bytes, four 570 and one 1518 (TRex only).
        """
        self._state.describe(frame_size=size)

    @keyword
    def set_flows(self, flows: int) -> None:
        """Sets how many flows the traffic has, told apart by UDP source port."""
        self._state.describe(flows=flows)

    @keyword
    def send_in_both_directions(self) -> None:
        """Sends packets through the SUT both ways, half of the load each."""
        self._state.describe(directions=2)

    @keyword
    def send_latency_probes(self, rate: Rate = Rate(1000)) -> None:  # noqa: B008 - a frozen number
        """Makes ``rate`` of the packets latency probes, for `Get Latency`."""
        self._state.describe(probe_rate=float(rate))


# Robot shows it with the keyword; each path says its own line.
ScenarioKeywords.set_data_path.__doc__ = "Chooses what the SUT does with packets.\n\n" + "\n".join(
    f"| ``{path.name}`` | {path.help} |" for path in DATA_PATHS.values()
)
