"""The two TRex clients and their differences.

A server brings its own client along (package ``trex``, servers v2.87 and newer); ``trex_stl_lib`` of PyPI speaks to
servers v2.27 to v2.86.
"""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import re
import socket
import sys
import types
from typing import Any

PYPI = "trex-stl-lib"
SHIPPED = "automation/trex_control_plane/interactive"
PORT_COUNTERS = ("opackets", "ipackets", "oerrors", "ierrors")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_VERSIONS = re.compile(r"server: '([0-9.]+)', client: '([0-9.]+)'")
_LAYERS = ("l2",)
"""The protocols of scapy that trex-stl-lib takes for granted; others that it needs it imports by name. To load all
fifty is two thirds of a client's start, and streams here are made of packets that are bytes already."""
_LOOK = 3.0
"""Seconds to find out that nobody listens; the clients themselves take 10."""


class Refusal(Exception):  # noqa: N818
    """Why nothing comes of a message: ``client``, ``unreachable``, ``version``, ``owned``, ``ports`` or ``trex``."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def error_in_words(error: BaseException) -> str:
    """An error in one line. The text of an STLError must be taken from its field: its ``__str__`` raises."""
    text = getattr(error, "msg", None)
    if not isinstance(text, str):
        try:
            text = str(error)
        except Exception:
            text = ""
    text = " ".join(_COLOURS.sub("", text).replace("*", " ").split())
    if isinstance(error, Refusal):
        return text
    return text or type(error).__name__


class Client:
    """One client and its connection, in the few words that a session needs; the requests are those of both clients."""

    def __init__(self, folder: str | None, server: str, sync_port: int, async_port: int, username: str) -> None:
        self._where = f"{server}:{sync_port}"
        self.folder = folder
        self.shipped = folder is not None
        _reach(server, sync_port)  # first: to load a client takes its time
        self.api = _shipped(folder) if folder is not None else _pypi()
        self._publishes = False
        self.stl = self.api.STLClient(username=username, server=server, sync_port=sync_port, async_port=async_port)

    def connect(self, session: int) -> None:
        """Connect under a session id, so that a later worker may go on with the ports of one that died."""
        if self.shipped:
            self.stl.ctx.session_id = session
        else:
            self.stl.session_id = session
        try:
            self.stl.connect()
        except Exception as error:
            raise self._explained(error_in_words(error)) from error
        self._publishes = "get_global_stats" not in self.request("get_supported_cmds")

    def request(self, method: str, **parameters: Any) -> Any:
        """The result of one remote call."""
        answer = self.stl._transmit(method, params=parameters)
        if not answer:
            raise Refusal("trex", f"{method}: {error_in_words(Exception(str(answer.err())))}")
        return answer.data()

    def describe(self) -> dict[str, str]:
        """Versions of both sides."""
        return {
            "server": str(self.request("get_version").get("version", "unknown")),
            "client": "the server's own" if self.shipped else PYPI,
        }

    def port_counters(self, port: int) -> dict[str, int]:
        """Counters of a port since the server's start, read from the card now."""
        read: dict[str, Any]
        if self._publishes:
            published = self._published()
            read = {name: published.get(f"{name}-{port}") for name in PORT_COUNTERS}
        else:
            read = self.request("get_port_stats", port_id=port)
        if missing := [name for name in PORT_COUNTERS if read.get(name) is None]:
            raise Refusal("trex", f"the server does not report {missing[0]} of port {port}; use one of v2.27 or newer")
        return {name: int(read[name]) for name in PORT_COUNTERS}

    def server_counters(self) -> dict[str, int]:
        """Times that a card's queue was full, and how busy the sending cores are, in thousandths."""
        read = self._published() if self._publishes else self.request("get_global_stats")
        return {
            "queue_full": int(read.get("m_total_queue_full") or 0),
            "cpu_util_permille": round(10 * float(read.get("m_cpu_util") or 0)),
        }

    def _published(self) -> dict[str, Any]:
        """Counters as published. Servers before v2.42 send them to subscribers only; after a barrier they are
        current."""
        answer = self.stl.conn.barrier()
        if not answer:
            raise Refusal("trex", error_in_words(Exception(str(answer.err()))))
        return dict(self.stl.conn.async_connection.get_raw_snapshot().get("trex-global") or {})

    def owner(self, port: int) -> str:
        """Holder of a port, as the server reports it now."""
        self.stl.ports[port].sync()
        return str(self.request("get_port_status", port_id=port).get("owner") or "")

    def active(self, port: int) -> bool:
        """Does the port send? Asked of the server: events may be lost."""
        answer = self.stl.ports[port].sync()
        if not answer:
            raise Refusal("trex", error_in_words(Exception(str(answer.err()))))
        return bool(self.stl.ports[port].is_active())

    def _explained(self, what: str) -> Refusal:
        if not re.search("mismatch|method not", what, re.IGNORECASE):
            return Refusal("trex", what)
        mine = f"the client of {self.folder}" if self.shipped else PYPI
        sides = _VERSIONS.search(what)
        speaks = (
            f"the TRex server speaks API {sides.group(1)}, {mine} speaks {sides.group(2)}"
            if sides
            else f"the TRex server does not understand {mine} ({what})"
        )
        remedy = (
            f"set client: to the server's own {SHIPPED}, or leave it away for a server of v2.27 to v2.86"
            if self.shipped
            else f"set client: to the {SHIPPED} folder of the server's release"
        )
        return Refusal("version", f"{speaks}; {remedy}")


def _shipped(folder: str) -> Any:
    if not (pathlib.Path(folder) / "trex" / "stl").is_dir():
        raise Refusal("client", f"{folder} holds no trex/stl; give the release's {SHIPPED}")
    sys.path.insert(0, folder)
    return _imported("trex.stl.api", f"the client in {folder}")


def _pypi() -> Any:
    _stand_in_for_imp()
    _few_layers()
    return _imported("trex_stl_lib.api", f"{PYPI} (pip install {PYPI})")


def _imported(name: str, who: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        problem = f"{who} cannot be loaded by {sys.executable}: {error_in_words(error)}"
        raise Refusal("client", f"{problem}; name a Python that can as interpreter") from error


def _few_layers() -> None:
    with contextlib.suppress(ImportError):  # the client's own import is to report it
        importlib.import_module("scapy.config").conf.load_layers = list(_LAYERS)


def _stand_in_for_imp() -> None:
    """Python 3.12 has no ``imp``; trex-stl-lib imports it for its ``reload`` alone."""
    try:
        importlib.import_module("imp")
    except ImportError:
        module: Any = types.ModuleType("imp")
        module.reload = importlib.reload
        sys.modules["imp"] = module


def _reach(server: str, port: int) -> None:
    try:
        socket.create_connection((server, port), timeout=_LOOK).close()
    except OSError as error:
        raise Refusal("unreachable", str(error.strerror or error)) from error
