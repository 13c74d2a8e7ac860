"""Hooks of eBPF programs that no port runs: of groups of processes, network namespaces, and netfilter.

A link attaches a program there, see bpf(2), BPF_LINK_CREATE. Sections are named as libbpf names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

HookKind = Literal["cgroup_skb", "cgroup", "sock_ops", "sk_lookup", "flow_dissector", "netfilter"]
LinkedTo = Literal["cgroup", "netns", "netfilter"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook that a program's section names."""

    kind: HookKind
    place: LinkedTo
    """What the link leads to."""
    path: str = ""
    """Tag of the path whose packets call it; empty where none of pdrgate's own does for each packet."""


_IN, _OUT, _CONNECTIONS = "path-udp-delivery", "path-udp-send", "path-tcp-connections"
_HOOKS: Mapping[str, Hook] = {
    "cgroup_skb/ingress": Hook("cgroup_skb", "cgroup", _IN),
    "cgroup_skb/egress": Hook("cgroup_skb", "cgroup", _OUT),
    "cgroup/skb": Hook("cgroup_skb", "cgroup", _IN),
    "sockops": Hook("sock_ops", "cgroup", _CONNECTIONS),
    "sk_lookup": Hook("sk_lookup", "netns", _IN),
    "flow_dissector": Hook("flow_dissector", "netns", "path-vxlan"),
    "netfilter": Hook("netfilter", "netfilter", "path-ipv6-routing"),
    "cgroup/sock_release": Hook("cgroup", "cgroup", _CONNECTIONS),
}
_SELDOM = Hook("cgroup", "cgroup")
"""Hooks of cgroups that a socket calls once, when it is made, bound or connected."""
_NOT_OF_PACKETS = ("cgroup/dev", "cgroup/sysctl")


def hook_of(section: str) -> Hook | None:
    """The hook that a section names, such as ``cgroup_skb/ingress``; None for all others."""
    found = _HOOKS.get(section) or _HOOKS.get(section.partition("/")[0])
    if found is None and section.startswith("cgroup/") and section not in _NOT_OF_PACKETS:
        return _SELDOM
    return found
