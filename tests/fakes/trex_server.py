"""A TRex server for tests: its dialects over real ZMQ sockets, its traffic through a simulated SUT. No packet is sent.

Two dialects: that of API 4.1, which trex-stl-lib of PyPI speaks, and that of API 5.1, the client of TRex v3. Port 2n is
wired to port 2n+1 by the SUT. The counts of a port's run come from one call of ``SimulatedSut.measure``; they progress
with the real clock, as those of a server do. It can misbehave: see ``Faults``.

    python tests/fakes/trex_server.py --api 4.1 --saturation 1e6     # until Ctrl-C, for a testbed file
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import random
import struct
import sys
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import zmq

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libraries"))

from simulated_sut import Ceiling, IdealCurve, SimulatedSut

from pdrgate.record.trial import Trial

Api = Literal["4.1", "5.1"]
VERSIONS: dict[Api, tuple[str, tuple[int, int]]] = {"4.1": ("v2.86", (4, 8)), "5.1": ("v3.08", (5, 1))}
"""What the server of a dialect says it is. Within a major version, it understands clients of lower minor ones."""
IDLE, STREAMS, TX = "IDLE", "STREAMS", "TX"
_ZIP_MAGIC, _ZIP_FROM = 0xABE85CEA, 256
_PUBLISH_EVERY = 0.5
FLIGHT = 0.001
"""Seconds that a packet is under way unless a test says otherwise."""
_STOPPED, _JOB_DONE, _ACQUIRED, _RELEASED, _PROFILE_DONE = 1, 4, 5, 6, 14


class Sut(Protocol):
    def measure(self, load: float, duration: float) -> Trial: ...


@dataclass
class Faults:
    """What the server does wrong from now on."""

    silent: bool = False
    """Neither answers nor publishes."""
    late: float = 0.0
    """Seconds before each answer."""
    wrong: Callable[[str, Any], Any] = lambda method, result: result
    """Changes results, by method."""
    surplus: int = 0
    """Packets that come back twice, per run."""
    held_back: float = 0.0
    """Seconds by which the counters of sent and received packets are behind while traffic runs."""
    apart: float = 0.0
    """Seconds that lie, at most and by chance, between the counters of sent and of received packets in one answer."""
    begins_late: float = 0.0
    """Seconds that a run's packets are due before the first of them is sent; these are sent at once then."""
    noise: int = 0
    """Packets of neighbours that each port receives per run."""
    stands_still: bool = False
    """As a real server's do, the flow statistics of a port that is stopped; what the SUT holds comes back then, too."""
    deaf: bool = False
    """The flow statistics see nothing of what ports receive, as of cards that do not count flows."""
    old: bool = False
    """Not wrong, but before v2.42: counters of ports and server come by the publisher only."""


@dataclass
class Run:
    """What a port sends, from start to end."""

    started: float
    seconds: float
    sent: dict[int, int]
    returned: dict[int, int]
    probes: frozenset[int]
    queue: float = 0.0
    """Part of what comes back that does so only after the sending time, at the rate of all others."""
    noise: int = 0
    late: float = 0.0
    """Seconds that the first packet is due before it is sent."""
    stopped: float | None = None
    drains: bool = False
    """What the SUT holds when the port is stopped comes back at the rate of all else, else at once."""

    def progress(self, now: float) -> float:
        """Part of the packets that was sent by now."""
        now = now if self.stopped is None else min(now, self.stopped)
        if now < self.started + self.late:
            return 0.0
        return min(1.0, max(0.0, (now - self.started) / self.seconds))

    def answered(self, now: float) -> float:
        """Part of what comes back that has by now, its flight apart."""
        if not self.queue or (self.stopped is not None and not self.drains):
            return self.progress(now)
        answered = max(0.0, (now - self.started - self.late) / self.seconds * (1 - self.queue))
        return min(1.0 if self.stopped is None else self.progress(now), answered)

    def read_flows(self, now: float) -> float:
        """The moment that flow statistics are of."""
        return min(now, self.stopped) if self.stopped is not None and self.drains else now

    def over(self, now: float) -> bool:
        return self.stopped is not None or self.progress(now) >= 1


