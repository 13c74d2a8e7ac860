"""Hooks of eBPF programs that no port runs: of groups of processes, network namespaces, netfilter, sockets and routes.

A step beside `pdrgate.data_paths.program_path` attaches a program to each place. Sections are named as libbpf names
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

HookKind = Literal[
    "cgroup_skb", "cgroup", "sock_ops", "sk_lookup", "flow_dissector", "netfilter", "sk_reuseport", "sk_msg", "sk_skb",
    "lwt", "struct_ops", "netkit",
]  # fmt: skip
HookPlace = Literal["cgroup", "netns", "netfilter", "reuseport", "sockets", "route", "kernel", "netkit"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook that a program's section names."""

    kind: HookKind
    place: HookPlace
    """What the program is attached to."""
    path: str = ""
    """Tag of the path whose packets call it; empty where none of pdrgate's own does for each packet."""


_IN, _OUT, _CONNECTIONS = "path-udp-delivery", "path-udp-send", "path-tcp-connections"
_REQUESTS, _ROUTED = "path-tcp-requests", "path-ipv6-routing"
_HOOKS: Mapping[str, Hook] = {
    "cgroup_skb/ingress": Hook("cgroup_skb", "cgroup", _IN),
    "cgroup_skb/egress": Hook("cgroup_skb", "cgroup", _OUT),
    "cgroup/skb": Hook("cgroup_skb", "cgroup", _IN),
    "sockops": Hook("sock_ops", "cgroup", _CONNECTIONS),
    "sk_lookup": Hook("sk_lookup", "netns", _IN),
    "flow_dissector": Hook("flow_dissector", "netns", "path-vxlan"),
    "netfilter": Hook("netfilter", "netfilter", _ROUTED),
    "cgroup/sock_release": Hook("cgroup", "cgroup", _CONNECTIONS),
    "sk_reuseport": Hook("sk_reuseport", "reuseport", "path-udp-delivery-to-four"),
    "sk_msg": Hook("sk_msg", "sockets", _REQUESTS),
    "sk_skb": Hook("sk_skb", "sockets", _REQUESTS),
    "lwt_in": Hook("lwt", "route", _ROUTED),
    "lwt_out": Hook("lwt", "route", _ROUTED),
    "lwt_xmit": Hook("lwt", "route", _ROUTED),
    "lwt_seg6local": Hook("lwt", "route", "path-srv6-end"),
    "struct_ops": Hook("struct_ops", "kernel", _REQUESTS),
    "netkit/primary": Hook("netkit", "netkit", _ROUTED),
    "netkit/peer": Hook("netkit", "netkit", _ROUTED),
}
_SELDOM = Hook("cgroup", "cgroup")
"""Hooks of cgroups that a socket calls once, when it is made, bound or connected."""
_NOT_OF_PACKETS = ("cgroup/dev", "cgroup/sysctl")


def hook_of(section: str) -> Hook | None:
    """The hook that a section names, such as ``cgroup_skb/ingress``; None for all others."""
    first = section.partition("/")[0]
    found = _HOOKS.get(section) or _HOOKS.get(first) or _HOOKS.get(first.partition(".")[0])
    if found is None and section.startswith("cgroup/") and section not in _NOT_OF_PACKETS:
        return _SELDOM
    return found


_ON_PACKETS = ("socket", "xdp/cpumap", "xdp/devmap", "xdp.frags/cpumap", "xdp.frags/devmap")
"""Sections whose programs BPF_PROG_RUN runs on a packet."""
_ELSEWHERE = (
    "fentry", "fexit", "fmod_ret", "kprobe", "kretprobe", "ksyscall", "kretsyscall", "uprobe", "uretprobe",
    "usdt", "tp", "tracepoint", "raw_tp", "raw_tracepoint", "tp_btf", "perf_event", "iter", "lsm", "lsm_cgroup",
    "cgroup", "syscall",
)  # fmt: skip
"""First parts of sections whose programs something else in the kernel calls."""
_INSTEAD = ("freplace",)
"""First parts of sections whose programs replace a function of another program."""


def measured_otherwise(sections: Collection[str]) -> str:
    """Advice on how to measure programs of these sections; empty if the kind of one of them is not known."""
    plain = {section.removeprefix("?") for section in sections}
    on_packets = {section for section in plain if _is(section, _ON_PACKETS)}
    elsewhere = {section for section in plain - on_packets if _is(section, _ELSEWHERE)}
    instead = {section for section in plain - on_packets - elsewhere if _is(section, _INSTEAD)}
    if plain - on_packets - elsewhere - instead:
        return ""
    advice = []
    if instead:
        advice.append(
            f"those in {', '.join(sorted(instead))} replace a function of a dispatcher: name that with --set replaces="
            "OBJECT:PROGRAM"
        )
    if on_packets:
        advice.append(f"--set packets=FILE runs those in {', '.join(sorted(on_packets))} on packets of a file")
    if elsewhere:
        advice.append(
            f"have a step of a scenario load those in {', '.join(sorted(elsewhere))}, as the file $BPF, and measure "
            "the path that calls them: --scenario FILE.yaml"
        )
    return "; ".join(advice)


def _is(section: str, known: Collection[str]) -> bool:
    """Whether a section, or what stands before a slash or a dot in it, is one of those."""
    first = section.partition("/")[0]
    return bool({section, "/".join(section.split("/")[:2]), first, first.partition(".")[0]} & set(known))
