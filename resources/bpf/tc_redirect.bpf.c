// SPDX-License-Identifier: Apache-2.0
/* A patch panel at tc ingress: each port's packets get new MAC addresses and leave by the port that `pdrgate_ports` names.
 *
 * No routing table is asked and no hop limit counted: what is measured is the way to a tc program and out again.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define MOST_PORTS 16

/* Where the packets of a port go, by the port's ifindex. What fills it knows this layout. */
struct way {
	__u32 ifindex;
	__u8 destination[ETH_ALEN];
	__u8 source[ETH_ALEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_PORTS);
	__type(key, __u32);
	__type(value, struct way);
} pdrgate_ports SEC(".maps");

/* Places in `pdrgate_counts`; what reads them knows these numbers. */
enum place {
	REDIRECTED,
	PASSED_UNKNOWN_PORT,
	DROPPED_TRUNCATED,
	PLACES,
};

#include "counters.h"

SEC("tc")
int tc_redirect(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 port = skb->ifindex;
	struct way *way = bpf_map_lookup_elem(&pdrgate_ports, &port);
	struct ethhdr *ethernet = data;

	if (!way)
		return counted(PASSED_UNKNOWN_PORT, TC_ACT_OK);
	if (data + sizeof(*ethernet) > end)
		return counted(DROPPED_TRUNCATED, TC_ACT_SHOT);
	__builtin_memcpy(ethernet->h_dest, way->destination, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, way->source, ETH_ALEN);
	return counted(REDIRECTED, bpf_redirect(way->ifindex, 0));
}

char _license[] SEC("license") = "Dual MIT/GPL";