@dataclass
class Port:
    number: int
    owner: str = ""
    session: int = 0
    handler: str = ""
    state: str = IDLE
    streams: dict[int, dict[str, Any]] = field(default_factory=dict)
    run: Run | None = None
    service: bool = False
    sent_before: int = 0
    received_before: int = 0


@dataclass
class Captured:
    """What is captured of what some ports receive."""

    ports: list[int]
    limit: int
    packets: list[tuple[int, bytes]] = field(default_factory=list)


class RpcError(Exception):
    def __init__(self, text: str, code: int = -32000) -> None:
        super().__init__(text)
        self.code = code


class TRexServer:
    """The server; use it as a context manager.

    ``seen`` holds the stream lists of all runs that are counted, for tests to look at; ``makes`` is what the SUT makes
    of a frame that was sent from a port: that, and the port that it comes back to.
    """

    def __init__(self, sut: Sut, *, api: Api = "4.1", ports: int = 2) -> None:
        self.sut = sut
        self.flight = FLIGHT
        self.api: Api = api
        self.faults = Faults()
        self.seen: list[list[dict[str, Any]]] = []
        self.calls: list[str] = []
        self.ports = [Port(number) for number in range(ports)]
        self.started = threading.Event()
        """Set when a port has begun to send."""
        self.makes: Callable[[bytes, int], tuple[bytes, int]] = lambda frame, port: (frame, port ^ 1)
        self.refused: set[str] = set()
        """Methods that it does not know."""
        self._captures: dict[int, Captured] = {}
        self._random = random.Random(1)
        self._queue_full = 0
        self._cpu = 0.0
        self._groups: set[int] = set()
        self._events: dict[int, list[dict[str, Any]]] = {}
        self._sequence: dict[int, int] = defaultdict(int)
        self._lock = threading.RLock()
        self._end = threading.Event()
        self._context = zmq.Context()
        self._replies = self._context.socket(zmq.REP)
        self.sync_port = self._replies.bind_to_random_port("tcp://127.0.0.1")
        self._publisher = self._context.socket(zmq.PUB)
        self.async_port = self._publisher.bind_to_random_port("tcp://127.0.0.1")
        self._handle = f"h{api}"
        self._threads = [threading.Thread(target=self._serve), threading.Thread(target=self._tick)]

    def __enter__(self) -> TRexServer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        """Gone, connections and all."""
        if self._end.is_set():
            return
        self._end.set()
        for thread in self._threads:
            thread.join()
        self._replies.close(linger=0)
        self._publisher.close(linger=0)
        self._context.term()

    def take(self, port: int, owner: str, session: int = 1) -> None:
        """Another user acquires a port, by force."""
        with self._lock:
            self._acquire(self.ports[port], {"user": owner, "session_id": session, "force": True})

    # ---- sockets

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._replies, zmq.POLLIN)
        while not self._end.is_set():
            if not poller.poll(20):
                continue
            raw = self._replies.recv()
            if self.faults.late:
                time.sleep(self.faults.late)
            while self.faults.silent and not self._end.is_set():
                time.sleep(0.01)
            if self._end.is_set():
                return
            request = json.loads(_unzipped(raw))
            with self._lock:
                answer = [self._answer(one) for one in request] if isinstance(request, list) else self._answer(request)
            self._replies.send(_zipped(json.dumps(answer).encode()))

    def _tick(self) -> None:
        published = 0.0
        while not self._end.wait(0.005):
            with self._lock:
                self._finish_runs()
                if time.monotonic() - published > _PUBLISH_EVERY:
                    published = time.monotonic()
                    self._publish_statistics()

    def _send(self, message: bytes) -> None:
        if not self.faults.silent:
            self._publisher.send(_zipped(message))

    def _publish_statistics(self, *, baseline: bool = False) -> None:
        if self.api == "5.1":
            self._send(b"{}")
            return
        data = dict(self._global_statistics())
        for port in self.ports:
            data |= {f"{name}-{port.number}": value for name, value in self._port_statistics(port).items()}
        self._send(json.dumps({"name": "trex-global", "type": 0, "baseline": baseline, "data": data}).encode())

    def _event(self, kind: int, data: dict[str, Any]) -> None:
        event = {"name": "trex-event", "type": kind, "data": data}
        if self.api == "4.1":
            self._send(json.dumps(event).encode())
            return
        for session, queue in self._events.items():
            queue.append(event | {"seq": self._sequence[session]})
            self._sequence[session] += 1
        self._send(b"{}")

    # ---- requests

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        head = {"jsonrpc": "2.0", "id": request["id"]}
        method, parameters = request["method"], request.get("params") or {}
        self.calls.append(method)
        try:
            result = self.faults.wrong(method, self._handler(method, parameters)(parameters))
        except RpcError as error:
            texts = {"message": "Failed To Execute", "specific_err": str(error)}
            return head | {"error": {"code": error.code, **texts}}
        return head | {"result": result}

    def _handler(self, method: str, parameters: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
        handler: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_do_{method}", None)
        if handler is None or method in self.refused or (method, self.api) == ("get_async_events", "4.1"):
            raise RpcError(f"Method not supported: {method}", -32601)
        open_to_all = method in ("api_sync", "api_sync_v2", "get_version", "ping")
        if not open_to_all and parameters.get("api_h") != self._handle:
            raise RpcError("API verification failed - API handler provided mismatch: 'api_h'")
        return handler

    def _verified(self, name: str, major: int, minor: int) -> str:
        _, own = VERSIONS[self.api]
        if name != "STL":
            raise RpcError(
                f"RPC configuration mismatch - server RPC configuration: 'STL', client RPC configuration: '{name}'"
            )
        if major < own[0]:
            why = "RPC version mismatch: a newer client version is required"
        elif (major, minor) > own:
            why = "Version mismatch: your client version is too new to be supported by the server"
        else:
            return self._handle
        raise RpcError(f"{why}\n(API type 'STL': - server: '{own[0]}.{own[1]}', client: '{major}.{minor}')")

    def _do_api_sync(self, parameters: dict[str, Any]) -> Any:
        (wanted,) = parameters["api_vers"]
        handle = self._verified("STL", wanted["major"], wanted["minor"])
        return {"api_vers": [{"type": wanted["type"], "api_h": handle}]}

    def _do_api_sync_v2(self, parameters: dict[str, Any]) -> Any:
        return {"api_h": self._verified(parameters["name"], parameters["major"], parameters["minor"])}

    def _do_get_version(self, parameters: dict[str, Any]) -> Any:
        return {
            "version": VERSIONS[self.api][0], "build_date": "", "build_time": "", "built_by": "tests", "mode": "STL",
        }  # fmt: skip

    def _do_ping(self, parameters: dict[str, Any]) -> Any:
        return {"ts": time.monotonic()}

    def _do_get_supported_cmds(self, parameters: dict[str, Any]) -> Any:
        commands = [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]
        lacks = {"get_profile_list"} if self.api == "4.1" else set()
        return [name for name in commands if name not in lacks | ({"get_global_stats"} if self.faults.old else set())]

    def _do_get_profile_list(self, parameters: dict[str, Any]) -> Any:
        return ["_"]

    def _do_get_system_info(self, parameters: dict[str, Any]) -> Any:
        ports = [
            {
                "index": port.number, "driver": "net_simulated", "pci_addr": "", "numa": 0, "description": "simulated",
                "hw_mac": f"02:00:00:00:00:{port.number:02x}", "is_virtual": True, "is_fc_supported": False,
                "is_led_supported": False, "is_link_supported": False, "is_prom_supported": True,
                "supp_speeds": [], "speed": 10, "rx": {"caps": ["flow_stats", "latency"], "counters": 127},
                "cores": [0],
            }
            for port in self.ports
        ]  # fmt: skip
        return {
            "hostname": "simulated", "uptime": "0", "dp_core_count": 1, "dp_core_count_per_port": 1,
            "core_type": "simulated", "is_multiqueue_mode": False, "advanced_per_stream_stats": False,
            "port_count": len(ports), "ports": ports,
        }  # fmt: skip

    def _do_get_port_status(self, parameters: dict[str, Any]) -> Any:
        self._finish_runs()
        port = self.ports[parameters["port_id"]]
        mac = f"02:00:00:00:00:{port.number:02x}"
        return {
            "owner": port.owner, "state": port.state, "service": port.service, "service_filtered": False,
            "state_profile": {"_": port.state} if port.streams else {}, "profile_count": 1,
            "max_stream_id": max(port.streams, default=0),
            "attr": {
                "speed": 10.0, "link": {"up": True}, "fc": {"mode": 0}, "multicast": {"enabled": False},
                "promiscuous": {"enabled": False}, "rx_filter_mode": "hw", "vlan": {"tags": []},
                "layer_cfg": {
                    "ether": {"dst": "", "src": mac, "state": "unconfigured"},
                    "ipv4": {"dst": "", "src": "", "state": "none"}, "ipv6": {"enabled": False, "src": "", "dst": ""},
                },
            },
            "rx_info": {"queue": {"is_active": False}, "stack": {"is_active": False}},
        }  # fmt: skip

    def _do_publish_now(self, parameters: dict[str, Any]) -> Any:
        self._publish_statistics(baseline=parameters["baseline"])
        if self.api == "4.1":
            barrier = {"name": "trex-barrier", "type": parameters["key"], "data": {}}
            self._send(json.dumps(barrier).encode())
        return {}

    def _do_get_async_events(self, parameters: dict[str, Any]) -> Any:
        session = parameters["session_id"]
        events, self._events[session] = self._events.get(session, []), []
        return {"data": events}

    def _do_get_port_xstats_names(self, parameters: dict[str, Any]) -> Any:
        return {"xstats_names": []}

    def _do_get_active_pgids(self, parameters: dict[str, Any]) -> Any:
        return {"ids": {"flow_stats": sorted(self._groups), "latency": []}}

    def _do_get_tpg_status(self, parameters: dict[str, Any]) -> Any:
        return {"enabled": False}

    def _do_get_global_stats(self, parameters: dict[str, Any]) -> Any:
        return self._global_statistics()

    def _do_get_port_stats(self, parameters: dict[str, Any]) -> Any:
        statistics = self._port_statistics(self.ports[parameters["port_id"]])
        return {"total_tx_pkts": statistics["opackets"]} if self.faults.old else statistics

    def _do_acquire(self, parameters: dict[str, Any]) -> Any:
        return self._acquire(self.ports[parameters["port_id"]], parameters)

    def _acquire(self, port: Port, parameters: dict[str, Any]) -> str:
        user, session = parameters["user"], parameters["session_id"]
        if port.owner and not parameters["force"]:
            if port.owner != user:
                raise RpcError(f"port is already taken by '{port.owner}'")
            if port.session != session:
                raise RpcError(f"port is already owned by another session of '{user}'")
        forced = bool(port.owner) and bool(parameters["force"])
        port.owner, port.session, port.handler = user, session, f"p{port.number}-{session}-{time.monotonic_ns()}"
        self._events.setdefault(session, [])
        who = {"port_id": port.number, "who": user, "session_id": session, "force": forced}
        self._event(_ACQUIRED, who)
        return port.handler

    def _do_release(self, parameters: dict[str, Any]) -> Any:
        port = self._owned(parameters)
        who = {"port_id": port.number, "who": port.owner, "session_id": port.session}
        port.owner, port.session, port.handler = "", 0, ""
        self._event(_RELEASED, who)
        return {}

    def _do_get_all_streams(self, parameters: dict[str, Any]) -> Any:
        port = self.ports[parameters["port_id"]]
        if self.api == "5.1":
            return {"profiles": {"_": {str(key): stream for key, stream in port.streams.items()}}}
        return {"streams": {str(key): stream for key, stream in port.streams.items()}}

    def _do_add_stream(self, parameters: dict[str, Any]) -> Any:
        port = self._owned(parameters)
        stream = parameters["stream"]
        statistics = stream["flow_stats"]
        if statistics["enabled"]:
            self._groups.add(statistics["stream_id"])
            if statistics["rule_type"] == "latency" and len(base64.b64decode(stream["packet"]["binary"])) < 58:
                raise RpcError("Need at least 16 payload bytes for payload rules")
        port.streams[parameters["stream_id"]] = stream
        port.state = STREAMS
        return {}

    def _do_remove_all_streams(self, parameters: dict[str, Any]) -> Any:
        port = self._owned(parameters)
        if port.state == TX:
            raise RpcError("Port is active")
        self._settle(port)
        self._groups -= {stream["flow_stats"].get("stream_id") for stream in port.streams.values()}
        port.streams.clear()
        port.state = IDLE
        return {}

    def _do_remove_rx_filters(self, parameters: dict[str, Any]) -> Any:
        self._owned(parameters)
        return {}

    def _do_start_traffic(self, parameters: dict[str, Any]) -> Any:
        port = self._owned(parameters)
        if port.state != STREAMS:
            raise RpcError("Port does not have any active streams")
        self._settle(port)
        streams = list(port.streams.values())
        if any(stream["mode"]["type"] != "single_burst" for stream in streams):
            raise RpcError("only single bursts are simulated")
        counts = [stream["mode"]["total_pkts"] for stream in streams]
        rate = sum(stream["mode"]["rate"]["value"] for stream in streams)
        trial = self.sut.measure(rate, sum(counts) / rate)
        returned = _shared(trial.forwarded + self.faults.surplus, counts)
        port.run = Run(
            started=time.monotonic(),
            seconds=max(trial.sending_time, 1e-6),
            sent=_by_group(streams, _shared(trial.offered, counts)),
            returned=_by_group(streams, returned),
            probes=frozenset(
                stream["flow_stats"]["stream_id"]
                for stream in streams
                if stream["flow_stats"].get("rule_type") == "latency"
            ),
            queue=trial.drained / trial.forwarded if trial.forwarded else 0.0,
            noise=self.faults.noise,
            late=self.faults.begins_late,
            drains=self.faults.stands_still,
        )
        late = trial.sending_time > trial.intended_duration * 1.001 or trial.unsent
        self._cpu = 100.0 if late else 10.0
        self._queue_full += 1000 if late else 0
        port.state = TX
        if self._captures:
            self._capture(port.number, streams)
        else:
            self.seen.append(streams)
            self.started.set()
        return {"multiplier": 1.0, "ts": port.run.started}

    def _do_stop_traffic(self, parameters: dict[str, Any]) -> Any:
        port = self._owned(parameters)
        self._finish_runs()
        if port.run and port.state == TX:
            port.run.stopped = time.monotonic()
            port.state = STREAMS
            self._event(_STOPPED, {"port_id": port.number})
        return {}

    def _do_service(self, parameters: dict[str, Any]) -> Any:
        self._owned(parameters).service = parameters["enabled"]
        return {}

    def _do_capture(self, parameters: dict[str, Any]) -> Any:
        match parameters["command"]:
            case "start":
                if not all(self.ports[number].service for number in parameters["rx"]):
                    raise RpcError("start_capture is available only under service mode")
                number = len(self.calls)
                self._captures[number] = Captured(parameters["rx"], parameters["limit"])
                return {"capture_id": number, "start_ts": 0.0}
            case "stop":
                return {"pkt_count": len(self._captures[parameters["capture_id"]].packets)}
            case "fetch":
                held = self._captures[parameters["capture_id"]].packets
                part, held[:] = held[: parameters["pkt_limit"]], held[parameters["pkt_limit"] :]
                packets = [{"port": port, "binary": base64.b64encode(frame).decode()} for port, frame in part]
                return {"pending": len(held), "start_ts": 0.0, "pkts": packets}
            case _:
                self._captures.pop(parameters["capture_id"])
                return {}

    def _capture(self, port: int, streams: list[dict[str, Any]]) -> None:
        """What the SUT makes of a run's frames, behind what a neighbour says of itself."""
        frames = [(bytes(6) + bytes.fromhex("0200000000ff0806") + bytes(range(46)), port ^ 1)]
        for stream in streams:
            frames += [self.makes(packet, port) for packet in packets(stream, stream["mode"]["total_pkts"])]
        for one in self._captures.values():
            room = one.limit - len(one.packets)
            one.packets += [(to, frame) for frame, to in frames if to in one.ports][:room]

    # ---- traffic and counters

    def _owned(self, parameters: dict[str, Any]) -> Port:
        port = self.ports[parameters["port_id"]]
        if not port.handler or parameters.get("handler") != port.handler:
            raise RpcError(f"Port is not owned by this client, it is owned by '{port.owner}'")
        return port

    def _finish_runs(self) -> None:
        for port in self.ports:
            if port.state == TX and port.run and port.run.over(time.monotonic()):
                port.state = STREAMS
                if self.api == "5.1":
                    self._event(_PROFILE_DONE, {"port_id": port.number, "profile_id": "_"})
                self._event(_JOB_DONE, {"port_id": port.number})

    def _settle(self, port: Port) -> None:
        """Add what a port's last run counts to its totals, for good."""
        if port.run:
            now = time.monotonic()
            port.sent_before += self._sent(port, now)
            other = self.ports[port.number ^ 1]
            other.received_before += self._returned(port, now) + port.run.noise
            port.run = None

    def _sent(self, port: Port, now: float) -> int:
        run = port.run
        return sum(int(count * run.progress(self._read(run, now))) for count in run.sent.values()) if run else 0

    def _returned(self, port: Port, now: float) -> int:
        run = port.run
        now = self._read(run, now - self.flight) if run else now
        return sum(int(count * run.answered(now)) for count in run.returned.values()) if run else 0

    def _read(self, run: Run, now: float) -> float:
        """The moment that the counters are of."""
        return now if run.over(now) else now - self.faults.held_back

    def _port_statistics(self, port: Port) -> dict[str, Any]:
        now = time.monotonic()
        other = self.ports[port.number ^ 1]
        noise = other.run.noise if other.run else 0
        sent = port.sent_before + self._sent(port, now)
        received = port.received_before + self._returned(other, now) + noise
        return {
            "opackets": sent, "obytes": 64 * sent, "ipackets": received, "ibytes": 64 * received,
            "ierrors": 0, "oerrors": 0, "m_total_tx_bps": 0.0, "m_total_tx_pps": 0.0, "m_total_rx_bps": 0.0,
            "m_total_rx_pps": 0.0, "m_cpu_util": self._cpu,
        }  # fmt: skip

    def _global_statistics(self) -> dict[str, Any]:
        return {
            "m_cpu_util": self._cpu, "m_cpu_util_raw": self._cpu, "m_bw_per_core": 0.0, "m_rx_cpu_util": 0.0,
            "m_rx_core_pps": 0.0, "m_platform_factor": 1.0, "m_tx_bps": 0.0, "m_rx_bps": 0.0, "m_tx_pps": 0.0,
            "m_rx_pps": 0.0, "m_tx_cps": 0.0, "m_rx_drop_bps": 0.0, "m_total_tx_pkts": 0, "m_total_rx_pkts": 0,
            "m_total_queue_full": self._queue_full, "m_total_queue_drop": 0,
        }  # fmt: skip

    def _do_get_pgid_stats(self, parameters: dict[str, Any]) -> Any:
        now = time.monotonic()
        late = self._random.uniform(0, self.faults.apart)
        flows: dict[str, Any] = {}
        latencies: dict[str, Any] = {"g": {"bad_hdr": 0, "old_flow": 0}}
        for group in parameters["pgids"] or sorted(self._groups):
            if group not in self._groups:
                continue
            sent = {str(port.number): 0 for port in self.ports}
            returned = dict(sent)
            for port in self.ports:
                run = port.run
                if run and group in run.sent:
                    sent[str(port.number)] = int(run.sent[group] * run.progress(self._read(run, now)))
                    seen = run.read_flows(self._read(run, now + late - self.flight))
                    back = 0 if self.faults.deaf else int(run.returned[group] * run.answered(seen))
                    returned[str(port.number ^ 1)] = back
                    if group in run.probes:
                        latencies[str(group)] = {"er": {}, "lat": _latency(back)}
            flows[str(group)] = {"tp": sent, "rp": returned, "tb": {}, "rb": {}} | {
                name: dict.fromkeys(sent, 0.0) for name in ("tbs", "rbs", "tps", "rps")
            }
        return {"flow_stats": flows, "latency": latencies, "ver_id": dict.fromkeys(flows, 1)}


def _latency(probes: int) -> dict[str, Any]:
    """Half of the probes below 10 us, the rest at 100 to 200 us, one of them at 345 us.

    As a server does within the first second of a stream: it leaves out the fastest, and its maximum is still 0.
    """
    histogram = {"100": probes - probes // 2 - 1, "300": 1} if probes else {}
    return {"average": 60.0, "jit": 1, "last_max": 0.0, "total_max": 0.0, "histogram": histogram}


def _shared(total: int, weights: list[int]) -> list[int]:
    parts = [total * weight // sum(weights) for weight in weights]
    parts[0] += total - sum(parts)
    return parts


def _by_group(streams: list[dict[str, Any]], counts: list[int]) -> dict[int, int]:
    groups: dict[int, int] = defaultdict(int)
    for stream, count in zip(streams, counts, strict=True):
        groups[stream["flow_stats"].get("stream_id", 0)] += count
    return dict(groups)


def _zipped(message: bytes) -> bytes:
    if len(message) < _ZIP_FROM:
        return message
    return struct.pack(">II", _ZIP_MAGIC, len(message)) + zlib.compress(message)


def _unzipped(message: bytes) -> bytes:
    if len(message) >= 8 and struct.unpack(">I", message[:4])[0] == _ZIP_MAGIC:
        return zlib.decompress(message[8:])
    return message


def packets(stream: dict[str, Any], count: int) -> Iterator[bytes]:
    """The first packets of a stream, as the field engine makes them: two-byte variables and IPv4 checksums."""
    packet = bytearray(base64.b64decode(stream["packet"]["binary"]))
    variables: dict[str, dict[str, Any]] = {}
    values: dict[str, int] = {}
    for _ in range(count):
        for instruction in stream["vm"]["instructions"]:
            match instruction["type"]:
                case "flow_var":
                    name = instruction["name"]
                    if name not in values:
                        variables[name], values[name] = instruction, instruction["init_value"]
                        continue
                    low, high = instruction["min_value"], instruction["max_value"]
                    step = 1 if instruction["op"] == "inc" else -1
                    values[name] = low + (values[name] - low + step) % (high - low + 1)
                case "write_flow_var":
                    struct.pack_into("!H", packet, instruction["pkt_offset"], values[instruction["name"]])
                case "fix_checksum_ipv4":
                    offset = instruction["pkt_offset"]
                    struct.pack_into("!H", packet, offset + 10, 0)
                    total = sum(struct.unpack_from("!10H", packet, offset))
                    total = (total & 0xFFFF) + (total >> 16)
                    total = (total & 0xFFFF) + (total >> 16)
                    struct.pack_into("!H", packet, offset + 10, ~total & 0xFFFF)
                case other:
                    raise AssertionError(f"the field engine of the tests does not know {other}")
        yield bytes(packet)


def main() -> None:
    parser = argparse.ArgumentParser(description="A TRex server without packets, for tests.")
    parser.add_argument("--api", choices=("4.1", "5.1"), default="4.1")
    parser.add_argument("--saturation", type=float, default=1e6, help="packets/s that the simulated SUT forwards")
    parser.add_argument("--buffer", type=int, default=0, help="packets that wait for the simulated SUT at most")
    parser.add_argument("--flight", type=float, default=FLIGHT, help="seconds that a packet is under way")
    parser.add_argument("--ceiling", type=float, default=None, help="packets/s that the simulated server can send")
    options = parser.parse_args()
    ceiling = None if options.ceiling is None else Ceiling(options.ceiling, stretches=True)
    sut = SimulatedSut(IdealCurve(options.saturation), ceiling=ceiling, buffer=options.buffer)
    with TRexServer(sut, api=options.api) as server:
        server.flight = options.flight
        print(f"sync port {server.sync_port}, async port {server.async_port}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
