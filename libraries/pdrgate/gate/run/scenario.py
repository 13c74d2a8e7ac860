"""Scenarios: data path x pinning x buffer x frames x goal, everything that one PDR was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

from pdrgate.builds.bpf_build import BpfBuild
from pdrgate.data_paths.catalogue import DATA_PATHS, Call, PathDescription, Receivers, SetUp, TcpStreams  # fmt: skip
from pdrgate.gate.run.declaration import OF_PATH, By, Said, declarations, path_key
from pdrgate.record.fate import INSIDE, Fate
from pdrgate.results.fingerprint import OF_THE_PROGRAM
from pdrgate.search.goals import Goal
from pdrgate.testbeds.testbed_base import Pinning
from pdrgate.traffic.chosen.chosen_traffic import ChosenTraffic
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import UsageError
from pdrgate.values.units import Ratio

DEFAULT_FLOWS = 256
DEFAULT_LOSS, DEFAULT_WIDTH = 0.005, 0.01
Gro = Literal["", "on", "off"]
_USUAL = Receivers()
_USUAL_STREAMS = TcpStreams()
_OF_OPEN_LOOPS = (
    "frame_size", "flows", "directions", "probe_rate", "traffic", "fate", "alike", "overload", "loss_ratio", "width",
)  # fmt: skip
_IN_NAMES = {
    "directions": "bidirectional", "flows": "{}flows", "probe_rate": "{:g}probes", "_other_fate": "{}",
    "alike": "alike", "receivers": "{}receivers", "socket_buffer": "{}KiB", "call": "{}", "busy_poll": "{}usbusy",
    "_shares": "shares{}", "background": "{}background", "overload": "overload{:g}", "latency": "latency",
}  # fmt: skip
"""The words of a name for what is not as usual, in their order."""
_IN_NAMES_OF_STREAMS = {
    "count": "{}streams", "direction": "{}", "congestion": "{}", "delay": "{:g}msdelay", "loss": "pathloss{:g}",
    "buffers": "{}buffers", "request": "{}Brequests", "anew": "anew",
}  # fmt: skip
_SCALES = {"delay": 1e3, "loss": 100}
"""Milliseconds, percent."""

_NO_LETTER = re.compile(r"[^\w.]+", re.ASCII)
_LONGEST_STEPS = 60
"""Characters of the steps in a title."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is measured.

    Raises:
        UsageError: a value does not exist; the message names those that do.
    """

    data_path: Annotated[
        str,
        path_key(
            "what is set up before the steps: `ip-routing`, the kernel's router for both IP versions; `bare-ipv4` and "
            "`bare-ipv6`, nothing; or any other data path",
            default="`ip-routing`",
            by=OF_PATH | By.PIPELINE,
        ),
    ] = "ipv6-routing"
    pinning: Annotated[Pinning, path_key("the CPUs that do the SUT's packet work")] = "1 cpu"
    buffer: Annotated[
        int, path_key("packets that wait at the receive side before they are dropped", range=(1, 1_000_000))
    ] = 4096
    frame_size: Annotated[
        int | Literal["imix"], path_key("bytes of a frame with FCS, 64 to 1518, or `imix` for TRex")
    ] = 64
    """See `Frames.size` and `IMIX`."""
    flows: Annotated[int, path_key("flows of the traffic, 1 to 16384")] = DEFAULT_FLOWS
    directions: Annotated[Literal[1, 2], path_key("2: packets go both ways, half of the load each")] = 1
    probe_rate: Annotated[float, path_key("latency probes per second")] = 0.0
    fate: Annotated[
        Fate | Literal[""],
        path_key(
            "[what counts as handled](counted.md#what-counts-as-handled)",
            form="NAME",
            default="as the data path says: mostly `forwarded`",
            by=OF_PATH | By.PIPELINE,
        ),
    ] = ""
    traffic: Annotated[
        ChosenTraffic | None,
        Said(
            "[packets to send](#traffic-of-your-own), such as `udp dst=198.18.0.1 dport=53 flows=1000`, or a capture "
            "file. They are sent in place of the path's own; in a file one text, or a list of them",
            By.PATH | By.PIPELINE,
            "WORDS",
        ),
    ] = None
    receivers: Annotated[int, path_key("programs that receive, where the data path delivers")] = _USUAL.count
    socket_buffer: Annotated[int, path_key("KiB of a receiver's socket buffer")] = _USUAL.buffer
    call: Annotated[Call, path_key("the call by which receivers read")] = _USUAL.call
    busy_poll: Annotated[int, path_key("microseconds that a receiver's call looks for packets")] = _USUAL.busy_poll
    cpu_shares: Annotated[tuple[int, ...], path_key("percent of the CPU, one for each receiver")] = _USUAL.shares
    background: Annotated[int, path_key("busy processes beside the receivers")] = _USUAL.background
    tcp: TcpStreams = _USUAL_STREAMS
    """The TCP streams, where the data path is TCP."""
    overload: Annotated[
        float,
        path_key("times what the SUT can take that it is offered too, 2.5 to 1000", default="none", range=(2.5, 1000)),
    ] = 0.0
    """0: what the curve needs."""
    latency: Annotated[
        bool, path_key("measure and judge [latency](counted.md#latency) too, at 50, 90 and 99 % of the PDR")
    ] = False
    gro: Annotated[
        Gro, path_key("whether the ports put packets together on receipt", default="as they do by themselves")
    ] = ""
    wait: Annotated[
        int,
        path_key(
            "microseconds that ports wait for further packets, up to 100000",
            default="as they do by themselves",
            range=(0, 100_000),
        ),
    ] = 0
    loss_ratio: Annotated[Ratio | float, path_key("the loss ratio that defines the PDR", default="0.5%")] = DEFAULT_LOSS
    width: Annotated[Ratio | float, path_key("the relative width of the search's bounds", default="1%")] = DEFAULT_WIDTH
    set_up: SetUp | None = None
    """Steps of the scenario's own, on top of its data path."""
    alike: Annotated[
        bool,
        path_key(
            "require that both builds do the same to the same packet (port, addresses, time to live, checksums, "
            "length, payload); the first difference ends the comparison"
        ),
    ] = False
    program: BpfBuild | None = None
    """An eBPF program of the scenario's own: the data path's, where that runs one, else before it."""

    def __post_init__(self) -> None:
        if self.data_path not in DATA_PATHS:
            raise UsageError(f"there is no data path {self.data_path!r}; there are {', '.join(DATA_PATHS)}")
        for name in ("pinning", "buffer", "overload", "gro", "wait", "fate"):
            if self._asks(name):
                SCENARIO_KEYS[name].value(getattr(self, name))
        if self.delivery is None and self._receivers != _USUAL:
            raise UsageError(f"{self.data_path} has no receivers; use {_first(lambda path: path.delivers)}")
        if self.streams is None and self.tcp != _USUAL_STREAMS:
            raise UsageError(f"{self.data_path} has no TCP streams; use {_first(lambda path: path.transfers)}")
        if self.streams is not None and (told := [name for name in _OF_OPEN_LOOPS if self._asks(name)]):
            raise UsageError(f"{self.data_path} is a closed loop and has no {', '.join(told)}; leave that out")
        self._check_fate()
        if self.delivery is not None and self.directions == 2:
            raise UsageError(f"{self.data_path} ends at the SUT, and nothing comes from behind it; send one way")
        if self.delivery is not None and self.latency:
            raise UsageError(
                f"{self.data_path} ends at the SUT, and no probe comes back that would tell its latency; "
                "leave the latency out"
            )
        if self.traffic is not None:
            self._check_traffic()
        if self.program is not None:
            self._check_program(self.program)
        _ = self.frames, Goal("PDR", self.loss_ratio, self.width)  # their own checks

    def _check_fate(self) -> None:
        if self._other_fate and (self.fate == "delivered" or self.delivery is not None):
            raise UsageError(
                f"packets of {self.data_path} are {DATA_PATHS[self.data_path].fate}, and never {self.fate}: what is "
                "delivered ends at receivers; use another data path or another fate"
            )
        if self.alike and self.counts in ("dropped", "delivered"):
            raise UsageError(f"no packet leaves of those that are {self.counts}; leave out that they leave alike")
        if self.counts in INSIDE and (self.latency or self.probe_rate):
            raise UsageError(f"no probe comes back of packets that are {self.counts}; leave latency out")

    def _check_program(self, program: BpfBuild) -> None:
        path = DATA_PATHS[self.data_path]
        if path.transfers and program.kind in ("xdp", "tc"):
            raise UsageError(f"{path.name} is a closed loop, which no program of the scenario's stands before")
        if path.program not in (None, program.kind):
            raise UsageError(
                f"{path.name} runs a program for {path.program}, and {program.name} is one for {program.kind}; choose "
                "another data path, or another attach"
            )

    def _check_traffic(self) -> None:
        if self.delivery is not None:
            raise UsageError(f"receivers of {self.data_path} count pdrgate's own packets; leave the chosen traffic out")
        if self.flows != DEFAULT_FLOWS:
            raise UsageError("chosen traffic says by flows= how many flows it has; leave the scenario's flows out")

    def _asks(self, name: str) -> bool:
        """Whether a field is not as usual."""
        usual = next((field.default for field in fields(self) if field.name == name), "")
        return bool(getattr(self, name) != usual)

    @property
    def counts(self) -> Fate:
        """What counts as handled."""
        return self.fate or DATA_PATHS[self.data_path].fate

    @property
    def _other_fate(self) -> str:
        """The fate, where it is not the data path's own: one question has one name."""
        return "" if self.counts == DATA_PATHS[self.data_path].fate else self.counts

    @property
    def _shares(self) -> str:
        return ".".join(map(str, self.cpu_shares))

    @property
    def delivery(self) -> Receivers | None:
        """Who receives, where the data path delivers."""
        return self._receivers if DATA_PATHS[self.data_path].delivers else None

    @property
    def streams(self) -> TcpStreams | None:
        """The streams of a closed loop, where the data path is one; it has no PDR."""
        return self.tcp if DATA_PATHS[self.data_path].transfers else None

    @property
    def window(self) -> int:
        """The window of a closed loop, bytes; 0 where a generator offers a load."""
        return 0 if self.streams is None else self.streams.window * 1024

    @property
    def replaces(self) -> bool:
        """Whether something of its set-up is replaced while packets pass, and compared by what that takes."""
        return self.set_up is not None and self.set_up.replacement is not None

    @property
    def starves(self) -> bool:
        """Whether packets end at programs, which starve past the PDR.

        What these get there is measured and compared, and the curve is not asked to be flat.
        """
        return self.delivery is not None

    @property
    def ends_at_sut(self) -> bool:
        """Whether programs of the SUT's own are in it, and share its CPUs."""
        return self.delivery is not None or self.streams is not None

    @property
    def _receivers(self) -> Receivers:
        return Receivers(
            self.receivers, self.socket_buffer, self.call, self.busy_poll, self.cpu_shares, self.background
        )

    @property
    def frames(self) -> Frames:
        """The frames of the scenario's trials."""
        return replace(
            DATA_PATHS[self.data_path].frames,
            size=64 if self.frame_size == "imix" else self.frame_size,
            imix=self.frame_size == "imix",
            flows=self.flows,
            directions=self.traffic.directions if self.traffic and self.directions == 1 else self.directions,
            probe_rate=self.probe_rate,
            counted="taken" if self.counts in INSIDE else "returned" if self.counts == "returned" else "forwarded",
            chosen=self.traffic,
        )

    @property
    def terms(self) -> dict[str, str]:
        """What makes results comparable beyond the name: part of the fingerprint."""
        traffic = {} if self.traffic is None else {"traffic": self.traffic.words}
        return traffic | ({} if self.program is None else {OF_THE_PROGRAM: self.program.label})

    @property
    def recorded(self) -> dict[str, str]:
        """What result.json has of the scenario's own steps and program."""
        steps = {} if self.set_up is None else self.set_up.recorded()
        return steps | ({} if self.program is None else self.program.recorded())

    @property
    def name(self) -> str:
        """A name for files, metrics and fingerprints, such as ``ipv6-routing-1cpu-4096-64B``.

        Other questions have other names: what is not as usual is in it.
        """
        words = [self.data_path, self.pinning.replace(" ", ""), str(self.buffer)]
        if self.set_up is not None:
            words.insert(1, f"set_up_{self.set_up.label}")
        if self.program is not None:
            words.insert(1, f"program_{_NO_LETTER.sub('_', self.program.name)}")
        if self.streams is not None:
            return "-".join(words + _words_of(self.streams) + self._batching)
        words.append("imix" if self.frame_size == "imix" else f"{self.frame_size}B")
        if self.traffic is not None:
            words.append(f"traffic_{self.traffic.digest}")
        words += [word.format(getattr(self, name)) for name, word in _IN_NAMES.items() if self._asks(name)]
        words += self._batching
        if self.loss_ratio != DEFAULT_LOSS:
            words.append(f"loss{100 * self.loss_ratio:g}")
        if self.width != DEFAULT_WIDTH:
            words.append(f"width{100 * self.width:g}")
        return "-".join(words)

    @property
    def _batching(self) -> list[str]:
        """The words on how packets are batched on receipt."""
        return ([f"gro{self.gro}"] if self.gro else []) + ([f"{self.wait}uswait"] if self.wait else [])

    @property
    def title(self) -> str:
        """The scenario in words."""
        if self.streams is not None:
            kind = DATA_PATHS[self.data_path].title
            return f"{kind}, {self.pinning}, buffer {self.buffer} packets, {self.streams}{self._batching_in_words}"
        more = "" if self.set_up is None else f", set up by {_shortened(str(self.set_up))}"
        more += "" if self.program is None else f", with the program {self.program.name}"
        more += ", both directions" if self.directions == 2 else ""
        if self.flows != DEFAULT_FLOWS:
            more += f", {self.flows} flows"
        if self._other_fate:
            more += f", packets that are {self.fate} count"
        more += ", packets of both builds alike" if self.alike else ""
        if self.delivery is not None:
            more += f", {self.delivery}"
        if self.overload:
            more += f", up to {self.overload:g} times what it can take"
        more += self._batching_in_words
        if self.latency:
            more += ", with its latency"
        if self.probe_rate:
            more += f", {self.probe_rate:g} probes/s"
        if self.loss_ratio != DEFAULT_LOSS:
            more += f", PDR at {self.loss_ratio:.3g} loss" if self.loss_ratio < 1e-4 else f", PDR@{self.loss_ratio:.2%}"
        beneath = DATA_PATHS[self.data_path]
        kind = f"steps of its own on {beneath.title}" if self.set_up and beneath.under_steps else beneath.title
        return (
            f"{kind}, {self.pinning}, buffer {self.buffer} packets, "
            f"{'IMIX' if self.frame_size == 'imix' else f'{self.frame_size}-byte'} frames"
            f"{'' if self.traffic is None else f' like {self.traffic}'}{more}"
        )

    @property
    def _batching_in_words(self) -> str:
        waits = f", ports that wait {self.wait} us for further packets" if self.wait else ""
        return (f", GRO {self.gro}" if self.gro else "") + waits


SCENARIO_KEYS = declarations(Scenario)
"""The fields that a file or ``--set`` gives a value by their names."""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_STEPS else f"{text[:_LONGEST_STEPS]}…"


def _first(wanted: Callable[[PathDescription], bool]) -> str:
    """The name of a data path of some kind, as an example."""
    return next(name for name, path in DATA_PATHS.items() if wanted(path))


def _words_of(streams: TcpStreams) -> list[str]:
    words = [f"{streams.window}KiBwindow"]
    for name, word in _IN_NAMES_OF_STREAMS.items():
        if (value := getattr(streams, name)) != getattr(_USUAL_STREAMS, name):
            words.append(word.format(value * _SCALES.get(name, 1)))
    return words
