"""Receivers at an end host: processes of ours that read UDP sockets there, and how they are asked.

They are a program of ours (`traffic/native/receiver.c`).
No existing tool reports what a PDR needs: how many packets had been delivered *when sending ended* and how many drained
later, each packet once, at any rate, and what each socket dropped meanwhile. iperf3 counts per interval of its own
control connection, which an end host at its limit starves. sockperf and netperf want a sender of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import msgspec

from pdrgate.data_paths.cpu_groups import CpuGroups
from pdrgate.hosts.host import Host
from pdrgate.hosts.piped_program import PipedProgram
from pdrgate.observers.reading import Place
from pdrgate.traffic import native
from pdrgate.traffic.delivery import Delivered
from pdrgate.traffic.frames import MARKED_PORT
from pdrgate.values.errors import SutError, TestbedError, UsageError

Call = Literal["recvmsg", "recvmmsg"]
CALLS: tuple[Call, ...] = ("recvmsg", "recvmmsg")
MOST_RECEIVERS = 8
_MOST_BACKGROUND = 64
_LARGEST_BUFFER = 1 << 20
"""KiB. The kernel doubles what it is asked for, into 32 bits with a sign."""
_QUIET, _LIMIT = 0.050, 2.0
"""Seconds without a packet that end a drain, and of draining at most."""
_NS = 1e9


@dataclass(frozen=True, slots=True)
class Receivers:
    """The programs that receive at the end host, and how. Raises UsageError for what does not exist."""

    count: int = 1
    """Processes; several share the port by SO_REUSEPORT, and the kernel gives each flow to one of them."""
    buffer: int = 2048
    """KiB that are asked for each socket's buffer. The kernel doubles them, and charges each packet more than its
    bytes."""
    call: Call = "recvmsg"
    """The system call: for one packet, or for as many as wait."""
    busy_poll: int = 0
    """Microseconds for which a call looks for packets itself before it sleeps (SO_BUSY_POLL); 0: it sleeps at once."""
    shares: tuple[int, ...] = ()
    """Percents of the CPU, one for each receiver: the weights of their cgroups. None: the scheduler decides."""
    background: int = 0
    """Further processes of the same priority that want the CPU while a trial lasts."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_RECEIVERS:
            raise UsageError(f"{self.count} receivers are out of range; use 1 to {MOST_RECEIVERS}")
        if not 4 <= self.buffer < _LARGEST_BUFFER:
            raise UsageError(f"socket buffers of {self.buffer} KiB make no sense; use 1024, 2048 or 4096")
        if self.call not in CALLS:
            raise UsageError(f"receivers cannot call {self.call!r}; there are {' and '.join(CALLS)}")
        if not 0 <= self.busy_poll <= 1_000_000:
            raise UsageError(f"busy polling for {self.busy_poll} us makes no sense; use 50, or 0 for none")
        if self.shares and (len(self.shares) != self.count or min(self.shares) < 1 or sum(self.shares) > 100):
            raise UsageError(
                f"CPU shares of {self.shares_text} % are none for {self.count} receivers; give each at least 1, and "
                "not more than 100 in all"
            )
        if not 0 <= self.background <= _MOST_BACKGROUND:
            raise UsageError(f"{self.background} processes beside are out of range; use 0 to {_MOST_BACKGROUND}")

    @property
    def shares_text(self) -> str:
        """Shares of the receivers as text, such as ``97/1/1/1``."""
        return "/".join(map(str, self.shares))

    def __str__(self) -> str:
        """``4 receivers by recvmmsg, socket buffers of 2 MiB, busy polling for 50 us``."""
        size = f"{self.buffer / 1024:g} MiB" if self.buffer >= 1024 else f"{self.buffer} KiB"
        more = f", busy polling for {self.busy_poll} us" if self.busy_poll else ""
        more += f", CPU shares of {self.shares_text} %" if self.shares else ""
        more += f", beside {self.background} busy process{'es' * (self.background > 1)}" if self.background else ""
        several = "s" * (self.count > 1)
        return f"{self.count} receiver{several} by {self.call}, {'' if several else 'a '}socket buffer{several} of " + (
            f"{size}{more}"
        )


class ReceiverProgram:
    """The receivers on a host, from `__init__` to `close`; an `Arrivals`.

    Args:
        cpus: that receivers get in turn; none: as the host's scheduler likes.

    Raises:
        TestbedError: they cannot be built, do not run there, or the kernel refuses a socket as it is asked for.
    """

    def __init__(self, host: Host, receivers: Receivers, family: Literal[4, 6], cpus: Collection[int] = ()) -> None:
        self._groups: CpuGroups | None = None
        self._program = PipedProgram(
            host, native.build().receiver, str(family), str(MARKED_PORT), str(receivers.count),
            str(receivers.buffer * 1024), receivers.call, str(receivers.busy_poll), str(receivers.background),
            ",".join(map(str, cpus)) or "-", what="the receivers",
        )  # fmt: skip
        try:
            if receivers.shares:
                self._groups = CpuGroups(host, self._program.greeting, receivers.shares)
        except BaseException:
            with contextlib.suppress(TestbedError):
                self.close()
            raise

    def begin(self, mark: int, count: int, duration: float) -> None:
        self._program.ask_at_once(f"begin {mark} {count} {round(duration * _NS)}")

    def end(self, sending_time: float) -> Delivered:
        answer = self._program.ask_at_once(
            f"end {round(sending_time * _NS)} {round(_QUIET * _NS)} {round(_LIMIT * _NS)}"
        )
        try:
            each = msgspec.convert(answer["receivers"], list[dict[str, int]])
            return Delivered(
                received=sum(one["received"] for one in each),
                by_look=msgspec.convert(answer["delivered"], tuple[int, ...]),
                stray=sum(one["stray"] for one in each),
                twice=sum(one["duplicates"] for one in each),
                counters={str(Place("receiver", str(number))): one for number, one in enumerate(each)},
            )
        except (KeyError, msgspec.ValidationError) as error:
            raise SutError(
                f"the receivers tell what is no count ({error}); is the SUT's kernel to be trusted?"
            ) from error

    def close(self) -> None:
        """End them; may be called twice. Raises TestbedError when the host cannot be asked."""
        self._program.close()
        groups, self._groups = self._groups, None
        if groups is not None:
            groups.close()
