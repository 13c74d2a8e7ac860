"""TRex in stateless mode as a generator, by a worker process that holds the connection across trials."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.trial import LOOKS, CarriedFrame, Trial
from pdrgate.traffic.chosen.capture_file import captured_packets
from pdrgate.traffic.chosen.chosen_traffic import ChosenTraffic
from pdrgate.traffic.chosen.frame_table import FrameTable, frame_table
from pdrgate.traffic.frames import Frames, Path
from pdrgate.traffic.generator import packets_of_trial
from pdrgate.traffic.trex import outcome
from pdrgate.traffic.trex.captured_frames import carried
from pdrgate.traffic.trex.process import RefusedError, Worker, WorkerLostError
from pdrgate.traffic.trex.readings import SHORTEST_TO_LOOK
from pdrgate.traffic.trex.trex_config import TRexConfig
from pdrgate.traffic.trex.trex_streams import MOST_FRAME_STREAMS, Stream, streams, uncounted_streams
from pdrgate.values.errors import GeneratorError, TestbedError, UsageError

OPENING = 45.0
"""Seconds for the worker to load its client, which takes up to 5, and to connect."""
ANSWER = 15.0
"""Seconds beyond a trial's own; the clients wait 10 for a server before they give up."""

_STRETCH = 1.1
_PATIENCE = 0.1
"""A port may send for 1.1 times the trial's duration and this many seconds more; then it is stopped."""
_QUIET = 0.020
_DRAIN = 1.0
_ATTEMPTS = 2
_BURST, _BURST_TIME, _BURST_DRAIN = 64, 0.02, 0.1
"""Packets that are taken whole, the seconds in which they are sent, and those in which they come back."""
_CAPTURED = 256
"""Packets that a server captures at most: ours, and those of neighbours."""
_HOPELESS = frozenset({"client", "unreachable", "version", "owned", "ports"})
"""Reasons of a worker that another attempt would meet again."""


