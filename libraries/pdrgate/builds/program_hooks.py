"""Hooks of eBPF programs that no port runs: of groups of processes, network namespaces, netfilter, sockets and routes.

A step beside `pdrgate.data_paths.program_path` attaches a program to each place. Sections are named as libbpf names
them.
"""

from __future__ import annotations

from collections.abc import Mapping
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
