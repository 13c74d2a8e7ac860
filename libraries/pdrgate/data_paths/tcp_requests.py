"""Small requests by TCP as a closed loop: a program at the SUT answers what one at the station asks.

They are a program of ours (`traffic/native/requests.c`). Its end at the station counts and takes the time, so that
nothing is the SUT's word.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import msgspec

from pdrgate.data_paths.contract import Station
from pdrgate.data_paths.iperf import Ends
from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.hosts.host import CommandError, Host, Running
from pdrgate.hosts.piped_program import sent
from pdrgate.record.transfer import Look, Senders, Transfer
from pdrgate.record.trial import Trial
from pdrgate.traffic import native
from pdrgate.values.errors import TestbedError

_PORT = 5202
_WHAT = "requests"
_GRACE = 20.0
"""Seconds that requests may take beyond their duration."""
_NS = 1e9
_OPEN, _ANEW = 1000, 300
"""Requests of a transfer, on one connection and on new ones: half a second of an emulated guest. As many each time, so
that what a transfer's beginning and end cost is divided by as much."""
_LONGEST = 4.0
"""Times the duration that they may take where a machine is busy."""
_ATTEMPTS, _PAUSE = 100, 0.02


class _Answered(msgspec.Struct):
    """What the station's end prints."""

    requests: int
    ns: int
    median: int
    tail: int


class TcpRequests:
    """A program at each end, from `__init__` to `close`; satisfies `ClosedLoop`.

    Args:
        host: the SUT.
        advertise: makes receivers advertise so many bytes, at most.

    Raises:
        TestbedError: it does not run there.
    """

    def __init__(
        self, host: Host, station: Station, ends: Ends, streams: TcpStreams, advertise: Callable[[int], None]
    ) -> None:
        self._station = station
        self._ends = ends
        self._streams = streams
        self._advertise = advertise
        self._host = host
        program = native.build().requests
        self._folders = {one: one.folder(_WHAT) for one in (station.host, host)}
        self._here = sent(station.host, program, self._folders[station.host], _WHAT)
        there = sent(host, program, self._folders[host], _WHAT)
        self._server: Running | None = host.start(there, "serve", ends.sut, str(_PORT), str(streams.request))

    def describe(self) -> dict[str, str]:
        return {"name": "pdrgate-requests", "engine": "tcp"}

    def transfer(self, window: int, duration: float, rate: float = 0.0) -> Trial:
        self._advertise(window)
        size, longest, anew = self._streams.request, _LONGEST * duration, self._streams.anew
        words = [
            self._here, "ask", self._ends.station, self._ends.sut, str(_PORT), str(size), str(_ANEW if anew else _OPEN),
            str(round(longest * _NS)), "anew" if anew else "open",
        ]  # fmt: skip
        if self._station.cpu is not None:
            words = ["taskset", "-c", str(self._station.cpu), *words]
        for left in reversed(range(_ATTEMPTS)):
            started = time.time()
            asked = self._station.host.run(*words, timeout=longest + _GRACE, check=False)
            if not asked.exit_code or not left or "refused" not in asked.stderr:
                break
            time.sleep(_PAUSE)  # nobody listens yet
        if asked.exit_code:
            raise CommandError(self._station.host.name, f"asking {self._host.name} for answers by TCP", asked)
        try:
            answer = msgspec.convert(json.loads(asked.stdout), _Answered)
        except (ValueError, msgspec.ValidationError) as error:
            raise TestbedError(
                f"the program of requests on {self._station.host.name} tells no counts: {error}"
            ) from error
        seconds, bytes_ = answer.ns / _NS, answer.requests * size
        look = Look(
            end=seconds, seconds=seconds, sent=bytes_, retransmitted=0, rtt=answer.median / _NS,
            rtt_deviation=max(0, answer.tail - answer.median) / _NS, congestion_window=0,
        )  # fmt: skip
        moved = Transfer(
            window=window, streams=1, congestion=self._streams.congestion, intended_rate=rate,
            delivered=bytes_, seconds=seconds, requests=answer.requests, senders=Senders(sent=bytes_, looks=(look,)),
        )  # fmt: skip
        return Trial.of_transfer(moved, duration, started)

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()
        while self._folders:
            host, folder = self._folders.popitem()
            host.run("rm", "-rf", folder)
