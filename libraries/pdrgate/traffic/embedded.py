"""The embedded generator: a compiled worker in the TG's namespace, held across trials.

Two engines put packets on the wire. ``xdp`` (Linux 5.18 and newer) runs a BPF program on live frames: it fills and
paces them in the kernel and hands them to the veth in batches, which left a two-core machine about twice the headroom
of the other. ``packet`` is a loop of sendmmsg on an AF_PACKET socket, for kernels without live frames, and for SUTs so
slow that the generator may sleep between packets and leave its CPU to others meanwhile. Both count what
comes back with an XDP program on the receiving port: only packets with this run's cookie and this trial's tag, each
number once.

What is under way is looked at while sending goes on, by whoever sends and in between two batches, so that sent and
received packets are counted within some ten nanoseconds; the last look is when the last packet's slot ends, and what
comes back later is drained. Latencies are counted in buckets of at most 1/128 of their value: percentiles are the upper
end of theirs, the maximum is exact, and all probes are in both.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pdrgate.record.stretch import Latency, Occasion, Seen
from pdrgate.record.trial import Aside, Trial
from pdrgate.this_process.asked_program import AskedProgram, LostProgramError
from pdrgate.traffic import native
from pdrgate.traffic.chosen.chosen_traffic import ChosenTraffic
from pdrgate.traffic.chosen.frame_table import FrameTable, frame_table
from pdrgate.traffic.frames import MARKED_PORT, Frames, Path, template
from pdrgate.traffic.generator import packets_of_trial
from pdrgate.traffic.native.wire import Request, chosen_table
from pdrgate.traffic.sent_frames import BuiltInFrames, ChosenFrames, SentFrames
from pdrgate.values.errors import GeneratorError, TestbedError, UsageError

Engine = Literal["auto", "xdp", "packet"]

_BATCH_SPAN = 64e-6
"""Seconds of traffic in a batch: short enough to pace well, long enough to look at the clock rarely."""
_MAX_BATCH = 64
_NOT_REFILLED = 32
"""Packets by which a full ring of virtio may be less than full: it is refilled when about half a batch is gone."""
QUIET = 0.050
"""Seconds without a packet that end a drain: longer than a shared machine mostly takes a CPU away."""
_BROKEN_BURSTS = 2
"""Bursts that may not come back whole: each of them is waited for."""
_LIMIT = 20
"""Times as long as that a drain may take in all."""
_FAREWELL = 0.2
"""Seconds for the worker to end when its input does."""
_DIRECTION, _KINDS = 2, 4
"""Bit of a tag that says the direction, and number of tags that a trial takes; as wire.h has them."""
_TAGS = range(0x8000, 0x10000 - _KINDS, _KINDS)
_LOOKED_AT = 16
"""Frames of a trial that are looked at, drawn; up to eight of each CPU that receives are kept whole."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Sending of packets at once, if all of a burst shall wait for the SUT: it looks at none before it has all."""

    packets: int
    """Packets of a burst."""
    least_load: float
    """Packets/s from which on a trial is of bursts, each of which the SUT is done with before the next."""
    stop: Callable[[], None]
    """Has the SUT look at none."""
    go_on: Callable[[], None]
    """Called when a burst is sent: has the SUT look at it."""


