"""Keywords that say what is measured: the Given steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

from robot.api import SkipExecution
from robot.api.deco import keyword

from pdrgate.bpf.filling import check_setup
from pdrgate.builds.program_setup import Attach, Filling, ProgramSetup, filling_of_file, program_setup, variables
from pdrgate.data_paths.catalogue import DATA_PATHS, Buffers, Call, StreamDirection
from pdrgate.data_paths.replacing import TIMES, Replacement
from pdrgate.data_paths.set_up import named_set_up, set_up_of
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import own_program, scenario_of
from pdrgate.keywords.state import KeywordComponent
from pdrgate.measurands.slower_paths import slower_paths
from pdrgate.record.fate import Fate
from pdrgate.testbeds import Pinning
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.values.errors import UsageError
from pdrgate.values.units import Duration, Rate, Ratio


class ScenarioKeywords(KeywordComponent):
    """Describe the scenario; the SUT is set up at the first trial."""

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
        of nftables, queueing disciplines and IPsec that are new are taken away. What cannot be taken away is reported.
        What else a step changes, such as a sysctl, needs its undo.

        The steps stand on a ``data_path``, see `Set Data Path`: IPv4 and IPv6 routing unless another was chosen, or
        ``bare-ipv4`` and ``bare-ipv6`` for nothing but the steps. Programs that steps begin with, such as ``nft``,
        get into a guest by themselves, and so do the modules of its kernel that words of the steps name.

        What the steps are is in the scenario's ``name``: by a digest, unless they are called something.

        | Set Up SUT    ip link add v0 type vxlan id 7 dstport 4789 remote $OUT_PEER_IP4 dev $OUT    ip link set v0 up
        | Set Up SUT    nft -f ${CURDIR}/nat.nft
        """
        earlier = self._state.test.scenario
        put = () if earlier.set_up is None else earlier.set_up.files
        made = set_up_of(steps, files or (), put)
        if earlier.set_up is not None:
            made = dataclasses.replace(earlier.set_up, steps=(*earlier.set_up.steps, *made.steps), files=made.files)
        if name:
            made = named_set_up(name, made)
        self._state.describe(set_up=made, data_path=self._state.beneath(data_path))

    @keyword(name="Put On SUT")
    def put_on_sut(self, *files: Path) -> None:
        """Puts files of this machine into the folder on the SUT that the steps of `Set Up SUT` run in.

        They keep their names and whether they are executable. They are part of what makes results comparable.
        """
        self.set_up_sut(files=list(files))

    @keyword
    def replace_while_packets_pass(self, command: str, times: int = TIMES) -> None:
        """Has a ``command`` replace what `Set Up SUT` made, ``times`` times in a row while packets pass, a light load.

        It is a line for the shell, as steps are, and leaves the SUT as it finds it: `Count Kernel Builds` compares what
        the kernel takes for it, and whether packets are lost meanwhile, in place of what a packet costs.

        | Replace While Packets Pass    nft -f rules
        """
        made = self._state.test.scenario.set_up
        if made is None:
            raise UsageError(f"`{command}` has nothing to replace; begin with Set Up SUT")
        self._state.describe(set_up=dataclasses.replace(made, replacement=Replacement(command, times)))

    @keyword(name="Load EBPF Program")
    def load_ebpf_program(
        self,
        file: Path,
        program: str = "",
        attach: Attach = "auto",
        maps: Path | None = None,
        rodata: tuple[str, ...] = (),
        data_path: str | None = None,
        replaces: str = "",
    ) -> None:
        """Loads a program of an eBPF object ``file`` when the SUT is set up for the scenario, on each boot and hop.

        ``program`` names it where the object has several. ``attach`` is where it is attached at the SUT's ports:
        ``xdp``, ``xdp-generic``, ``tc-ingress``, ``tc-egress``, and since Linux 6.6 ``tcx-ingress``, ``tcx-egress``;
        without it, where its section says. ``maps`` is a YAML file of what its maps hold, ``rodata`` what its global
        variables are, see `Fill EBPF Map`.

        ``replaces`` is a function of a dispatcher, ``OBJECT:PROGRAM/FUNCTION``, which the program replaces (freplace).
        The dispatcher is attached in its place; maps and variables may be the dispatcher's, too.

        It stands before the ``data_path``, see `Set Data Path`: IPv4 and IPv6 routing unless another was chosen, so
        that what it lets pass is right. A data path that runs a program of that kind, such as ``xdp-ipv6-routing``,
        runs this one, and nothing else may forward. `What Counts Is` says what becomes of packets.

        The program is a build: results of another one with the same scenario can be compared. `Compare EBPF Builds`
        loads its own two.

        | Load EBPF Program    balancer.o    program=balancer_ingress    attach=xdp
        | Fill EBPF Map    vip_map    ${CURDIR}/vips.yaml
        | What Counts Is    returned
        """
        setup = program_setup(attach, maps, rodata, replaces).and_then(self._state.test.setup)
        earlier = self._state.test.scenario
        if earlier.program is not None:
            raise UsageError(
                f"the scenario loads {earlier.program.name} already; have a step of `Set Up SUT` load {file.name}"
            )
        self._state.describe(program=own_program(file, program, setup), data_path=self._state.beneath(data_path))

    @keyword
    def read_scenario(self, file: Path) -> None:
        """Takes the whole scenario from a YAML ``file``, as the option ``--scenario`` does.

        Its keys are those of docs/reference.md. Keywords that follow change what they name.
        """
        self._describe(scenario_of(file))

    @keyword
    def set_up_as_slower_path(self, number: int = 1) -> None:
        """Takes the whole scenario from the path that got slowest by `Count Kernel Builds`.

        ``number`` 2 is the path that got slowest by another function than that, and so on. Where there is none, the
        test is skipped; in a suite's setup, all of its tests are.

        | Set Up As Slower Path
        | Compare Kernel Builds    candidate=../linux    baseline=linux-image-6.1.0-18-amd64
        """
        record = self._state.record
        found = slower_paths(record.scenarios) if record is not None else []
        found = [one for one in found if one.name in self._state.paths]
        if len(found) < number:
            raise SkipExecution("no path got slower" if not found else "no path got slower by another function")
        self._describe(self._state.paths[found[number - 1].name])

    def _describe(self, asked: Scenario) -> None:
        self._state.describe(**{field.name: getattr(asked, field.name) for field in dataclasses.fields(asked)})

    @keyword
    def pin_interrupts(self, pinning: Pinning) -> None:
        """Chooses the CPUs that do the SUT's packet work: ``unpinned``, ``1 cpu`` (if not called) or ``2 cpus``."""
        self._state.describe(pinning=pinning)

    @keyword
    def set_receive_buffers(self, packets: int) -> None:
        """Sets how many packets wait at the SUT's receive side before they are dropped (4096 if not called).

        A namespace has them in the backlog of a CPU, a network card in its receive ring.
        """
        self._state.describe(buffer=packets)

    @keyword
    def set_receivers(self, count: int = 1, call: Call = "recvmsg", busy_poll: Duration = Duration(0)) -> None:  # noqa: B008
        """Sets the programs that receive where the data path delivers UDP.

        ``count`` programs, 1 to 8, share a port by SO_REUSEPORT. ``call`` is their system call: ``recvmsg`` takes one
        packet, ``recvmmsg`` as many as wait. ``busy_poll`` is how long a call looks for packets itself before it sleeps
        (SO_BUSY_POLL), such as ``50 us``; with ``0 s`` it sleeps at once.

        | Set Receivers    4    recvmmsg    busy_poll=50 us
        """
        self._state.describe(receivers=count, call=call, busy_poll=round(busy_poll * 1e6))

    @keyword(name="Share CPU")
    def share_cpu(self, *percent: int, background: int = 0) -> None:
        """Gives each receiver a share of the CPU in percent, by the weights of cgroups (v2).

        Name one ``percent`` for each program of `Set Receivers`. ``background`` further processes of the same priority
        want the CPU while a trial lasts.

        | Share CPU    60    20    background=2
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
        buffers: Buffers | None = None,
        request: int | None = None,
        anew: bool | None = None,
    ) -> None:
        """Sets the streams where the data path is TCP; an argument that is not given stays as it is.

        | =Argument= | =Value= | =If never set= |
        | ``count`` | streams between the SUT and the generator's machine | 1 |
        | ``window`` | KiB (1024 bytes) that a receiver advertises to each stream, at most | 1024 |
        | ``congestion`` | the senders' congestion control, such as ``reno`` or ``bbr`` | cubic |
        | ``direction`` | whether the SUT ``receives`` or ``sends`` | receives |
        | ``delay`` | time that the path adds to each round trip, at most 1 s, such as ``10 ms`` | 0 s |
        | ``loss`` | part of the senders' packets that the path loses, such as ``0.1%`` | 0 % |
        | ``buffers`` | who says what both ends hold: ``fixed`` for the window, ``kernel``, ``socket`` | fixed |
        | ``request`` | bytes of each request to the SUT, and of its answer; 0: as many bytes as it goes | 0 |
        | ``anew`` | whether each request has a connection of its own | False |

        ``socket`` buffers are asked for by SO_RCVBUF and SO_SNDBUF, as many KiB as ``window`` says. Delay and loss are
        made by netem; a kernel without it fails with ERROR.
        """
        given: dict[str, Any] = {
            "count": count, "window": window, "congestion": congestion, "direction": direction,
            "delay": None if delay is None else float(delay), "loss": None if loss is None else float(loss),
            "buffers": buffers, "request": request, "anew": anew,
        }  # fmt: skip
        changed = {name: value for name, value in given.items() if value is not None}
        self._state.describe(tcp=dataclasses.replace(self._state.test.scenario.tcp, **changed))

    @keyword
    def set_socket_buffers(self, size: float) -> None:
        """Sets the bytes that each receiver asks for its socket buffer, in MiB (2 if not called).

        The kernel doubles them. It charges each packet what it takes in memory, which is more than its bytes.
        """
        self._state.describe(socket_buffer=round(size * 1024))

    @keyword
    def set_batching(self, gro: Literal["on", "off"] | None = None, wait: Duration | None = None) -> None:
        """Sets how the SUT batches packets on receipt; an argument that is not given stays as it is.

        ``gro`` says whether the SUT's ports put packets of a flow together (generic receive offload). ``wait``, such as
        ``1 ms``, keeps interrupts off for so long after a poll (``napi_defer_hard_irqs``, ``gro_flush_timeout``): each
        poll finds more packets, and the first of them has waited longer. Never set, both are as the ports have them.
        """
        if gro is not None:
            self._state.describe(gro=gro)
        if wait is not None:
            self._state.describe(wait=round(wait * 1e6))

    @keyword
    def offer_overload(self, factor: float) -> None:
        """Offers loads far beyond saturation too, doubling up to ``factor`` (2.5 to 1000) times what the SUT can take.

        Two more measurands are judged by the PDR's tolerance. The overload throughput is forwarded at the highest of
        these loads. The livelock threshold is the load at which half of the most is forwarded.
        """
        self._state.describe(overload=factor)

    @keyword
    def take_latency(self) -> None:
        """Measures latency too, at 50, 90 and 99 % of the PDR, by probes in trials of their own.

        Two more measurands are judged, by the option ``latency_tolerance`` of `Open Testbed`: the median at 50 % and
        the 99th percentile at 90 %. Compared builds or runs are offered the same loads: shares of the baseline's PDR.
        """
        self._state.describe(latency=True)

    @keyword
    def set_frame_size(self, size: int | Literal["imix"]) -> None:
        """Sets the frame size in bytes with FCS (RFC 2544), 64 to 1518 (64 if not called); 64 means 66 with IPv6.

        ``imix`` is the simple Internet mix: of twelve frames seven have 64 bytes, four 570 and one 1518. Only TRex
        sends it.
        """
        self._state.describe(frame_size=size)

    @keyword
    def set_flows(self, flows: int) -> None:
        """Sets how many flows the traffic has, 1 to 16384 (256 if not called). Their UDP source ports differ."""
        self._state.describe(flows=flows)

    @keyword
    def send_packets_like(self, *words: str) -> None:
        """Sends packets of your own choice in place of the data path's.

        Arguments:
        - ``words``: what each packet is, such as ``udp dst=198.18.0.1 dport=53 src=10.0.0.0/16 flows=1000``, or a
          capture file. Several are mixed, by their ``weight``. See [traffic of your
          own](reference.md#traffic-of-your-own) for all of them.

        Packets are known again by their last 16 bytes, and all else of them is yours: through VLANs, IPIP, GRE, VXLAN,
        segment routing and translation of addresses. The frame size of the scenario holds where no ``size`` is given.

        Example:
        | Send Packets Like    udp dst=@out dport=53 src=10.0.0.0/16 flows=1000    tcp flags=S dst=@out
        | Send Packets Like    udp dst=10.1.0.1 in vxlan vni=7 dst=198.18.0.1
        | Send Packets Like    ${CURDIR}/dns.pcap
        """
        self._state.describe(traffic=chosen_traffic(words))

    @keyword
    def send_in_both_directions(self) -> None:
        """Sends packets through the SUT both ways, half of the load each. If not called they go one way."""
        self._state.describe(directions=2)

    @keyword(name="Fill EBPF Map")
    def fill_ebpf_map(self, name: str, source: Path | None = None, **entries: str) -> None:
        """Says what a map of the eBPF programs holds before packets come.

        Its elements are those of a YAML or CSV file, or written as KEY=VALUE, see docs/reference.md.

        | Fill EBPF Map    vip_map    ${CURDIR}/vips.yaml
        | Fill EBPF Map    tx_port    0=@out.ifindex    1=@in.ifindex
        """
        of_file = source or (Path(entries.pop("from")) if "from" in entries else None)
        fillings = [filling_of_file(name, of_file)] if of_file is not None else []
        if entries:
            fillings.append(Filling(name, tuple(entries.items())))
        self._set_up_programs(ProgramSetup(maps=tuple(fillings)))

    @keyword(name="Set EBPF Variables")
    def set_ebpf_variables(self, *assignments: str) -> None:
        """Says what global variables of the eBPF programs are, each as NAME=VALUE, before they are loaded."""
        self._set_up_programs(ProgramSetup(variables=variables(assignments)))

    def _set_up_programs(self, more: ProgramSetup) -> None:
        test = self._state.test
        if (program := test.scenario.program) is not None:
            loaded = check_setup(dataclasses.replace(program, setup=program.setup.and_then(more)))
            self._state.describe(program=loaded)
        else:
            self._state.describe()
            test.setup = test.setup.and_then(more)

    @keyword
    def what_counts_is(self, fate: Fate) -> None:
        """Says what counts as handled, where the data path's own word for it does not hold: all else is loss.

        ``forwarded``: packets that leave by the other port; ``returned``: by the port that they came in; ``dropped``:
        that a program or a rule drops; ``passed``: that reach the SUT's own sockets, or that the kernel's router sends
        on; ``handled``: that the SUT takes in, whatever becomes of them then.
        """
        self._state.describe(fate=fate)

    @keyword
    def packets_should_leave_alike(self) -> None:
        """Asks of two builds that are compared that they do the same to the same packet.

        It is the key ``alike`` of docs/reference.md. Without it, of programs and steps of your own only fields are
        compared that do not depend on the flow.

        | What Counts Is    returned
        | Packets Should Leave Alike
        | Compare EBPF Builds    ${BPF}    ${AGAINST}
        """
        self._state.describe(alike=True)

    @keyword
    def send_latency_probes(self, rate: Rate = Rate(1000)) -> None:  # noqa: B008 - a frozen number
        """Makes ``rate`` packets/s of the traffic latency probes, for `Get Latency`. If not called there are none."""
        self._state.describe(probe_rate=float(rate))


# Robot shows it with the keyword; each path says its own line.
ScenarioKeywords.set_data_path.__doc__ = "Chooses what the SUT does with packets.\n\n" + "\n".join(
    f"| ``{path.name}`` | {path.help} |" for path in DATA_PATHS.values()
)
