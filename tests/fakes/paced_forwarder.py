"""A SUT of constant speed behind a real deep queue: two TAPs, and a process that moves frames from one to the other.

    generator t0 ──TAP, txqueuelen──▶ forwarder, one frame each 1/rate s ──▶ TAP t1 generator

The queue is the kernel's own, of the TAP the generator sends into; what finds it full is dropped there. The forwarder
keeps its own books: it tells how many frames it had written when sending ended, which no count of the generator enters.
It makes up for the time that the machine takes from it, as a SUT with a queue does.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import time
import uuid
from ipaddress import ip_address
from pathlib import Path as FilePath
from types import TracebackType
from typing import Self

from pdrgate.traffic.frames import Path

_MACS = ("02:00:00:00:00:10", "02:00:00:00:00:11")
_TUNSETIFF, _TAP_WITHOUT_HEADER = 0x400454CA, 0x1002
_STAMP = slice(62, 70)
"""Where an IPv6 probe has the time when it was sent."""


class PacedForwarder:
    """The forwarder and its namespace; needs root. Use it as a context manager.

    Args:
        rate: frames/s that it forwards.
        queue: frames that wait for it at most.
        cpu: the CPU that it keeps busy.
    """

    def __init__(self, rate: float, queue: int, cpu: int) -> None:
        self.namespace = f"pdrgate-t-{uuid.uuid4().hex[:8]}"
        self._arguments = (str(rate), str(queue), str(cpu))

    def __enter__(self) -> Self:
        subprocess.run(("ip", "netns", "add", self.namespace), check=True)
        self._process = subprocess.Popen(
            ("ip", "netns", "exec", self.namespace, sys.executable, __file__, *self._arguments),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONPATH": str(FilePath(__file__).resolve().parents[2] / "libraries")},
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        subprocess.run(("ip", "netns", "delete", self.namespace), check=True)

    @property
    def paths(self) -> list[Path]:
        """The way through it, and the way back that no frame goes; the generator counts at both ends."""
        forward, reverse = ip_address("2001:2:0:2::1"), ip_address("2001:2:0:1::5")
        return [Path("t0", *_MACS, forward, reverse), Path("t1", *reversed(_MACS), reverse, forward)]

    def written(self, sending_time: float) -> int:
        """Frames of the last trial that were written within its sending time; its first frame must be a probe."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{round(sending_time * 1e9)}\n")
        return int(json.loads(self._process.stdout.readline()))


def _tap(name: str, queue: int, mac: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH14x", name.encode(), _TAP_WITHOUT_HEADER))
    subprocess.run(("ip", "link", "set", name, "txqueuelen", str(queue), "address", mac, "up"), check=True)
    return descriptor


def main() -> None:
    rate, queue, cpu = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    # Only test packets are to pass: no router is asked for, no group is joined.
    FilePath("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    entrance, exit_ = _tap("t0", queue, _MACS[0]), _tap("t1", queue, _MACS[1])
    os.sched_setaffinity(0, {cpu})
    # Before all ordinary processes, as the generator is on its CPU.
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    autogroup = FilePath("/proc/self/autogroup")
    if autogroup.exists():
        os.setsid()
        autogroup.write_text("-20")
    period = round(1e9 / rate)
    clock = time.monotonic_ns
    times: list[int] = []
    begun = due = 0
    print("ready", flush=True)
    while True:
        try:
            frame = os.read(entrance, 2048)
        except BlockingIOError:
            due = 0
            ready, _, _ = select.select([0, entrance], [], [])
            if 0 in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                print(json.dumps(sum(at < begun + int(line) for at in times)), flush=True)
                times, begun = [], 0
            continue
        if not begun:
            begun = int.from_bytes(frame[_STAMP])
        due = (due or clock()) + period
        while clock() < due:
            pass
        os.write(exit_, frame)
        times.append(clock())


if __name__ == "__main__":
    main()
