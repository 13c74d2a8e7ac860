"""A stand-in for the client that a TRex server of API 5 brings along, which is not ours to ship.

It has the names that the worker uses of it, and speaks to ``trex_server`` over ZMQ. What the real one would do beyond
that, the tests do with the real one where ``PDRGATE_TREX_CLIENT`` names its folder.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
import types
import zlib
from typing import Any

import zmq

_ZIP_MAGIC = 0xABE85CEA


class TRexError(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.err())


class Answer:
    def __init__(self, message: dict[str, Any]) -> None:
        self._message = message

    def __bool__(self) -> bool:
        return "result" in self._message

    def data(self) -> Any:
        return self._message["result"]

    def err(self) -> str:
        return str(self._message["error"]["specific_err"])


class _Port:
    def __init__(self, client: STLClient, number: int) -> None:
        self._client, self._number = client, number
        self.handler, self._state, self._service = "", "", False

    def sync(self) -> Answer:
        answer = self._client._transmit("get_port_status", {"port_id": self._number, "profile_id": "*"})
        if answer:
            self._state, self._service = answer.data()["state"], answer.data()["service"]
        return answer

    def is_active(self) -> bool:
        return self._state == "TX"

    def is_service_mode_on(self) -> bool:
        return self._service

    def do(self, method: str, **parameters: Any) -> Any:
        parameters |= {"port_id": self._number, "handler": self.handler, "profile_id": "_"}
        answer = self._client._transmit(method, parameters)
        if not answer:
            raise TRexError(answer)
        return answer.data()


class STLClient:
    def __init__(self, username: str, server: str, sync_port: int, async_port: int) -> None:
        self.ctx = types.SimpleNamespace(username=username, session_id=0)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.connect(f"tcp://{server}:{sync_port}")
        self._ids = itertools.count()
        self._handle: str | None = None
        self.ports: dict[int, _Port] = {}
        self._system: dict[str, Any] = {}

    def connect(self) -> None:
        answer = self._transmit("api_sync_v2", {"name": "STL", "major": 5, "minor": 1})
        if not answer:
            raise TRexError(answer)
        self._handle = answer.data()["api_h"]
        self._system = self._transmit("get_system_info").data()
        self.ports = {port["index"]: _Port(self, port["index"]) for port in self._system["ports"]}

    def disconnect(self, stop_traffic: bool, release_ports: bool) -> None:
        for port in self.ports.values():
            if port.handler and release_ports:
                port.do("release")
        self._context.destroy(linger=0)

    def get_all_ports(self) -> list[int]:
        return list(self.ports)

    def get_server_system_info(self) -> dict[str, Any]:
        return self._system

    def acquire(self, ports: list[int], force: bool, sync_streams: bool) -> None:
        user = {"user": self.ctx.username, "session_id": self.ctx.session_id, "force": force}
        for port in ports:
            self.ports[port].handler = self.ports[port].do("acquire", **user)

    def add_streams(self, streams: list[STLStream], ports: list[int]) -> None:
        for port in ports:
            for number, stream in enumerate(streams):
                self.ports[port].do("add_stream", stream_id=number + 1, stream=stream.fields)

    def remove_all_streams(self, ports: list[int]) -> None:
        for port in ports:
            self.ports[port].do("remove_all_streams")

    def start(self, ports: list[int], force: bool, core_mask: list[int] | None) -> None:
        multiplier = {"type": "raw", "op": "abs", "value": 1.0}
        for port in ports:
            self.ports[port].do("start_traffic", mul=multiplier, duration=-1, force=force, core_mask=core_mask)

    def set_service_mode(self, ports: list[int], enabled: bool) -> None:
        for port in ports:
            self.ports[port].do("service", enabled=enabled)

    def stop(self, ports: list[int], rx_delay_ms: int) -> None:
        for port in ports:
            self.ports[port].do("stop_traffic")

    def _transmit(self, method: str, params: dict[str, Any] | None = None) -> Answer:
        parameters = dict(params or {})
        if self._handle:
            parameters["api_h"] = self._handle
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": parameters}
        self._socket.send(json.dumps(request).encode())
        raw = self._socket.recv()
        if struct.unpack(">I", raw[:4])[0] == _ZIP_MAGIC:
            raw = zlib.decompress(raw[8:])
        return Answer(json.loads(raw))


def STLVmFlowVar(**values: Any) -> dict[str, Any]:  # noqa: N802
    return {"type": "flow_var", **values}


def STLVmWrFlowVar(fv_name: str, pkt_offset: int) -> dict[str, Any]:  # noqa: N802
    return {"type": "write_flow_var", "name": fv_name, "pkt_offset": pkt_offset}


def STLVmFixIpv4(offset: int) -> dict[str, Any]:  # noqa: N802
    return {"type": "fix_checksum_ipv4", "pkt_offset": offset}


def STLScVmRaw(program: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: N802
    return program


def STLPktBuilder(pkt_buffer: bytes, vm: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N802
    return {"packet": {"binary": base64.b64encode(pkt_buffer).decode()}, "vm": {"instructions": vm}}


def STLTXSingleBurst(pps: float, total_pkts: int) -> dict[str, Any]:  # noqa: N802
    return {"type": "single_burst", "rate": {"type": "pps", "value": pps}, "total_pkts": total_pkts}


def STLFlowStats(pg_id: int) -> dict[str, Any]:  # noqa: N802
    return {"enabled": True, "stream_id": pg_id, "rule_type": "stats"}


def STLFlowLatencyStats(pg_id: int) -> dict[str, Any]:  # noqa: N802
    return {"enabled": True, "stream_id": pg_id, "rule_type": "latency"}


class STLStream:
    def __init__(
        self,
        packet: dict[str, Any],
        mode: dict[str, Any],
        flow_stats: dict[str, Any] | None,
        mac_src_override_by_pkt: bool,
        mac_dst_override_mode: int,
    ) -> None:
        flags = int(mac_src_override_by_pkt) | mac_dst_override_mode << 1
        self.fields = {**packet, "mode": mode, "flow_stats": flow_stats or {"enabled": False}, "flags": flags}
