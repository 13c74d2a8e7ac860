"""The program iperf3 as a closed loop: server at the SUT, client at the station, and what its JSON says of a transfer.

The program is the distribution's. It reports what a gate needs of TCP: bytes that the receiver read, segments that were
sent again, and the sender's TCP_INFO ten times a second. Its control connection is one more TCP connection. That
survives an end host at its limit, for a closed loop leaves it room.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from pdrgate.data_paths.contract import Station
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.hosts.host import NOT_FOUND, Completed, Host, Running
from pdrgate.record.transfer import EndsCpu, Look, Senders, Transfer
from pdrgate.record.trial import Trial
from pdrgate.this_process.checkout import how_to_install
from pdrgate.values.errors import SutError, TestbedError, ToolError

PORT = 5201
_LOOK = 0.1
"""Seconds between looks at TCP_INFO, the least that iperf3 takes."""
_GRACE = 20.0
"""Seconds that a transfer may take beyond its duration."""
_BLOCK = 2896
"""Bytes of each write of a sender that holds itself back: two full segments, which are acknowledged at once. A single
one waits for a delayed acknowledgement, and the round trip time would be that timer's."""
_FEWEST_BLOCKS = 40
_NOT_READY = re.compile(r"unable to connect|control message|control socket|busy", re.IGNORECASE)
_ATTEMPTS, _PAUSE = 40, 0.05
"""Attempts to begin a transfer, and seconds between: the server closes its socket and opens another after each."""
_STARTS = 100
"""Looks at whether the server listens, 20 ms apart."""
_LISTENS = "0A"
_UNKNOWN = 1 << 63
"""Counts from which on they are negative ones that were read as if they were not."""
_SAID = 300
"""Letters of what iperf3 says that an error has, at most."""
_ERROR = re.compile(r"^iperf3: error - (.+)$", re.MULTILINE)
_TOLERATED = 1.5
"""Times the window that may be advertised: small ones a kernel keeps to by what packets take of a buffer."""
_Ticks = tuple[int, int]
"""Idle ones of a CPU, and all."""
_SERVE = """\
n=0
for p in /proc/[0-9]*; do
    read -r name <"$p/comm" && [ "$name" = "ksoftirqd/$1" ] && n=$(cut -d ' ' -f 19 "$p/stat") && break
done 2>/dev/null
shift
[ "$n" = 0 ] || exec nice -n "$n" "$@"
exec "$@"
"""
"""The priority that the kernel's packet work has on the same CPU, so that the two share it as they do where nobody has
touched either."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The addresses of a transfer, and who gets which CPU."""

    sut: str
    station: str
    sut_cpu: int | None
    """The SUT's CPU that runs its end; None: its scheduler chooses."""


