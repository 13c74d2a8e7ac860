// SPDX-License-Identifier: Apache-2.0
/* An IPv4 and IPv6 router in XDP: the kernel's own FIB decides, packets never become sk_buffs.
 *
 * What it cannot decide (no IP, no neighbour yet, a hop limit that ends, a packet too long) goes up to the kernel's
 * router, which resolves, answers or drops as always. So it is a router in full, only faster where it can be.
 *
 * LOOKUPS greater than 1 makes a router that is slower by a cause that is known: tests of the gate are built on it.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef LOOKUPS
#define LOOKUPS 1
#endif

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define FLOW_AND_CLASS 0x0FFFFFFF	/* of the first word of an IPv6 header */

/* Places in `pdrgate_counts`; what reads them knows these numbers. */
enum place {
	REDIRECTED,
	PASSED_NO_IP,
	PASSED_HOP_LIMIT,
	PASSED_NEIGHBOUR,
	PASSED_TOO_LONG,
	PASSED_NOT_FORWARDED,
	DROPPED_TRUNCATED,
	DROPPED_UNREACHABLE,
	PLACES,
};

#include "counters.h"

/* One hop less, and the header checksum that goes with it (RFC 1624, with the one's complement's carry). */
static __always_inline void age_ipv4(struct iphdr *ip)
{
	__u32 sum = ip->check;

	sum += bpf_htons(0x0100);
	ip->check = (__u16)(sum + (sum >= 0xFFFF));
	ip->ttl--;
}

SEC("xdp")
int xdp_router(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup route = { .ifindex = ctx->ingress_ifindex };
	struct ethhdr *ethernet = data;
	struct ipv6hdr *ip6 = NULL;
	struct iphdr *ip4 = NULL;
	long told = 0;

	if (data + sizeof(*ethernet) > end)
		return counted(DROPPED_TRUNCATED, XDP_DROP);
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		ip6 = data + sizeof(*ethernet);
		if ((void *)(ip6 + 1) > end)
			return counted(DROPPED_TRUNCATED, XDP_DROP);
		if (ip6->hop_limit <= 1)
			return counted(PASSED_HOP_LIMIT, XDP_PASS);
		route.family = FAMILY_IPV6;
		route.flowinfo = *(__be32 *)ip6 & bpf_htonl(FLOW_AND_CLASS);
		route.l4_protocol = ip6->nexthdr;
		route.tot_len = bpf_ntohs(ip6->payload_len);
		__builtin_memcpy(route.ipv6_src, &ip6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ip6->daddr, sizeof(route.ipv6_dst));
	} else if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		ip4 = data + sizeof(*ethernet);
		if ((void *)(ip4 + 1) > end)
			return counted(DROPPED_TRUNCATED, XDP_DROP);
		if (ip4->ttl <= 1)
			return counted(PASSED_HOP_LIMIT, XDP_PASS);
		route.family = FAMILY_IPV4;
		route.tos = ip4->tos;
		route.l4_protocol = ip4->protocol;
		route.tot_len = bpf_ntohs(ip4->tot_len);
		route.ipv4_src = ip4->saddr;
		route.ipv4_dst = ip4->daddr;
	} else {
		return counted(PASSED_NO_IP, XDP_PASS);
	}

#pragma unroll
	for (int extra = 1; extra < LOOKUPS; extra++) {
		struct bpf_fib_lookup again = route;

		told += bpf_fib_lookup(ctx, &again, sizeof(again), 0);
	}
	told |= bpf_fib_lookup(ctx, &route, sizeof(route), 0);

	switch (told) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		return counted(DROPPED_UNREACHABLE, XDP_DROP);
	case BPF_FIB_LKUP_RET_NO_NEIGH:
		return counted(PASSED_NEIGHBOUR, XDP_PASS);
	case BPF_FIB_LKUP_RET_FRAG_NEEDED:
		return counted(PASSED_TOO_LONG, XDP_PASS);
	default:
		return counted(PASSED_NOT_FORWARDED, XDP_PASS);
	}

	if (ip6)
		ip6->hop_limit--;
	else if (ip4)
		age_ipv4(ip4);
	__builtin_memcpy(ethernet->h_dest, route.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, route.smac, ETH_ALEN);
	return counted(REDIRECTED, bpf_redirect(route.ifindex, 0));
}

/* The helper functions need a licence that the kernel knows; this program may be used under either of these. */
char _license[] SEC("license") = "Dual MIT/GPL";
