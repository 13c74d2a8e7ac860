/* SPDX-License-Identifier: Apache-2.0 */
/* What Python, the worker and its BPF programs share. wire.py has `struct request` field by field; whoever changes one
 * changes the other, and WIRE_VERSION.
 */
#ifndef PDRGATE_WIRE_H
#define PDRGATE_WIRE_H

#include <linux/types.h>

#include "latency.h"

#define WIRE_VERSION 12
#define LOOKS 16			/* looks at what is under way, at equal steps of the sending time */
#define MAX_BATCH 64
#define MAX_FRAME 1514			/* bytes without FCS */
#define HEADER_V4 42			/* Ethernet + IPv4 + UDP */
#define HEADER_V6 62			/* Ethernet + IPv6 + UDP */
#define VLAN 4				/* bytes of an IEEE 802.1Q tag, behind the MAC addresses */
#define ROUTING_MAX 152			/* an IPv6 routing header of nine segments: eight hops and the end */
#define PROBE_PAYLOAD 8			/* the sending time, CLOCK_MONOTONIC ns */
#define NUMBER_PAYLOAD 4		/* the packet's number, 32 bits, big-endian; of all but probes and marked ones */
#define MARK_PAYLOAD 8			/* the trial's mark and the packet's number, 32 bits each, big-endian */
#define TAIL_MARK 16			/* identifies chosen frames: their last bytes, see `struct tail_mark` */
#define CHOSEN_MAX (1 << 18)		/* frames of a table */
#define ORDER_MAX (1 << 19)		/* packets until a table's order begins again */
#define STREAMS_MAX (1 << 16)		/* places in a table's order whose packets are looked at for overtaking */
#define WINDOW (1 << 20)		/* numbers of packets that are known to have come, see the map `seen` */
#define HEADER_MAX (HEADER_V6 + VLAN + ROUTING_MAX + PROBE_PAYLOAD)
#define SAMPLES 8			/* frames that a CPU keeps whole in a trial, at most */
#define SAMPLE_ROOM 1520		/* bytes of a frame that are kept: a multiple of 8, no less than MAX_FRAME */

/* What a packet's UDP destination port is beyond the trial's tag: which direction it went, and whether it is a probe. */
#define PROBE 1
#define DIRECTION 2
#define KINDS 4

/* One direction of traffic: how its frames look. */
struct direction {
	__u32 csum_sum;			/* UDP pseudo sum without the varying word, host order */
	__u32 probe_sum;		/* the same for probes, without the time stamp */
	__u32 ip_sum;			/* IPv4 header sum without the varying word */
	__u8 plain[HEADER_MAX];
	__u8 probe[HEADER_MAX];
	__u32 first;			/* first value of the varying word */
};

/* What is asked for a trial: all numbers in host order. */
struct request {
	__u32 version;			/* WIRE_VERSION */
	__u32 size;			/* bytes of this struct */
	__u64 count;			/* packets of the trial */
	__u64 period_q16;		/* ns between packets << 16 */
	__u64 duration;			/* ns; sending ends at 1.001 of it */
	__u64 quiet;			/* ns without a packet after which the drain ends */
	__u64 limit;			/* ns of draining at most */
	__u32 live;			/* the engine: 1 live frames (xdp), 0 a socket (packet) */
	__u32 asleep;			/* a socket's packets are waited for asleep, where there is time for it */
	__u32 batch;			/* packets between two looks at the clock */
	__u32 flows;
	__u32 directions;		/* 1 or 2; packets alternate */
	__u32 v6;
	__u32 vary_offset;		/* byte offset of the varying 16-bit word: UDP source port or last address word */
	__u32 vary_in_ip;		/* the word is part of the IP header */
	__u32 probe_every;		/* every n-th packet is a probe; 0 = none */
	__u32 routing;			/* bytes of the routing header before UDP, a multiple of 8; IPv6 only */
	__u32 vlan;			/* bytes of the tag: VLAN, or 0 for none */
	__u32 plain_len, probe_len;	/* bytes without FCS */
	__u32 cookie;			/* last word of every destination address; of chosen frames all of the mark's */
	__u32 tag;			/* UDP destination port of this trial, or the mark's; see DIRECTION and PROBE */
	__u32 sample_every;		/* of so many own packets of a CPU, one drawn is looked at; 0: none */
	__u32 marked;			/* each payload begins with `mark` and the packet's number; no probes then */
	__u32 mark;
	__u32 returns;			/* 1: packets are to come back on the port that they were sent from */
	__u32 taken;			/* 1: the looks are at what the SUT takes in, whether or not it comes back */
	__u32 ring;			/* packets that lie in a guest's ring while those before it wait in a TAP's queue */
	__u32 chosen;			/* frames of the table that is sent, see `struct chosen`; 0: those of `dir` are */
	__u32 ordered;			/* numbers of the table's order */
	__u32 room;			/* bytes of each frame in it: as many as the longest has */
	__u64 burst;			/* packets that are sent at once, each burst when it is ordered and the one before is back;
					 * 0: packets are sent when they are due */
	__u64 table;			/* bytes of a new table that follow this request; 0: the one from before */
	struct direction dir[2];
};

