"""Functions of the kernel's that eBPF programs call (kfuncs): since which release there are some, for refusals.

Releases are those that the pages of docs.ebpf.io name for each function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_MISSING = re.compile(r"extern \(func ksym\) '(\w+)': not found|calling invalid kernel function|kfunc '(\w+)'")
_BOUND = re.compile(r"metadata kfuncs require device-bound program|device-bound")
_SINCE: Mapping[str, str] = {
    "bpf_xdp_metadata_rx_timestamp": "6.3", "bpf_xdp_metadata_rx_hash": "6.3", "bpf_xdp_metadata_rx_vlan_tag": "6.8",
    "bpf_xdp_ct_lookup": "5.18", "bpf_skb_ct_lookup": "5.18", "bpf_ct_release": "5.18", "bpf_xdp_ct_alloc": "6.0",
    "bpf_skb_ct_alloc": "6.0", "bpf_ct_insert_entry": "6.0", "bpf_ct_set_timeout": "6.0", "bpf_ct_set_nat_info": "6.1",
    "bpf_dynptr_from_skb": "6.4", "bpf_dynptr_from_xdp": "6.4", "bpf_dynptr_slice": "6.4",
    "bpf_dynptr_slice_rdwr": "6.4", "bpf_skb_set_fou_encap": "6.4", "bpf_skb_get_fou_encap": "6.4",
    "bpf_sock_destroy": "6.5", "bpf_sock_addr_set_sun_path": "6.7", "bpf_xdp_get_xfrm_state": "6.8",
    "bpf_xdp_flow_lookup": "6.11",
}  # fmt: skip


_MODULES = (
    (re.compile(r"bpf_ct_set_nat_info"), "nf_nat"), (re.compile(r"bpf_(xdp_|skb_)?ct_"), "nf_conntrack"),
    (re.compile(r"bpf_skb_[gs]et_fou_encap"), "fou"), (re.compile(r"bpf_xdp_flow_lookup"), "nf_flow_table"),
)  # fmt: skip
"""Modules of the kernel's that functions are in, where it is no part of the kernel's own file."""


def since_when(why: str) -> str:
    """What to add to the reason of a refusal, that a kernel lacks a function; empty for any other reason."""
    if _BOUND.search(why):
        return (
            "; XDP metadata hints take Linux 6.3 or later and a program that is bound to its card, which a guest's "
            "ports are not: measure it without the hints, or by a step of its own loader on a rack"
        )
    if (found := _MISSING.search(why)) is None:
        return ""
    name = found[1] or found[2] or ""
    if name in _SINCE:
        module = next((module for pattern, module in _MODULES if pattern.match(name)), "")
        return f"; kernels have {name} since Linux {_SINCE[name]}: name one with --kernel" + (
            f", and have a step load its module: set_up: [modprobe {module}] in --scenario FILE.yaml" if module else ""
        )
    return "; name a newer kernel with --kernel, or one whose configuration has what that function belongs to"
