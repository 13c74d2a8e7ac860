/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker and its BPF programs share: one struct in one mmapped map, and the rx counts. */
#ifndef PDRGATE_WIRE_H
#define PDRGATE_WIRE_H

#include <linux/types.h>

#define PROBE_SLOTS 65536		/* probe latencies kept per trial; a power of two */
#define HEADER_V4 42			/* Ethernet + IPv4 + UDP */
#define HEADER_V6 62			/* Ethernet + IPv6 + UDP */
#define ROUTING_MAX 152			/* an IPv6 routing header of nine segments: eight hops and the end */
#define PROBE_PAYLOAD 8			/* the sending time, CLOCK_MONOTONIC ns */
#define HEADER_MAX (HEADER_V6 + ROUTING_MAX + PROBE_PAYLOAD)

/* One direction of traffic: how its frames look and where they leave. */
struct direction {
	__u32 ifindex;
	__u32 csum_sum;			/* UDP pseudo sum without the varying word, host order */
	__u32 probe_sum;		/* the same for probes, without the time stamp */
	__u32 ip_sum;			/* IPv4 header sum without the varying word */
	__u8 plain[HEADER_MAX];
	__u8 probe[HEADER_MAX];
	__u16 first;			/* first value of the varying word, host order */
	__u16 pad[3];
};

struct control {
	/* set by the worker before a trial */
	__u64 count;			/* packets of the trial */
	__u64 period_q16;		/* ns between packets << 16 */
	__u64 duration;			/* ns; sending ends at 1.001 of it */
	__u32 batch;			/* packets between two looks at the clock */
	__u32 flows;
	__u32 directions;		/* 1 or 2; packets alternate */
	__u32 v6;
	__u32 vary_offset;		/* byte offset of the varying 16-bit word: UDP source port or last address word */
	__u32 vary_in_ip;		/* the word is part of the IP header */
	__u32 probe_every;		/* every n-th packet is a probe; 0 = none */
	__u32 routing;			/* bytes of the routing header before UDP, a multiple of 8; IPv6 only */
	__u32 plain_len, probe_len;	/* bytes without FCS */
	__u16 cookie;			/* last word of every destination address, network order */
	__u16 tag, probe_tag;		/* UDP destination ports of this trial, network order */
	__u16 pad[3];
	struct direction dir[2];

	/* written while the trial runs */
	__u64 start;			/* due time of packet 0 */
	__u64 last;			/* when the last batch was released */
	__u64 sent;
	__u64 probes;
	__u64 over;			/* set at the deadline: send no more */
	__u64 probes_back;
	__u32 latency[PROBE_SLOTS];	/* ns */
};

struct counts {
	__u64 own;
	__u64 stray;
};

#endif
