"""What slows each path of the portfolio down: a step more of its set-up, and the function that it costs more in."""

from __future__ import annotations

from collections.abc import Mapping

PASSING = (
    "nft 'add table ip more; add chain ip more more { type filter hook forward priority 5; }; "
    "add rule ip more more udp sport 7 drop'",
    "nft_do_chain",
)
COMING = PASSING[0].replace("hook forward", "hook input"), "nft_do_chain"
LEAVING = (
    "tc qdisc add dev {0} clsact && tc filter add dev {0} egress matchall action pass",
    "mall_classify",
)
AT_PORT = LEAVING[0].format("$OUT"), LEAVING[1]
AT_TUNNEL = LEAVING[0].format("gate0"), LEAVING[1]
AT_WAY_OUT = "tc filter add dev gate0 egress matchall action pass", LEAVING[1]
REPLACED = "replaced with: "
"""Begins what is done at each replacement, and not before all of them."""
FAULTS: Mapping[str, tuple[str, str]] = {
    "bridge": ("ip link set gate0 type bridge vlan_filtering 1", "vlan|allowed"),
    "bridge_of_10000": ("ip link set gate0 type bridge vlan_filtering 1", "vlan|allowed"),
    "conntrack": ("nft add rule ip gate passing ct mark 7 drop", "nft_ct_get"),
    "container": AT_WAY_OUT,
    "egress_cake": AT_PORT,
    "egress_fq": AT_PORT,
    "egress_noqueue": AT_PORT,
    "egress_pfifo_fast": AT_PORT,
    "firewall": (
        "for n in $(seq 100); do nft add rule ip gate passing udp sport $n drop || exit; done",
        "nft_do_chain",
    ),
    "firewall_of_1000": ("nft -f rules", "nft_do_chain"),
    "flows_64k": AT_PORT,
    "flowtable": ("nft flush chain ip gate passing", "ip_forward"),
    "fq_codel": AT_PORT,
    "gre": AT_TUNNEL,
    "ipip": AT_TUNNEL,
    "ipsec": AT_WAY_OUT,
    "ipsec_null": AT_WAY_OUT,
    "ipv4_routing": AT_PORT,
    "ipv4_routing_of_many_flows": AT_PORT,
    "ipv6_many_destinations": AT_PORT,
    "ipv6_routing": AT_PORT,
    "ipv6_routing_of_large_frames": AT_PORT,
    "ipvs": AT_PORT,
    "macvlan": AT_TUNNEL,
    "memory_group": COMING,
    "multipath": AT_PORT,
    "nat": PASSING,
    "nat_both_ways": PASSING,
    "new_connections": ("nft add rule ip gate passing ct mark 7 drop", "nft_ct_get"),
    "no_early_demux": ("sysctl -qw net.ipv4.ip_early_demux=1", "udp_v4_early_demux"),
    "no_gro": AT_PORT,
    "routes_1000": AT_PORT,
    "routes_100000": AT_PORT,
    "packet_ring": AT_PORT,
    "packet_socket": AT_PORT,
    "routes_replaced": ("ip monitor route >/dev/null 2>&1 &\nundo: killall ip", "do_one_broadcast|netlink_broadcast"),
    "rp_filter": AT_PORT,
    "rules_replaced": ("nft monitor >/dev/null 2>&1 &\nundo: killall nft", "nf_tables_fill_rule_info"),
    "set_of_10000": ("nft add rule ip gate passing ip daddr @blocked drop", "nft_r?hash_lookup"),
    "set_of_ranges": ("nft add rule ip gate passing ip daddr . udp dport @blocked drop", "nft_pipapo"),
    "set_replaced": (f"{REPLACED}ipset create more hash:ip && ipset destroy more", "ip_set_create$"),
    "slow_egress": AT_PORT,
    "slow_egress_fq": AT_PORT,
    "slow_egress_pfifo_fast": AT_PORT,
    "srv6_encapsulation": AT_PORT,
    "srv6_end": AT_PORT,
    "tc_redirect": ("tc filter add dev $OUT egress matchall action pass", LEAVING[1]),
    "tap_segments": PASSING,
    "udp_connected_10000": COMING,
    "udp_delivery": COMING,
    "udp_delivery_to_four": COMING,
    "udp_gro": AT_PORT,
    "udp_send": COMING,
    "udp_send_segments": COMING,
    "udp_sockets_10000": COMING,
    "vlan": AT_PORT,
    "vxlan": AT_TUNNEL,
    "wireguard": AT_WAY_OUT,
    "xdp_socket": (
        "sysctl -qw kernel.bpf_stats_enabled=1\nundo: sysctl -qw kernel.bpf_stats_enabled=0",
        "sched_clock$",
    ),
}
"""A step more for each path, and what the function is called that it costs instructions in; others have `USUAL`."""
USUAL = PASSING