/* A frame of a table. A table is `chosen` of them, each with `room` bytes up to a multiple of 8, and `ordered` numbers of
 * 64 bits: which frame each packet is, over and over. */
struct chosen {
	__u32 length;			/* bytes without FCS, the mark's included */
	__u32 direction;		/* 0 or 1 */
	__u8 frame[];
};

#define CHOSEN_SIZE(room) ((sizeof(struct chosen) + (room) + 7) & ~7ull)

/* The last bytes of a chosen frame, big-endian. Their sum in ones' complement is zero: so each checksum that covers them
 * is as it was computed with zeros in their place, whatever layer it is of. */
struct tail_mark {
	__u64 number;			/* the packet's; of a probe its sending time, CLOCK_MONOTONIC ns */
	__u32 cookie;
	__u16 tag;			/* this trial's; see DIRECTION and PROBE */
	__u16 rest;
} __attribute__((packed));

/* The one element of an mmapped map. */
struct control {
	/* set by the worker before a trial */
	struct request asked;
	__u32 ifindex[2];		/* where each direction leaves */
	__u32 cpus;			/* elements of the map `received` */
	__u32 filler;			/* frames between the last packet and the end of its batch (live frames) */
	__u64 before;			/* own packets counted before the trial */

	/* written while the trial runs */
	__u64 start;			/* due time of packet 0 */
	__u64 last;			/* when the last batch was released */
	__u64 end;			/* when sending ended: the last look's time */
	__u64 sent;
	__u64 probes;
	__u64 over;			/* set at the end of sending: send no more */
	__u64 looks;			/* of LOOKS, those that were taken */
	__u64 back;			/* own packets that had come back at the last one */
	__u64 under_way[LOOKS];		/* packets sent and not back */
	__u32 latency[LATENCY_BUCKETS];
};

/* What one CPU has counted since the worker's start; on cache lines of its own. Elements of another mmapped map. */
struct counts {
	__u64 own;
	__u64 stray;
	__u64 probes;			/* part of the own */
	__u64 longest;			/* ns, of this trial's probes */
	__u64 returned;			/* of this trial, and back on another port than they are to: not among the own */
	__u64 twice;			/* back once more, or after WINDOW later ones: not among the own */
	__u64 until_sample;		/* packets of the trial until the next one is kept whole */
	__u64 numbered;			/* chosen packets, of those that are no probes: their number was compared */
	__u64 overtaken;		/* part of the numbered: a later one of the same place in the order came before */
};

/* Frames of a trial that one CPU has kept whole. Elements of a third mmapped map. */
struct samples {
	__u32 taken;			/* frames that were looked at: of these, the first SAMPLES or as many drawn are here */
	__u32 pad;
	struct sample {
		__u32 kind;		/* of KINDS */
		__u32 returned;		/* whether it came back on the port that it was sent from */
		__u32 length;		/* bytes that it had */
		__u32 pad;
		__u8 frame[SAMPLE_ROOM];
	} of[SAMPLES];
};

/* What makes the sum of a mark zero. A sum in ones' complement is the same in either byte order. */
static inline __u16 tail_rest(__u64 number, __u32 cookie, __u16 tag)
{
	__u32 sum = (number & 0xffff) + ((number >> 16) & 0xffff) + ((number >> 32) & 0xffff) + (number >> 48);

	sum += (cookie & 0xffff) + (cookie >> 16) + tag;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/* When the slot of the last packet ends, and with it sending, unless the machine comes later to it. */
static inline __u64 slot_end(const struct control *c)
{
	__u64 tail = c->sent && c->asked.batch ? (c->sent - 1) % c->asked.batch + 1 : 0;

	return c->last + ((tail * c->asked.period_q16) >> 16);
}

/* Looks that ought to have been taken by now, but for the last: that is taken when sending ends. */
static inline __u64 looks_due(const struct control *c, __u64 now)
{
	__u64 due = c->asked.duration ? (now - c->start) * LOOKS / c->asked.duration : 0;

	return due < LOOKS ? due : LOOKS - 1;
}

/* Take all looks up to `due` now, when `own` packets of ours were counted. */
static inline void look(struct control *c, __u64 due, __u64 own)
{
	c->back = own - c->before;
	for (__u64 k = 0; k < LOOKS; k++)
		if (k >= c->looks && k < due)
			c->under_way[k] = c->sent > c->back ? c->sent - c->back : 0;
	c->looks = due;
}

#endif
