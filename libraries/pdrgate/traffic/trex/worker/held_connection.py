"""A connection to a TRex server that is held across trials, and the trials on it.

A trial's counts are read before the start and after the drain. In between only the flow statistics are read: one answer
has what a flow has sent and what of it has come back, gathered at once by servers of all releases. The counters of two
ports are not: read while packets are under way, they show losses that are none.
"""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable
from typing import Any

from .capture import capture
from .client import Client, Refusal

_TURN = 0.002
"""Seconds between two questions whether a port still sends, and whether packets still arrive."""
_LEAD = 0.01
"""Seconds before the expected end from which on these questions are asked."""
_FROM_PACKET = 1
"""The client's name for destination MAC addresses that are taken from the packet."""


class WorkerSession:
    """Handler of ``open`` and ``trial`` messages.

    Args:
        message: the ``open`` message.
        pause: sleeps some seconds; raises when nobody waits for the answer any more.
    """

    def __init__(self, message: dict[str, Any], pause: Callable[[float], None]) -> None:
        self._ports: list[int] = message["ports"]
        self._force: bool = message["force"]
        self._masks: int | None = message["core_mask"]
        self._id: int = message["session"]
        self._username: str = message["username"]
        self._pause = pause
        self._acquired = False
        self._arrivals: list[dict[str, Any]] = []
        """Flow statistics of the trial, each with our clock before its request and after its answer."""
        self._client = Client(
            message["client"], message["server"], message["sync_port"], message["async_port"], message["username"]
        )

    def open(self) -> dict[str, str]:
        """Connect, take the ports, and see that nothing is sent; what client and server are."""
        self._client.connect(self._id)
        stl = self._client.stl
        known = set(stl.get_all_ports())
        if missing := [port for port in self._ports if port not in known]:
            raise Refusal("ports", f"the TRex server has no port {missing[0]}, it has {_listed(sorted(known))}")
        owners = {port: self._client.owner(port) for port in self._ports}
        try:
            stl.acquire(self._ports, force=self._force, sync_streams=False)
        except Exception as error:
            taken = [f"{port} by {owner!r}" for port, owner in owners.items() if owner]
            if not taken:
                raise
            raise Refusal(
                "owned", f"{'ports are' if len(taken) > 1 else 'a port is'} held: {_listed(taken)}"
            ) from error
        self._acquired = True
        self._clear()
        if serving := [port for port in self._ports if stl.ports[port].is_service_mode_on()]:
            stl.set_service_mode(serving, False)  # a worker that died has left them so
        about = self._client.describe()
        drivers = {
            str(port.get("driver", "unknown"))
            for port in stl.get_server_system_info()["ports"]
            if port.get("index") in self._ports
        }
        return dict(about, driver=_listed(sorted(drivers)))

    def close(self) -> None:
        """Stop traffic, give the ports back, disconnect; a server that is gone is no reason to complain."""
        with contextlib.suppress(Exception):
            if self._acquired:
                self._clear()
        with contextlib.suppress(Exception):
            self._client.stl.disconnect(stop_traffic=False, release_ports=True)
        self._acquired = False

    def trial(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send the streams of the message, drain, and return all that was seen."""
        streams: list[dict[str, Any]] = message["streams"]
        senders = sorted({stream["port"] for stream in streams})
        groups = sorted({stream["group"] for stream in streams})
        probes = sorted({stream["group"] for stream in streams if stream["probe"]})
        for port in senders:
            own = [self._stream(stream) for stream in streams if stream["port"] == port]
            self._client.stl.add_streams(own, ports=[port])
        self._arrivals = []
        try:
            before, groups_before, _ = self._counters(groups, probes)
            wall = time.time()
            starts = self._start(senders)
            cpu = self._looked(groups, starts[senders[-1]][1], message["duration"], message["looks"])
            ends, stopped = self._end(groups, senders, starts, message["duration"], message["limit"])
            after, groups_after, latencies = self._drained(groups, probes, message, stopped)
            self._still_ours()
        except BaseException:
            with contextlib.suppress(Exception):
                self._clear()
            raise
        self._clear()
        if cpu is not None:
            after["cpu_util_permille"] = cpu
        return {
            "started": wall,
            "before": before,
            "after": after,
            "groups_before": groups_before,
            "groups_after": groups_after,
            "arrivals": self._arrivals,
            "sendings": {port: {"started": starts[port], "ended": ends[port]} for port in senders},
            "histograms": [(latency.get("lat") or {}).get("histogram") or {} for latency in latencies],
            "copies": sum(int((latency.get("er") or {}).get("dup") or 0) for latency in latencies),
            "stopped": stopped,
        }

    def look(self, message: dict[str, Any]) -> list[list[Any]]:
        """Send the streams of the message and take what comes back whole, see `Capture.packets`."""
        streams: list[dict[str, Any]] = message["streams"]
        senders = sorted({stream["port"] for stream in streams})
        try:
            with capture(self._client, self._ports, message["frames"]) as captured:
                for port in senders:
                    own = [self._stream(stream) for stream in streams if stream["port"] == port]
                    self._client.stl.add_streams(own, ports=[port])
                self._start(senders)
                self._pause(message["duration"] + message["drain"])
                return captured.packets()
        finally:
            self._clear()

    def _stream(self, stream: dict[str, Any]) -> Any:
        api = self._client.api
        program: list[Any] = []
        for number, sweep in enumerate(stream["sweeps"]):
            name = f"sweep{number}"
            program.append(
                api.STLVmFlowVar(
                    name=name,
                    min_value=sweep["low"],
                    max_value=sweep["high"],
                    init_value=sweep["high"] if sweep["down"] else sweep["low"],
                    size=2,
                    op="dec" if sweep["down"] else "inc",
                )
            )
            program.append(api.STLVmWrFlowVar(fv_name=name, pkt_offset=sweep["offset"]))
        if stream["fix_ipv4"]:
            program.append(api.STLVmFixIpv4(offset=stream["fix_ipv4"]))
        kind = api.STLFlowLatencyStats if stream["probe"] else api.STLFlowStats
        return api.STLStream(
            packet=api.STLPktBuilder(pkt_buffer=base64.b64decode(stream["packet"]), vm=api.STLScVmRaw(program)),
            mode=api.STLTXSingleBurst(pps=stream["rate"], total_pkts=stream["count"]),
            flow_stats=kind(pg_id=stream["group"]) if stream["group"] else None,
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=_FROM_PACKET,
        )

    def _start(self, senders: list[int]) -> dict[int, list[float]]:
        """Start the ports one by one, so that of each is known when; they begin milliseconds apart."""
        starts: dict[int, list[float]] = {}
        for port in senders:
            masks = None if self._masks is None else [self._masks]
            asked = time.monotonic()
            # By force: a port without a resolved neighbour is fine, for the packets bring their MAC addresses, and a
            # load above the line's rate is to be tried.
            self._client.stl.start(ports=[port], force=True, core_mask=masks)
            starts[port] = [asked, time.monotonic()]
        return starts

    def _looked(self, groups: list[int], begun: float, duration: float, looks: int) -> int | None:
        """Look while packets are sent, at each of ``looks`` steps that is not over yet, and at the end see `_end`.

        How busy the server was, in thousandths; None where no looks were asked for.
        """
        if not looks:
            return None
        for step in range(1, looks):
            at, now = begun + duration * step / looks, time.monotonic()
            if now < at < begun + duration - _LEAD:
                self._pause(at - now)
                self._arrived(groups)
        return self._client.server_counters()["cpu_util_permille"]

    def _end(
        self, groups: list[int], senders: list[int], starts: dict[int, list[float]], duration: float, limit: float
    ) -> tuple[dict[int, list[float]], bool]:
        """When each port was last seen sending and first seen idle; ports that send beyond ``limit`` are stopped."""
        last_seen = {port: starts[port][1] for port in senders}
        ends: dict[int, list[float]] = {}
        latest = starts[senders[-1]][1]
        self._pause(latest + duration - _LEAD - time.monotonic())
        stopped = False
        while len(ends) < len(senders):
            self._arrived(groups)
            for port in senders:
                if port in ends:
                    continue
                asked = time.monotonic()
                if not self._client.active(port):
                    ends[port] = [last_seen[port], time.monotonic()]
                    continue
                last_seen[port] = asked
                if asked - starts[port][1] > limit:
                    self._client.stl.stop([port], rx_delay_ms=0)
                    stopped = True
            if len(ends) < len(senders):
                self._pause(_TURN)
        return ends, stopped

    def _drained(
        self, groups: list[int], probes: list[int], message: dict[str, Any], stopped: bool
    ) -> tuple[dict[str, int], dict[int, Any], list[dict[str, Any]]]:
        """The counters once they have stood still for ``quiet`` seconds, or after ``drain`` seconds.

        Of a port that was stopped flow statistics stand still while packets come back; its own counters do not.
        """
        begun = changed = time.monotonic()
        seen: dict[int, Any] = {}
        while True:
            statistics = self._arrived(groups)
            if stopped:
                statistics = {port: self._client.port_counters(port)["ipackets"] for port in self._ports}
            now = time.monotonic()
            if statistics != seen:
                seen, changed = statistics, now
            if now - changed >= message["quiet"] or now - begun >= message["drain"]:
                break
            self._pause(_TURN)
        return self._counters(groups, probes)

    def _counters(
        self, groups: list[int], probes: list[int]
    ) -> tuple[dict[str, int], dict[int, Any], list[dict[str, Any]]]:
        counters: dict[str, int] = {}
        for port in self._ports:
            read = self._client.port_counters(port)
            counters.update({f"port{port}.{name}": value for name, value in read.items()})
        counters.update(self._client.server_counters())
        answer = self._client.request("get_pgid_stats", pgids=groups)
        latencies = answer.get("latency") or {}
        return counters, _flows(answer), [latencies.get(str(group)) or {} for group in probes]

    def _arrived(self, groups: list[int]) -> dict[int, Any]:
        asked = time.monotonic()
        flows = _flows(self._client.request("get_pgid_stats", pgids=groups))
        self._arrivals.append({"asked": asked, "answered": time.monotonic(), "groups": flows})
        return flows

    def _still_ours(self) -> None:
        for port in self._ports:
            owner = self._client.owner(port)
            if owner != self._username:
                self._acquired = False
                how = f"taken by {owner!r}" if owner else "taken and released by another user"
                raise Refusal("owned", f"port {port} was {how} during the trial")

    def _clear(self) -> None:
        """Remove all traffic and streams from our ports."""
        stl = self._client.stl
        if active := [port for port in self._ports if self._client.active(port)]:
            stl.stop(active, rx_delay_ms=0)
        stl.remove_all_streams(self._ports)


def _flows(answer: dict[str, Any]) -> dict[int, Any]:
    """Packets sent and received by flow and port; what the server leaves out is 0."""
    return {
        int(group): {
            "tx": {int(port): int(count) for port, count in (flow.get("tp") or {}).items()},
            "rx": {int(port): int(count) for port, count in (flow.get("rp") or {}).items()},
        }
        for group, flow in (answer.get("flow_stats") or {}).items()
        if group.isdigit()
    }


def _listed(things: list[Any]) -> str:
    return ", ".join(str(thing) for thing in things)
