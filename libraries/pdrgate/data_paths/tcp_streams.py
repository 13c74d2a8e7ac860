"""TCP streams: what a scenario asks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdrgate.values.errors import UsageError

StreamDirection = Literal["receives", "sends"]
Buffers = Literal["fixed", "kernel", "socket"]
BUFFERS: tuple[Buffers, ...] = ("fixed", "kernel", "socket")
DIRECTIONS: tuple[StreamDirection, ...] = ("receives", "sends")
MOST_STREAMS = 128
"""Streams that iperf3 takes at most."""
MOST_OF_REQUEST = 16384
"""Largest request, bytes."""
LEAST_WINDOW, MOST_WINDOW = 16, 16384
"""Smallest and largest window, KiB."""
CONTROLS = (
    "cubic", "reno", "bbr", "dctcp", "bic", "cdg", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable",
    "vegas", "veno", "westwood", "yeah",
)  # fmt: skip
"""Linux's; which of them a kernel has, it says itself."""
_LONGEST_DELAY = 1.0


@dataclass(frozen=True, slots=True)
class TcpStreams:
    """Streams between the SUT and the station that it faces. Raises UsageError for what does not exist."""

    count: int = 1
    window: int = 1024
    """KiB that a receiver advertises to each stream, at most; of ``socket`` buffers, that both ends ask for."""
    congestion: str = "cubic"
    """The senders' congestion control; empty: the one that their kernel takes by itself."""
    direction: StreamDirection = "receives"
    """What the SUT does."""
    delay: float = 0.0
    """Seconds by which the path lengthens each round trip."""
    loss: float = 0.0
    """Part of the senders' packets that the path loses."""
    buffers: Buffers = "fixed"
    """Who says how much both ends hold: pdrgate, so that the window decides; the kernel, as it comes; or the programs,
    by SO_RCVBUF and SO_SNDBUF."""
    request: int = 0
    """Bytes of each request that the station makes, and of its answer; 0: bytes are moved as fast as it goes."""
    anew: bool = False
    """Whether each request has a connection of its own."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_STREAMS:
            raise UsageError(f"{self.count} TCP streams are out of range; use 1 to {MOST_STREAMS}")
        if not LEAST_WINDOW <= self.window <= MOST_WINDOW:
            raise UsageError(
                f"a window of {self.window} KiB is out of range; use {LEAST_WINDOW} to {MOST_WINDOW}, such as 64"
            )
        if self.congestion and self.congestion not in CONTROLS:
            raise UsageError(f"there is no congestion control {self.congestion!r}; there are {', '.join(CONTROLS)}")
        if self.buffers not in BUFFERS:
            raise UsageError(f"buffers cannot be {self.buffers!r}; they are {', '.join(BUFFERS)}")
        if self.direction not in DIRECTIONS:
            raise UsageError(f"the SUT cannot do {self.direction!r}; it {' or '.join(DIRECTIONS)}")
        if not 0 <= self.request <= MOST_OF_REQUEST:
            raise UsageError(
                f"requests of {self.request} bytes are out of range; use 1 to {MOST_OF_REQUEST}, such as 64"
            )
        if self.request and (self.count > 1 or self.sends):
            raise UsageError("requests are made by one stream to the SUT; leave out what is said of streams")
        if self.anew and not self.request:
            raise UsageError("connections anew are those of requests; say how many bytes a request has")
        if not 0 <= self.delay <= _LONGEST_DELAY:
            raise UsageError(f"a path delay of {self.delay:g} s is out of range; use 0 to 1 s, such as 10 ms")
        if not 0 <= self.loss < 1:
            raise UsageError(f"a path that loses {self.loss:.3g} of its packets makes no sense; use 0.1% or 1%")

    @property
    def sends(self) -> bool:
        """Whether the SUT is the sender."""
        return self.direction == "sends"

    def __str__(self) -> str:
        """``4 streams to the SUT with a window of 1 MiB by cubic, over a path of 10 ms``."""
        streams = f"{self.count} stream{'s' * (self.count > 1)} {'from' if self.sends else 'to'} the SUT"
        path = [f"{1e3 * self.delay:g} ms"] * bool(self.delay) + [f"{100 * self.loss:g} % loss"] * bool(self.loss)
        over = f", over a path of {' and '.join(path)}" if path else ""
        if self.request:
            where = "each on a connection of its own" if self.anew else "on one connection"
            return f"requests of {self.request} bytes to the SUT, {where}, with {self._held}{over}"
        return f"{streams} with {self._held} by {self.congestion or 'the congestion control of its kernel'}{over}"

    @property
    def _held(self) -> str:
        """What holds a stream back, in words."""
        how_much = size(self.window * 1024)
        return {
            "fixed": f"a window of {how_much}",
            "kernel": "buffers of the kernel's choice",
            "socket": f"socket buffers of {how_much}",
        }[self.buffers]


def size(count: int) -> str:
    """Bytes as people read them: ``64 KiB``, ``1.5 MiB``."""
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} bytes"