class TRexGenerator:
    """A TRex server as a generator; satisfies ``Generator``.

    Args:
        config: the server.
        paths: one ``Path`` per direction, the first being the forward one; ``port`` is a TRex port id as text.

    Raises:
        UsageError: a path's port is no TRex port of the configuration.
        DataError: a capture file is of no use.
        TestbedError: the server is not there, does not fit the client, or does not give us the ports.
    """

    def __init__(self, config: TRexConfig, paths: Sequence[Path]) -> None:
        known = {str(port) for port in config.ports}
        for path in paths:
            if path.port not in known:
                raise UsageError(
                    f"{path.port!r} is not one of the TRex ports {', '.join(sorted(known))} of the testbed"
                )
        self._config = config
        self._paths = tuple(paths)
        self._captures = tuple(captured_packets(path, MOST_FRAME_STREAMS) for path in config.pcap)
        self._session = secrets.randbits(31)
        self._turn = 0
        self._cold = True
        self._closed = False
        self._about: dict[str, str] = {}
        self._looked: set[Frames] = set()
        self._unseen = ""
        self._made: tuple[ChosenTraffic, int, FrameTable] | None = None
        self._worker: Worker | None = None
        try:
            self._open()
        except GeneratorError as error:
            self.close()
            raise TestbedError(self._explained(error)) from error
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int | None:
        """Process id of the worker's supervisor; None while there is no worker."""
        return self._worker.pid if self._worker else None

    def describe(self) -> dict[str, str]:
        config = self._config
        # Versions that only looked after sending counted a hidden overload as held: their results are compared with
        # none.
        about = {"name": "trex", "engine": "stl", **self._about, "looks": "while sending"}
        about["ports"] = ", ".join(map(str, config.ports))
        if config.core_mask is not None:
            about["core mask"] = f"{config.core_mask:#x}"
        if self._captures:
            digests = [hashlib.sha256(b"".join(packets)).hexdigest()[:12] for packets in self._captures]
            about["captures"] = ", ".join(
                f"{path.name} ({digest})" for path, digest in zip(config.pcap, digests, strict=True)
            )
        if self._unseen:
            about["frames"] = f"not looked at ({self._unseen})"
        return about

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        count = packets_of_trial(load, duration)
        if self._closed:
            raise GeneratorError("the connection to TRex was closed; open another generator for further trials")
        self._streams(count, duration, frames)  # an invalid request is refused before anything is sent
        whole = self._whole(frames)
        reasons: list[str] = []
        for _ in range(_ATTEMPTS):
            try:
                made = self._attempt(load, count, duration, frames)
                return _again(dataclasses.replace(made, aside=dataclasses.replace(made.aside, frames=whole)), reasons)
            except GeneratorError as error:
                reasons.append(self._explained(error))
                self._end_worker(kill=isinstance(error, WorkerLostError))
                if isinstance(error, RefusedError) and error.kind in _HOPELESS:
                    break
            except BaseException:
                self._end_worker(kill=False)  # interrupted: its answer, still to come, would be the next trial's
                raise
        again = "" if len(reasons) < 2 else " and again" if reasons[0] == reasons[1] else f"; before: {reasons[0]}"
        raise GeneratorError(f"{reasons[-1]}{again}")

    def close(self) -> None:
        self._closed = True
        self._end_worker(kill=False)

    def _whole(self, frames: Frames) -> tuple[CarriedFrame, ...]:
        """Some frames as they come back, of a burst before the first trial of these frames; none before later ones.

        A server that cannot do it is no worse a generator, and says so in `describe`.
        """
        plain = dataclasses.replace(frames, probe_rate=0.0)
        if plain in self._looked:
            return ()
        self._looked.add(plain)
        burst = uncounted_streams(
            plain, self._paths, _BURST, _BURST_TIME, captures=self._captures, table=self._table(frames)
        )
        message = {
            "do": "look",
            "streams": [_message(stream) for stream in burst],
            "frames": _CAPTURED,
            "duration": _BURST_TIME,
            "drain": _BURST_DRAIN,
        }
        try:
            captured = (self._worker or self._open()).ask(message, _BURST_TIME + _BURST_DRAIN + ANSWER)
        except GeneratorError as error:  # if it means more, the trial meets it
            self._unseen = str(error)
            self._end_worker(kill=isinstance(error, WorkerLostError))
            return ()
        except BaseException:
            self._end_worker(kill=False)
            raise
        return carried(burst, [(port, base64.b64decode(packet)) for port, packet in captured])

    def _attempt(self, load: float, count: int, duration: float, frames: Frames) -> Trial:
        worker = self._worker or self._open()
        if self._cold and self._config.warm_up:
            seconds = self._config.warm_up
            self._send(worker, self._streams(max(1, round(load * seconds)), seconds, frames), seconds)
        self._cold = False
        sent = self._streams(count, duration, frames)
        seen = self._send(worker, sent, duration)
        return outcome.trial(load, duration, sent, self._config.ports, seen, frames.counted)

    def _streams(self, count: int, duration: float, frames: Frames) -> tuple[Stream, ...]:
        self._turn += 1
        table = self._table(frames)
        return streams(frames, self._paths, count, duration, turn=self._turn, captures=self._captures, table=table)

    def _table(self, frames: Frames) -> FrameTable | None:
        """The chosen frames, made once; None if none are chosen."""
        if frames.chosen is None:
            return None
        if self._made is None or self._made[:2] != (frames.chosen, frames.size):
            self._made = frames.chosen, frames.size, frame_table(frames.chosen, self._paths, frames.size)
        return self._made[2]

    def _send(self, worker: Worker, sent: Sequence[Stream], duration: float) -> outcome.WorkerObservation:
        limit = duration * _STRETCH + _PATIENCE
        message = {
            "do": "trial",
            "streams": [_message(stream) for stream in sent],
            "duration": duration,
            "limit": limit,
            "looks": LOOKS if duration >= SHORTEST_TO_LOOK else 0,
            "quiet": _QUIET,
            "drain": _DRAIN,
        }
        return outcome.WorkerObservation.from_message(worker.ask(message, limit + _DRAIN + ANSWER))

    def _open(self) -> Worker:
        config = self._config
        worker = Worker(config.interpreter)
        self._worker = worker
        self._cold = True
        try:
            self._about = worker.ask(
                {
                    "do": "open",
                    "server": config.server,
                    "sync_port": config.sync_port,
                    "async_port": config.async_port,
                    "client": None if config.client is None else str(config.client),
                    "username": config.username,
                    "session": self._session,
                    "ports": list(config.ports),
                    "force": config.force,
                    "core_mask": config.core_mask,
                },
                OPENING,
            )
        except BaseException as error:
            self._end_worker(kill=not isinstance(error, RefusedError))
            raise
        return worker

    def _explained(self, error: GeneratorError) -> str:
        """Message of an error: what went wrong, where, and what to do."""
        where = self._config.address
        if isinstance(error, WorkerLostError):
            return f"TRex at {where}: {error}; see whether the server still runs"
        if isinstance(error, outcome.UntrustedCountersError):
            return f"TRex at {where} counts what cannot be: {error}; restart the server"
        match error.kind if isinstance(error, RefusedError) else None:
            case "unreachable":
                return f"no TRex server at {where}: {error}; start it there: ./t-rex-64 -i"
            case "owned":
                return f"TRex at {where}: {error}; have them released, or set force: true"
            case _:
                return f"TRex at {where}: {error}"

    def _end_worker(self, *, kill: bool) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if kill:
                worker.kill()
            else:
                worker.close()


def _again(trial: Trial, reasons: Sequence[str]) -> Trial:
    """The trial, disturbed where it was made once more: the server, or the way to it, is not what it was before."""
    if not reasons:
        return trial
    cause = Cause(CauseKind.GENERATOR_LOST, 1.0, f"the generator was lost, and the trial made again ({reasons[-1]})")
    seen = dataclasses.replace(trial.seen, disturbed=(*trial.seen.disturbed, cause))
    return dataclasses.replace(trial, seen=seen)


def _message(stream: Stream) -> dict[str, Any]:
    return {**dataclasses.asdict(stream), "packet": base64.b64encode(stream.packet).decode()}
