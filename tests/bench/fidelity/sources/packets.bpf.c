/* SPDX-License-Identifier: GPL-2.0 */
/* Hands packets to a port, PACKETS in a run, each written anew; whoever has the other end does with them what it does. */
#include "common.h"
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>

#ifndef FLOWS
#define FLOWS 256
#endif

struct headers {
	__u8 ethernet[ETH_HLEN];
	struct iphdr ip;
	union {
		struct udphdr udp;
		struct tcphdr tcp;
	};
} __attribute__((packed, aligned(2)));

__u32 number;

static __always_inline __u16 folded(const void *from, int bytes, __u32 sum)
{
	const __u16 *word = from;

	for (int at = 0; at < bytes / 2; at++)
		sum += word[at];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16));
}

SEC("tc")
int run(struct __sk_buff *ctx)
{
	for (int packet = 0; packet < PACKETS; packet++) {
		struct headers all = {
			.ethernet = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0 },
			.ip = { .version = 4, .ihl = 5, .ttl = 64, .frag_off = bpf_htons(0x4000) },
		};
		int failed;

		all.ip.tot_len = bpf_htons(ctx->len - ETH_HLEN);
		all.ip.saddr = bpf_htonl(0xc0000202);
#ifdef DESTINATIONS
		__u32 at = drawn() % DESTINATIONS;

		all.ip.daddr = bpf_htonl(0x0a000001 + (at << 8));
#else
		all.ip.daddr = bpf_htonl(0xc6120001);
#endif
#ifdef SEGMENTS
		all.ip.protocol = IPPROTO_TCP;
		all.tcp.source = bpf_htons(2000);
		all.tcp.dest = bpf_htons(2000);
		all.tcp.seq = bpf_htonl(number++ * (ctx->len - ETH_HLEN - sizeof(all.ip) - sizeof(all.tcp)));
		all.tcp.doff = sizeof(all.tcp) / 4;
		all.tcp.ack = 1;
		all.tcp.window = bpf_htons(1000);
		all.tcp.check = folded(&all.tcp, sizeof(all.tcp), bpf_htons(ctx->len - ETH_HLEN - sizeof(all.ip)) +
			bpf_htons(IPPROTO_TCP) + (all.ip.saddr & 0xffff) + (all.ip.saddr >> 16) + (all.ip.daddr & 0xffff) +
			(all.ip.daddr >> 16));
#else
		all.ip.protocol = IPPROTO_UDP;
		all.udp.source = bpf_htons(2000 + number++ % FLOWS);
		all.udp.dest = bpf_htons(2000);
		all.udp.len = bpf_htons(ctx->len - ETH_HLEN - sizeof(all.ip));
#endif
		all.ip.check = folded(&all.ip, sizeof(all.ip), 0);
#ifdef SEGMENTS
		failed = bpf_skb_store_bytes(ctx, 0, &all, sizeof(all), 0);
#else
		failed = bpf_skb_store_bytes(ctx, 0, &all, ETH_HLEN + sizeof(all.ip) + sizeof(all.udp), 0);
#endif
		if (failed || bpf_clone_redirect(ctx, PORT, 0))
			return FULL;
	}
	return DONE;
}
