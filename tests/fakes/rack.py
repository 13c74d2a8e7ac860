"""A rack of namespaces: a TG and a SUT that are there before a run and after it, and the SUT's state to compare.

    TG t0 ──veth── in0 SUT out0 ──veth── t1 TG

The SUT is a namespace of the machine that sshd runs on, so that every command for it goes through SSH. One router is
faster than the embedded generator, so policy rules that match nothing make its route look-up slower.
"""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml
from knob_snapshot import snapshot
from ssh_server import SshServer

from pdrgate.hosts.host import local_host, netns_host
from pdrgate.knobs.port_network import PortNetwork

PORTS = ("in0", "out0")
_RULES = 128
"""Policy rules; each costs a packet some 30 ns."""


def _ip(*words: str, said: str = "") -> None:
    subprocess.run(("ip", *words), input=said, check=True, capture_output=True, text=True)


def _host(namespace: str, server: SshServer | None) -> dict[str, object]:
    """How a testbed file says how a namespace is reached."""
    if server is None:
        return {"kind": "netns", "namespace": namespace}
    target = server.target
    return {
        "kind": "ssh", "address": target.address, "port": target.port, "user": target.user,
        "key": str(target.key), "known_hosts": str(target.known_hosts), "namespace": namespace,
    }  # fmt: skip


class Rack:
    """TG and SUT from `__init__` to `close`; a context manager. ``rules`` makes the SUT slower, see `_RULES`."""

    def __init__(self, rules: int = _RULES) -> None:
        mark = uuid.uuid4().hex[:6]
        # Not of the form that a run's own namespaces have: these stay when a run is recovered.
        self.tg, self.sut = f"pdrgate-r-{mark}-tg", f"pdrgate-r-{mark}-sut"
        for name in (self.tg, self.sut):
            _ip("netns", "add", name)
        for near, far in (("t0", "in0"), ("t1", "out0")):
            _ip("link", "add", near, "netns", self.tg, "type", "veth", "peer", "name", far, "netns", self.sut)
            _ip("-n", self.tg, "link", "set", near, "up")
            _ip("-n", self.sut, "link", "set", far, "up")
        for family in ("-4", "-6"):
            # By one process: to start 256 of them takes seconds.
            lines = (f"rule add pref {1000 + number} fwmark 77 table main\n" for number in range(rules))
            _ip("-n", self.sut, family, "-batch", "-", said="".join(lines))
        # What is there already must be there after a run.
        _ip("-n", self.sut, "address", "add", "192.0.2.1/24", "dev", "in0")
        _ip("-n", self.sut, "-6", "neighbour", "add", "fe80::77", "lladdr", "02:00:00:00:00:77", "dev", "out0")

    def state(self) -> dict[str, str]:
        """All that a run may change at the SUT and on the machine."""
        with netns_host(self.sut) as sut, netns_host(self.tg) as tg, local_host() as local:
            found = {f"sut {name}": value for name, value in snapshot(sut, PORTS).items()}
            found |= {f"sut network {port}": PortNetwork(port).read(sut) for port in PORTS}
            found |= {f"tg {name}": value for name, value in snapshot(tg, ("t0", "t1")).items()}
            found |= {f"machine {name}": value for name, value in snapshot(local, ()).items()}
        return found

    def testbed(
        self, path: Path, server: SshServer | None = None, generator: dict[str, object] | None = None,
        station: SshServer | None = None, **sut: object,
    ) -> Path:  # fmt: skip
        """Write a testbed file for this rack, by SSH or, without a server, by the namespace.

        Args:
            station: by which TCP's other end is reached; None: it is where the generator is.
        """
        content = {
            "name": "rack-test",
            "kind": "rack",
            "generator": generator or {"kind": "embedded", "ports": ["t0", "t1"], "namespace": self.tg},
            "sut": {
                "host": _host(self.sut, server),
                "ports": [{"interface": port} for port in PORTS],
                "knobs": {"ports": {"offloads": {"gro": True, "tso": False}}},
                **sut,
            },
        }
        if station is not None:
            content["station"] = {"host": _host(self.tg, station), "interface": "t0"}
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def close(self) -> None:
        """Remove both namespaces."""
        for name in (self.tg, self.sut):
            subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
