"""Our own XDP router with one thing done otherwise, compiled for a test: what no router does, and what some may do."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from pdrgate.builds.bpf_build import SOURCES

ROUTER = (SOURCES / "xdp_router.bpf.c").read_text()
LEAVES = "	return counted(REDIRECTED, bpf_redirect(route.ifindex, 0));"
BEGINS = 'SEC("xdp")\nint xdp_router('
RIGHT = ""
"""What a router does: nothing else."""


@dataclass(frozen=True)
class Planted:
    """What is done before a packet leaves, and what is told of it by IP version."""

    code: str
    told: dict[int, str]
    broken: bool
    """Whether the frames contradict themselves, so that it is wrong whatever a user's program is for."""


FAULTS = {
    "hop limit": Planted(
        "if (ip6) ip6->hop_limit++; else if (ip4) { __u32 sum = ip4->check; sum += 0xfffe; "
        "ip4->check = (sum & 0xffff) + (sum >> 16); ip4->ttl++; }",
        {6: "hop limit 64", 4: "time to live 64"}, False,
    ),
    "source words": Planted(
        "if (ip6) ip6->saddr.in6_u.u6_addr32[0] = 0; else if (ip4) ip4->saddr = 0;",
        {6: "source address ::2:0:0:0:1 in place of 2001:2:0:2::1", 4: "source address 0.0.0.0 in place of 198.19.0.1"},
        True,
    ),
    "checksum": Planted(
        "if (ip4) ip4->check ^= 1; else if (data + 62 <= end) *(__u16 *)(data + 60) ^= 1;",
        {6: "UDP checksum 0x", 4: "header checksum 0x"}, True,
    ),
    "length": Planted(
        "if (bpf_xdp_adjust_tail(ctx, -4)) return XDP_DROP;",
        {6: "frame length 120 in place of 124", 4: "frame length 120 in place of 124"}, True,
    ),
    "payload": Planted(
        "if (data + 101 <= end) *(__u8 *)(data + 100) ^= 0x55;",
        {6: "payload 0x55 at its byte 38 in place of 0x00", 4: "payload 0x55 at its byte 58 in place of 0x00"}, True,
    ),
}  # fmt: skip
MARKS = "if (ip6) ip6->priority = 3; else if (ip4 && data + 42 <= end) *(__u16 *)(data + 40) = 0;"
"""What some router may do: mark a class of traffic; of UDP over IPv4, leave out the checksum."""
SENDS_BACK = "route.ifindex = ctx->ingress_ifindex;"


def router(folder: Path, code: str, name: str, maps: str = "") -> Path:
    """Our router, which does that before a packet leaves; ``maps`` are those that it does it with."""
    assert ROUTER.count(LEAVES) == 1
    assert ROUTER.count(BEGINS) == 1
    folder.mkdir(parents=True, exist_ok=True)
    source, output = folder / f"{name}.bpf.c", folder / f"{name}.bpf.o"
    source.write_text(ROUTER.replace(LEAVES, f"{code}\n{LEAVES}").replace(BEGINS, f"{maps}\n{BEGINS}"))
    words = ("clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I{SOURCES}", "-I/usr/include/x86_64-linux-gnu")
    subprocess.run((*words, "-c", str(source), "-o", str(output)), check=True)
    return output