class EmbeddedGenerator:
    """The generator that comes with pdrgate; satisfies ``Generator``.

    Args:
        netns: name of the namespace that holds the ports; None if they are this process's own.
        cpu: the CPU that it keeps busy while it sends.
        paths: one ``Path`` per direction, the first being the forward one.
        engine: ``auto`` takes ``xdp`` if the kernel has it.
        asleep: whether the worker sleeps while it waits for packets: for testbeds on which others need its CPU, and a
            SUT takes tens of thousands of packets/s at most. ``auto`` is ``packet`` then.
        ring: of a guest, what its receive ring holds behind the queue of a TAP.
        quiet: seconds without a packet that end a drain.
        bursts: what trials of a high load are made of, if packets come back, or end at programs of the SUT;
        None: they are sent when they are due.
        on_sent: called in each trial without probes when sending has ended, and what is queued begins to drain.

    Raises:
        TestbedError: it cannot be built or started here; the message says what is missing.
    """

    def __init__(
        self, netns: str | None, cpu: int, paths: Sequence[Path], engine: Engine = "auto",
        *, asleep: bool = False, ring: int = 0, quiet: float = QUIET, bursts: Bursts | None = None,
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        parts = native.build()
        self._paths = tuple(paths)
        self._cookie = secrets.randbits(16)
        self._tags: Iterator[int] = iter(())
        self._asleep = asleep
        self._ring = max(0, ring - _NOT_REFILLED)
        self._quiet = quiet
        self._bursts = bursts
        self._on_sent = on_sent
        self._chosen_cookie = secrets.randbits(32)
        self._table: FrameTable | None = None
        self._tabled: tuple[ChosenTraffic, int] | None = None
        """Traffic and count from which the worker's present table was made."""
        ports = list(dict.fromkeys(path.port for path in paths))
        command = [str(parts.worker), netns or "-", str(cpu), str(parts.bpf), *ports]
        self._worker = AskedProgram(command)
        try:
            ready = self._answer(10.0)
            self.engine, self._why = _choose(engine, asleep, bool(ready["xdp"]), str(ready["why"]))
        except GeneratorError as error:
            self.close()
            where = f" in namespace {netns}" if netns else ""
            raise TestbedError(f"the traffic generator does not start{where}: {error}") from error
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._worker.pid

    @property
    def cookie(self) -> int:
        """The 16 bits that end every destination address of this generator."""
        return self._cookie

    def describe(self) -> dict[str, str]:
        return {"name": "embedded", "engine": self.engine, "chosen": self._why}

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        count = packets_of_trial(load, duration)
        if frames.directions > len(self._paths):
            raise UsageError("traffic in both directions needs a testbed with two paths; this one has one")
        if frames.imix:
            raise UsageError("the embedded generator sends frames of one size; give a frame size, or use TRex for IMIX")
        started = time.time()
        sent_frames: SentFrames
        following = b""
        if frames.chosen is None:
            sent_frames = self._built_in(frames)
        else:
            sent_frames, following = self._chosen(frames, frames.chosen)
        bursts = self._bursts_of(load, frames)
        try:
            self._send(self._request(count, load, duration, frames, sent_frames, len(following), bursts), following)
            if bursts is not None:
                self._send_bursts(bursts)
            self._answer(duration + 10.0)
            if not frames.probe_rate:  # the latency of what drains is measured
                self._on_sent()
            result = self._answer(_LIMIT * self._quiet + 10.0)
        except GeneratorError:
            raise
        except BaseException:
            self._worker.kill()  # interrupted: its answer, still to come, would be taken for the next trial's
            raise
        sent = int(result["sent"])
        latency = None
        if "p50_ns" in result:
            p50, p90, p99, top = (result[f"{name}_ns"] / 1e9 for name in ("p50", "p90", "p99", "max"))
            latency = Latency(p50, p90, p99, top, int(result["probes_back"]))
        looks, came, drained, left = tuple(result["under_way"]), int(result["forwarded"]), int(result["drained"]), 0
        if frames.counted == "taken":  # what comes back is in nobody's way
            left, outside = came + int(result["returned"]) + int(result["twice"]), int(result["outside"])
            came, drained = sent - outside, max(0, looks[-1] - outside)
        if bursts is not None:
            looks, drained = (), came  # nothing comes while a burst is sent
        return Trial(
            intended_load=load,
            intended_duration=duration,
            offered=sent,
            unsent=count - sent,
            forwarded=came,
            drained=drained,
            aside=Aside(
                refused=int(result["refused"]),
                stray=int(result["stray"]),
                returned=int(result["returned"]),
                twice=int(result["twice"]),
                left=left,
                numbered=int(result["numbered"]),
                overtaken=int(result["overtaken"]),
                frames=tuple(one for kept in result["frames"] if (one := sent_frames.carried(*kept)) is not None),
            ),
            sending_time=result["sending_ns"] / 1e9,
            under_way=looks,
            seen=Seen(latency=latency),
            occasion=Occasion(started=started),
        )

    def _bursts_of(self, load: float, frames: Frames) -> Bursts | None:
        """Bursts that the trial is made of; None if packets are sent when they are due."""
        counted = frames.counted != "taken" and not frames.probe_rate
        bursts = self._bursts if counted and self.engine == "packet" else None
        return bursts if bursts is not None and load >= bursts.least_load else None

    def _send_bursts(self, bursts: Bursts) -> None:
        """Send the trial's packets; end early where the second burst does not come back whole."""
        left, broken, missing = 1, 0, 0
        while left and broken < _BROKEN_BURSTS:
            bursts.stop()
            try:
                self._write(b"g")
                self._answer(10.0)
            finally:
                bursts.go_on()
            answer = self._answer(_LIMIT * self._quiet + 10.0)
            left = int(answer["left"])
            broken += answer["missing"] > missing
            missing = int(answer["missing"])
        if left:
            self._write(b"e")

    def sample(self, frames: Frames) -> bytes:
        if frames.chosen is not None:
            return frame_table(frames.chosen, self._paths, frames.size).sent(0)
        part = self._built_in(dataclasses.replace(frames, directions=1)).templates[0]
        return part.frame(part.first)

    def close(self) -> None:
        # It is idle between trials; in the middle of one it would only see the end of its input much later.
        self._worker.end(_FAREWELL)

    def _built_in(self, frames: Frames) -> BuiltInFrames:
        """Frames of the next trial by direction, with its tag."""
        if frames.mark is not None:
            tags = (MARKED_PORT,) * frames.directions
        else:
            tag = self._tag()
            tags = tuple(tag + _DIRECTION * direction for direction in range(frames.directions))
        parts = []
        for path, tag in zip(self._paths, tags, strict=False):
            destination = type(path.destination)(int(path.destination) >> 16 << 16 | self._cookie)
            own = dataclasses.replace(path, destination=destination)
            parts.append(template(frames, own, tag=tag, probe_tag=tag + 1))
        return BuiltInFrames(frames, tuple(parts), self._cookie)

    def _chosen(self, frames: Frames, chosen: ChosenTraffic) -> tuple[ChosenFrames, bytes]:
        """The next trial's frames, and the table of them where the worker has another one."""
        following = b""
        if self._table is None or self._tabled != (chosen, frames.size):
            self._table = frame_table(chosen, self._paths, frames.size)
            self._tabled = chosen, frames.size
            following = chosen_table(self._table)
        return ChosenFrames(self._table, self._chosen_cookie, self._tag()), following

    def _request(
        self, count: int, load: float, duration: float, frames: Frames, sent: SentFrames, table: int,
        bursts: Bursts | None,
    ) -> Request:  # fmt: skip
        """Request to the worker; ``table`` bytes of chosen frames follow."""
        probe_every = 0
        if frames.probe_rate:
            probe_every = max(2, round(load / frames.probe_rate))
            if frames.directions == 2 or frames.chosen is not None:
                probe_every |= 1  # an even number would leave one direction, or some frames, without probes
        return Request.of(
            sent.ways,
            **sent.asked(),
            count=count,
            period_q16=round(duration * 1e9 * 65536 / count),
            duration=max(1, round(duration * 1e9)),
            quiet=round(self._quiet * 1e9) if frames.mark is None else 0,  # else nothing comes back to wait for
            limit=round(_LIMIT * self._quiet * 1e9),
            live=int(self.engine == "xdp"),
            asleep=int(self._asleep),
            batch=min(_MAX_BATCH, max(1, math.ceil(load * _BATCH_SPAN))),
            directions=frames.directions,
            probe_every=probe_every,
            sample_every=max(1, count // _LOOKED_AT),
            returns=int(frames.counted == "returned"),
            taken=int(frames.counted == "taken"),
            ring=self._ring,
            burst=bursts.packets if bursts is not None else 0,
            table=table,
        )

    def _tag(self) -> int:
        """UDP port that marks the next trial's packets."""
        tag = next(self._tags, None)
        if tag is None:
            self._tags = iter(_TAGS)
            tag = next(self._tags)
        return tag

    def _send(self, request: Request, following: bytes) -> None:
        self._write(bytes(request) + following)

    def _write(self, what: bytes) -> None:
        try:
            self._worker.write(what)
        except LostProgramError as lost:
            raise GeneratorError(f"the traffic generator {lost}; run again") from lost

    def _answer(self, timeout: float) -> dict[str, Any]:
        try:
            answer = self._worker.answer(timeout)
        except LostProgramError as lost:
            raise GeneratorError(f"the traffic generator {lost}; run again") from lost
        if "error" in answer:
            raise GeneratorError(f"the traffic generator: {answer['error']}")
        return answer


def _choose(wanted: Engine, asleep: bool, has_xdp: bool, why_not: str) -> tuple[Literal["xdp", "packet"], str]:
    if wanted == "packet":
        return "packet", "asked for"
    if wanted == "auto" and asleep:
        return "packet", "it leaves its CPU to others between packets"
    if has_xdp:
        return "xdp", "asked for" if wanted == "xdp" else "the kernel has live frames"
    if wanted == "xdp":
        raise TestbedError(
            f"this kernel cannot run BPF programs on live frames ({why_not}; it came with Linux 5.18); "
            "use engine: packet or engine: auto in the testbed file"
        )
    return "packet", f"the kernel has no live frames ({why_not})"