class Iperf:
    """Closed loop of iperf3 at both ends, from `__init__` to `close`; satisfies `ClosedLoop`.

    Args:
        host: the SUT.
        advertise: makes receivers advertise so many bytes to each stream, at most.

    Raises:
        TestbedError: it is not installed, or does not listen.
    """

    def __init__(
        self, host: Host, station: Station, ends: Ends, streams: TcpStreams, advertise: Callable[[int], None]
    ) -> None:
        self._host = host
        self._advertise = advertise
        self._station = station
        self._ends = ends
        self._streams = streams
        self._family: Literal[4, 6] = 6 if ":" in ends.sut else 4
        self._server: Running | None = None
        self._version = _version(station.host)
        _version(host)
        try:
            cpu = "0" if ends.sut_cpu is None else str(ends.sut_cpu)
            serve = ("iperf3", "--server", "--bind", ends.sut, "--port", str(PORT), "--json", "--interval", str(_LOOK))
            self._server = host.start("sh", "-c", _SERVE, "sh", cpu, *serve)
            self._await_server()
        except BaseException:
            self.close()
            raise

    def describe(self) -> dict[str, str]:
        return {"name": "iperf3", "engine": "tcp", "version": self._version}

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        self._advertise(window)
        streams = self._streams
        cpus = ",".join(str(cpu) for cpu in (self._station.cpu, self._ends.sut_cpu) if cpu is not None)
        words = [
            "iperf3", "--client", self._ends.sut, "--bind", self._ends.station, f"-{self._family}", "--port", str(PORT),
            "--json", "--get-server-output", "--interval", str(_LOOK), "--parallel", str(streams.count),
            *(("--congestion", streams.congestion) if streams.congestion else ()),
            # Else streams have the buffer of the socket that has listened since the transfer before.
            "--no-delay",
        ]  # fmt: skip
        words += ["--reverse"] if streams.sends else []
        words += ["--window", str(window)] if streams.buffers == "socket" else []
        # iperf3 takes the server's CPU only behind the client's.
        words += ["--affinity", cpus] if self._station.cpu is not None else []
        if rate:
            blocks = max(_FEWEST_BLOCKS, round(rate * duration / 8 / _BLOCK))
            each = str(round(rate / streams.count))
            words += ["--length", str(_BLOCK), "--bitrate", each, "--blockcount", str(blocks)]
        else:
            words += ["--time", str(max(1, math.ceil(duration)))]
        for left in reversed(range(_ATTEMPTS)):
            before, wire, started = self._idle(), self._on_wire(), time.time()
            completed = self._station.host.run(*words, timeout=max(1.0, duration) + _GRACE, check=False)
            report = self._printed(completed)
            if not left or not _NOT_READY.search(str(report.get("error", ""))) or report.get("intervals"):
                break
            time.sleep(_PAUSE)
        sut_busy, station_busy = map(_busy, before, self._idle())
        found = read_transfer(self._sound(report), streams, window=window, rate=rate, busy=(sut_busy, station_busy))
        check_believable(found, self._on_wire() - wire, sent_here=not streams.sends, where=self._where)
        if streams.congestion and found.congestion != streams.congestion:  # a server that lacks it goes on with another
            sut = f"{self._host.name} has {', '.join(self._controls())}"
            raise TestbedError(f"the senders used {found.congestion} where {streams.congestion} was asked for; {sut}")
        if not found.delivered:
            raise TestbedError(f"{self._where} delivered nothing; see that the path and its firewall let TCP through")
        advertised = found.senders.advertised
        if streams.buffers == "fixed" and advertised > _TOLERATED * window:
            raise TestbedError(
                f"a window of {window} bytes was set, and receivers between {self._station.host.name} and "
                f"{self._host.name} advertise {advertised}: this kernel does not keep to it; use a larger one"
            )
        return Trial.of_transfer(found, duration, started)

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _await_server(self) -> None:
        """Wait until the kernel lists the server's socket as listening. A connection would be taken for a transfer."""
        table = "/proc/net/tcp6" if self._family == 6 else "/proc/net/tcp"
        for _ in range(_STARTS):
            if any(_listens(line) for line in self._host.read(table).splitlines()):
                return
            time.sleep(0.02)
        assert self._server is not None
        ended = self._server.stop()
        why = (ended.stderr.strip() or ended.stdout.strip() or "without a word").splitlines()[-1]
        raise ToolError(f"iperf3 on {self._host.name} does not listen on port {PORT}: {why}")

    def _on_wire(self) -> int:
        """Bytes so far that the station's interface has carried in the direction of the data."""
        way = "rx" if self._streams.sends else "tx"
        return int(self._station.host.read(f"/sys/class/net/{self._station.port.interface}/statistics/{way}_bytes"))

    @property
    def _where(self) -> str:
        return f"iperf3 between {self._station.host.name} and {self._host.name}"

    def _printed(self, completed: Completed) -> Mapping[str, Any]:
        """The JSON that the client printed. Raises TestbedError where that is not whole."""
        report, words = json_and_words(completed.stdout)
        words += completed.stderr
        if report is None:
            said = " ".join(words.split())[:_SAID] or f"exit code {completed.exit_code}"
            raise ToolError(f"{self._where} printed no whole JSON: {said}")
        if "error" not in report and (error := _ERROR.search(words)) and not report.get("end"):
            return {**report, "error": error[1].strip()}
        return report

    def _sound(self, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the report of a client that had no error. Raises TestbedError with the error of one that had."""
        if why := report.get("error"):
            known = ""
            if "congestion" in str(why).lower():
                known = f"; the SUT's kernel has {', '.join(self._controls())}"
            raise TestbedError(f"{self._where}: {why}{known}")
        return report

    def _controls(self) -> list[str]:
        """The congestion controls that the SUT's kernel has loaded."""
        return self._host.read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()

    def _idle(self) -> tuple[_Ticks | None, _Ticks | None]:
        """Idle and all ticks so far of the SUT's CPU and the station's, where they are known."""
        return (
            _ticks(self._host, self._ends.sut_cpu),
            _ticks(self._station.host, self._station.cpu),
        )


def json_and_words(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON object in what iperf3 printed, None where there is no whole one, and the words around it.

    Versions print lines of text before it or after it (3.9, 3.16).
    """
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("\n{", at + 1)
            at += at >= 0
            continue
        return found, f"{text[:at]}\n{text[end:]}"
    lines = (line.strip() for line in text.splitlines())
    return None, "\n".join(line for line in lines if line.startswith("iperf3:")) or text[-_SAID:]


def read_transfer(
    report: Mapping[str, Any],
    streams: TcpStreams,
    *,
    window: int,
    rate: float = 0.0,
    busy: tuple[float | None, float | None] = (None, None),
) -> Transfer:
    """What the JSON of iperf3's client says of a transfer, with that of its server in it.

    Raises:
        TestbedError: it lacks something.
    """
    try:
        sender = report["server_output_json"] if streams.sends else report
        end, received, sent = report["end"], report["end"]["sum_received"], sender["end"]["sum_sent"]
        cpu, seconds = end["cpu_utilization_percent"], _number(received["seconds"])
        if not streams.sends:  # the SUT says how long it has read: no less than was sent here
            seconds = max(seconds, _number(sent.get("seconds", 0.0)))
        return Transfer(
            window=window,
            streams=streams.count,
            congestion=str(end["sender_tcp_congestion"]),
            intended_rate=rate,
            delivered=_count(received["bytes"]),
            seconds=seconds,
            senders=Senders(
                sent=_count(sent["bytes"]),
                segment=_count(report["start"]["tcp_mss_default"]),
                retransmitted=_count(sent["retransmits"]),
                looks=_looks([interval["streams"] for interval in sender["intervals"]]),
            ),
            cpu=EndsCpu(
                sut_cpu=max(0.0, _number(cpu["remote_total"])) / 100 * seconds,
                station_cpu=max(0.0, _number(cpu["host_total"])) / 100 * seconds,
                sut_busy=busy[0],
                station_busy=busy[1],
            ),
        )
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise TestbedError(
            f"iperf3's JSON lacks what a transfer needs ({_brief(error)}); versions 3.9 to 3.18 have it"
        ) from error


def _number(value: Any) -> float:
    """A number of iperf3's. Raises ValueError where it is none that can be: ``1e400`` is read as infinite."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} for a number")
    return number


def _count(value: Any) -> int:
    """A count of iperf3's. Raises ValueError where it is not known: -1, also as the largest number of 64 bits.

    A sender without TCP_INFO has that for what it sent again.
    """
    number = _number(value)
    if not 0 <= number < _UNKNOWN:
        raise ValueError(f"{number:g} for a count, which iperf3 tells where it does not know")
    return int(number)


def _brief(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)[:_SAID]


def check_believable(found: Transfer, on_wire: int, *, sent_here: bool, where: str) -> None:
    """Raise SutError where more is said to be delivered than was sent, or seen on the wire.

    Args:
        on_wire: bytes that this side's interface carried meanwhile.
        sent_here: whether this side sent, so that it knows what.
    """
    most = min(on_wire, found.senders.sent) if sent_here else on_wire
    if found.delivered > most:
        raise SutError(
            f"{where} is said to have delivered {found.delivered} bytes, and {most} went over this side's interface: "
            "that is not true; is the SUT's kernel to be trusted?"
        )


def _looks(intervals: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[Look, ...]:
    """Each interval of all streams together.

    Streams without an acknowledgement in it have no round trip time, and are left out.
    """
    found = []
    for streams in intervals:
        rtts = [stream for stream in streams if _count(stream["rtt"])]
        if rtts:
            found.append(
                Look(
                    end=_number(streams[0]["end"]),
                    seconds=_number(streams[0]["seconds"]),
                    sent=sum(_count(stream["bytes"]) for stream in streams),
                    retransmitted=sum(_count(stream["retransmits"]) for stream in streams),
                    rtt=median(_count(stream["rtt"]) for stream in rtts) / 1e6,
                    rtt_deviation=median(_count(stream["rttvar"]) for stream in rtts) / 1e6,
                    congestion_window=sum(_count(stream["snd_cwnd"]) for stream in streams),
                    advertised=max(_count(stream["snd_wnd"]) for stream in streams),
                )
            )
    return tuple(found)


def _busy(before: _Ticks | None, after: _Ticks | None) -> float | None:
    """Share of the time between that a CPU was not idle; None where nobody knows."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    return 1.0 - (after[0] - before[0]) / (after[1] - before[1])


def _version(host: Host) -> str:
    completed = host.run("iperf3", "--version", check=False)
    if completed.exit_code == NOT_FOUND:
        raise ToolError(f"{host.name} has no iperf3; {how_to_install('iperf3')}")
    return completed.stdout.partition("\n")[0].removeprefix("iperf ").partition(" ")[0]


def _listens(line: str) -> bool:
    """Whether a line of /proc/net/tcp is a socket that listens on our port."""
    words = line.split()
    return len(words) > 3 and words[3] == _LISTENS and words[1].endswith(f":{PORT:04X}")


def _ticks(host: Host, cpu: int | None) -> _Ticks | None:
    """Idle and all ticks of a CPU so far; None where that one is not known."""
    for line in host.read("/proc/stat").splitlines() if cpu is not None else ():
        name, *numbers = line.split()
        if name == f"cpu{cpu}":
            # Of guests' time (the last two) user time is the sum already.
            ticks = list(map(int, numbers[:8]))
            return ticks[3] + ticks[4], sum(ticks)
    return None
