// SPDX-License-Identifier: Apache-2.0
/* The generator's in-kernel half: `send` fills live frames (BPF_PROG_RUN) and paces them, `replay` does so with frames
 * of the user's choice, `count` counts what comes back. Counting in XDP costs least of all the ways tried and never wakes user space.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "wire.h"

#define ROUTING 43			/* the next header's number (RFC 8200, section 4.4) */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);	/* one element per CPU; the per-CPU kind cannot be mmapped */
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);			/* the worker sets it */
	__type(key, __u32);
	__type(value, struct counts);
} received SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);			/* the worker sets it: one element per CPU */
	__type(key, __u32);
	__type(value, struct samples);
} samples SEC(".maps");

/* What the worker was handed for `replay`; of both, it sets how many elements there are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, CHOSEN_SIZE(MAX_FRAME));	/* the worker sets it to what `room` takes */
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} order SEC(".maps");

/* By place in the order: the number that comes next at the earliest, by what has come of this trial (RFC 4737, NextExp). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STREAMS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} expected SEC(".maps");

/* By a packet's number, modulo WINDOW: one more than the last number that has come of this trial. A bit for each number
 * would be smaller, and its words would be shared by CPUs that count at the same time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WINDOW);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

const volatile __u32 room = MAX_FRAME;	/* bytes of a frame in the table, for the verifier; the worker sets it */

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + ((sum >> 32) & 0xffff);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

static long until(__u32 round, void *due)
{
	return bpf_ktime_get_ns() >= *(__u64 *)due;
}

static long add_own(__u32 cpu, void *sum)
{
	struct counts *n = bpf_map_lookup_elem(&received, &cpu);

	if (n)
		*(__u64 *)sum += n->own;
	return 0;
}

/* Wait until the batch that begins with packet i is due, and look what is under way when that is due: all batches
 * before it have left. Sending is over when the trial's time or its packets are; then the last packet's slot is waited
 * for, and the last look is taken here and now: the kernel takes 10 to 30 ms to end the call. Returns 0 when it is over.
 */
static __always_inline int pace(struct control *c, __u64 i)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 span = (c->asked.batch * c->asked.period_q16) >> 16;
	__u64 due, soonest, looks = LOOKS;

	if (!c->start)
		c->start = now;
	c->over = i >= c->asked.count || now > c->start + c->asked.duration + c->asked.duration / 1000;
	if (c->over) {
		due = slot_end(c);
	} else {
		due = c->start + ((i * c->asked.period_q16) >> 16);
		/* After a stall the schedule is caught up at no more than 1.25 times the load: a generator that
		 * floods the SUT after each stall of its own would show its noise as the SUT's loss. */
		soonest = c->last + span * 4 / 5;
		if (due < soonest)
			due = soonest;
	}
	if (now < due)
		bpf_loop(1 << 23, until, &due, 0);
	else
		due = now;
	if (c->over) {
		c->end = due;
	} else {
		c->last = due;
		looks = looks_due(c, due);
	}
	if (looks > c->looks) {
		__u64 own = 0;

		bpf_loop(c->cpus, add_own, &own, 0);
		look(c, looks, own);
	}
	return !c->over;
}

/* Wait until the next packet is due. Returns 0 when there is none to send. */
static __always_inline int is_due(struct control *c)
{
	__u64 i = c->sent;

	if (c->over)
		return 0;
	if (i >= c->asked.count && c->filler) {	/* the last batch leaves when it is full */
		c->filler--;
		return 0;
	}
	return !c->asked.batch || (i < c->asked.count && i % c->asked.batch) || pace(c, i);
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct direction *d;
	void *data, *end, *payload;
	__u8 *header;
	__u64 i, sum;
	__u16 word;
	__u32 which, at, routing, vlan;
	int probe;

	if (!c || !is_due(c))
		return XDP_DROP;
	i = c->sent;
	probe = c->asked.probe_every && i % c->asked.probe_every == 0;
	if (probe && c->asked.probe_len != c->asked.plain_len &&
	    bpf_xdp_adjust_tail(ctx, (int)c->asked.probe_len - (int)c->asked.plain_len))
		return XDP_ABORTED;

	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	which = c->asked.directions > 1 ? i & 1 : 0;
	d = &c->asked.dir[which & 1];
	word = d->first + (c->asked.directions > 1 ? i >> 1 : i) % c->asked.flows;
	sum = probe ? d->probe_sum : d->csum_sum;
	sum += word;

	header = probe ? d->probe : d->plain;
	vlan = c->asked.vlan & VLAN;
	/* Where a tag is, all else is four bytes later. Without a branch, which the verifier would follow twice. */
	if (data + VLAN > end)
		return XDP_ABORTED;
	__builtin_memcpy(data, header, VLAN);
	data += vlan;
	header += vlan;
	if (c->asked.v6) {
		if (data + HEADER_V6 > end)
			return XDP_ABORTED;
		__builtin_memcpy(data, header, HEADER_V6);
		routing = c->asked.routing & 0xf8;
		for (at = 0; at < routing && at < ROUTING_MAX; at += 8) {
			if (data + HEADER_V6 + at + 8 > end)
				return XDP_ABORTED;
			*(__u64 *)(data + HEADER_V6 + at) = *(__u64 *)(header + HEADER_V6 + at);
		}
		payload = data + HEADER_V6 + routing;
	} else {
		if (data + HEADER_V4 > end)
			return XDP_ABORTED;
		__builtin_memcpy(data, header, HEADER_V4);
		payload = data + HEADER_V4;
		if (c->asked.vary_in_ip)
			*(__u16 *)(data + 24) =
				bpf_htons(fold((__u64)d->ip_sum + word + (probe ? c->asked.probe_len - c->asked.plain_len : 0)));
	}
	data = (void *)(long)ctx->data;
	at = c->asked.vary_offset & 255;
	if (data + at + 2 > end)
		return XDP_ABORTED;
	*(__u16 *)(data + at) = bpf_htons(word);

	if (probe) {
		__u64 stamp = bpf_ktime_get_ns();
		__u64 wire = bpf_cpu_to_be64(stamp);

		if (payload + PROBE_PAYLOAD > end)
			return XDP_ABORTED;
		__builtin_memcpy(payload, &wire, PROBE_PAYLOAD);
		sum += (stamp >> 48) + ((stamp >> 32) & 0xffff) + ((stamp >> 16) & 0xffff) + (stamp & 0xffff);
		c->probes++;
	} else {
		__u32 first = i, second = 0;

		if (c->asked.marked) {
			first = c->asked.mark;
			second = i;
			sum += (second >> 16) + (second & 0xffff);
		}
		if (payload + NUMBER_PAYLOAD > end)
			return XDP_ABORTED;
		*(__u32 *)payload = bpf_htonl(first);
		sum += (first >> 16) + (first & 0xffff);
		/* Zeros as well: the page may have held a probe before, whose stamp is not in this frame's checksum. */
		if (c->asked.marked | c->asked.probe_every) {
#pragma unroll
			for (int at = NUMBER_PAYLOAD; at < MARK_PAYLOAD; at++)
				if (payload + at + 1 <= end)
					*(__u8 *)(payload + at) = second >> 8 * (MARK_PAYLOAD - 1 - at);
		}
	}
	word = fold(sum);
	if (!word)
		word = 0xffff;	/* 0 means "no checksum" (RFC 768, forbidden by RFC 8200) */
	if (payload > end)	/* for the verifier */
		return XDP_ABORTED;
	*(__u16 *)(payload - 2) = bpf_htons(word);
	c->sent++;
	return bpf_redirect(c->ifindex[which & 1], 0);
}

SEC("xdp")
int replay(struct xdp_md *ctx)
{
	__u32 zero = 0, place, which, length, direction, tag;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct tail_mark *mark;
	struct chosen *one;
	__u64 *number, stamp;
	void *data, *end;
	int grows, probe;

	if (!c || !is_due(c) || !c->asked.ordered)
		return XDP_DROP;
	place = c->sent % c->asked.ordered;
	number = bpf_map_lookup_elem(&order, &place);
	if (!number)
		return XDP_ABORTED;
	which = *number;
	one = bpf_map_lookup_elem(&table, &which);
	if (!one)
		return XDP_ABORTED;
	length = one->length;
	if (length < TAIL_MARK || length > room)
		return XDP_ABORTED;
	grows = (int)length - (int)(ctx->data_end - ctx->data);
	if (grows && bpf_xdp_adjust_tail(ctx, grows))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, one->frame, length))
		return XDP_ABORTED;

	probe = c->asked.probe_every && c->sent % c->asked.probe_every == 0;
	direction = one->direction & 1;
	tag = c->asked.tag + (direction ? DIRECTION : 0) + (probe ? PROBE : 0);
	stamp = probe ? bpf_ktime_get_ns() : c->sent;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	mark = data + ((length - TAIL_MARK) & 2047);
	if ((void *)(mark + 1) > end)
		return XDP_ABORTED;
	mark->number = bpf_cpu_to_be64(stamp);
	mark->cookie = bpf_htonl(c->asked.cookie);
	mark->tag = bpf_htons(tag);
	mark->rest = bpf_htons(tail_rest(stamp, c->asked.cookie, tag));
	c->probes += probe;
	c->sent++;
	return bpf_redirect(c->ifindex[direction], 0);
}

/* The same as `identify`, of chosen frames: by the mark at their end. */
static __always_inline int identify_mark(struct control *c, void *data, void *end, void **payload)
{
	__u32 length = end - data, kind;
	struct tail_mark *mark;

	if (length < TAIL_MARK)
		return -1;
	mark = data + ((length - TAIL_MARK) & 2047);
	if ((void *)(mark + 1) > end || mark->cookie != bpf_htonl(c->asked.cookie))
		return -1;
	*payload = mark;
	kind = bpf_ntohs(mark->tag) - c->asked.tag;
	return kind < KINDS ? kind : -1;
}

/* Bytes of the tag that an Ethernet type begins: VLAN or 0. It takes no branch: the verifier would follow all that comes
 * behind it once more, which takes each start of a generator a third of a second. */
static __always_inline __u32 tag_of(__u16 ethertype)
{
	__u32 differs = ethertype ^ bpf_htons(ETH_P_8021Q);

	asm volatile("" : "+r"(differs));	/* else the compiler makes a branch of it */
	return (differs - 1) >> 29 & VLAN;
}

/* Own packets carry this run's cookie in their destination address, and a destination port of this trial. Returns which,
 * of KINDS; -1 for others. */
static __always_inline int identify(struct control *c, void *data, void *end, void **payload)
{
	__u16 ethertype, port, cookie;
	__u32 kind;

	if (data + HEADER_V4 > end)
		return -1;
	ethertype = *(__u16 *)(data + 12);
	data += tag_of(ethertype);
	if (data + HEADER_V4 > end)
		return -1;
	ethertype = *(__u16 *)(data + 12);
	if (ethertype == bpf_htons(ETH_P_IPV6)) {
		void *udp = data + HEADER_V6 - 8;
		__u8 next;

		if (data + HEADER_V6 > end)
			return -1;
		next = *(__u8 *)(data + 20);
		if (next == ROUTING) {
			next = *(__u8 *)udp;
			udp += (*(__u8 *)(udp + 1) & 31) * 8 + 8;
		}
		if (next != 17 || udp + 8 > end)
			return -1;
		cookie = *(__u16 *)(data + 52);
		port = *(__u16 *)(udp + 2);
		*payload = udp + 8;
	} else if (ethertype == bpf_htons(ETH_P_IP)) {
		if (*(__u8 *)(data + 14) != 0x45 || *(__u8 *)(data + 23) != 17)
			return -1;
		cookie = *(__u16 *)(data + 32);
		port = *(__u16 *)(data + 36);
		*payload = data + HEADER_V4;
	} else {
		return -1;
	}
	if (bpf_ntohs(cookie) != c->asked.cookie)
		return -1;
	kind = bpf_ntohs(port) - c->asked.tag;
	return kind < KINDS ? kind : -1;
}

/* Keep a frame whole, for a look at what the SUT has made of it. Of more than SAMPLES each is kept with the same chance
 * (reservoir sampling), so that no part of a trial is known to be safe from a look. A function of its own, which the
 * verifier follows once and not for each way that leads to it. */
__attribute__((noinline)) int keep(struct xdp_md *ctx, __u32 kind, __u32 returned)
{
	__u32 cpu = bpf_get_smp_processor_id(), place, at, rest;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct samples *s = bpf_map_lookup_elem(&samples, &cpu);
	struct sample *one;

	if (!s)
		return 0;
	place = s->taken++;
	if (place >= SAMPLES)
		place = bpf_get_prandom_u32() % s->taken;
	if (place >= SAMPLES)
		return 0;
	one = &s->of[place & (SAMPLES - 1)];
	one->kind = kind;
	one->returned = returned;
	one->length = end - data;
	for (at = 0; at < SAMPLE_ROOM; at += 8) {
		if (data + at + 8 > end)
			break;
		*(__u64 *)(one->frame + at) = *(__u64 *)(data + at);
	}
	for (rest = 0; rest < 7; rest++, at++) {
		if (at >= SAMPLE_ROOM || data + at + 1 > end)
			break;
		one->frame[at] = *(__u8 *)(data + at);
	}
	return 0;
}

/* Frames of one place in the order are all alike, and so of one flow. */
__attribute__((noinline)) int look_at_order(__u32 ordered, __u32 cpu, __u64 number)
{
	struct counts *n = bpf_map_lookup_elem(&received, &cpu);
	__u32 place = ordered ? number % ordered : 0;
	__u64 *next = bpf_map_lookup_elem(&expected, &place);

	if (!n || !next)
		return 0;
	n->numbered++;
	if (number < *next)
		n->overtaken++;
	else
		*next = number + 1;
	return 0;
}

/* Whether no packet of this number has come before. One that WINDOW others have come after cannot be known. */
__attribute__((noinline)) int comes_first(__u64 number)
{
	__u32 at = number % WINDOW;
	__u64 *last = bpf_map_lookup_elem(&seen, &at);

	if (!last || number < *last)
		return 0;
	*last = number + 1;
	return 1;
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct counts *n = bpf_map_lookup_elem(&received, &cpu);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *payload = end;
	__u32 returned;
	int kind;

	if (!c || !n)
		return XDP_DROP;
	kind = c->asked.chosen ? identify_mark(c, data, end, &payload) : identify(c, data, end, &payload);
	if (kind < 0) {
		n->stray++;
		return XDP_DROP;
	}
	/* Of a generator with one port all comes back there. */
	returned = c->ifindex[1] && ctx->ingress_ifindex == c->ifindex[kind & DIRECTION ? 1 : 0];
	if (!--n->until_sample) {
		n->until_sample = 1 + bpf_get_prandom_u32() % (2 * c->asked.sample_every - 1);
		keep(ctx, kind, returned);
	}
	if (c->ifindex[1] && returned != c->asked.returns) {
		n->returned++;
		return XDP_DROP;
	}
	if (!(kind & PROBE)) {
		__u64 number;

		if (c->asked.chosen) {
			if (payload + PROBE_PAYLOAD > end)
				return XDP_DROP;
			__builtin_memcpy(&number, payload, PROBE_PAYLOAD);
			number = bpf_be64_to_cpu(number);
		} else {
			if (payload + NUMBER_PAYLOAD > end) {
				n->stray++;
				return XDP_DROP;
			}
			number = bpf_ntohl(*(__u32 *)payload);
		}
		if (number >= c->asked.count) {	/* no packet of ours had it */
			n->stray++;
			return XDP_DROP;
		}
		if (!comes_first(number)) {
			n->twice++;
			return XDP_DROP;
		}
		if (c->asked.chosen)
			look_at_order(c->asked.ordered, cpu, number);
	}
	n->own++;
	if (kind & PROBE && payload + PROBE_PAYLOAD <= end) {
		__u64 wire, latency;
		__u32 bucket;

		__builtin_memcpy(&wire, payload, PROBE_PAYLOAD);
		latency = bpf_ktime_get_ns() - bpf_be64_to_cpu(wire);
		n->probes++;
		if (latency > n->longest)
			n->longest = latency;
		bucket = latency_bucket(latency);
		if (bucket < LATENCY_BUCKETS)	/* for the verifier */
			__sync_fetch_and_add(&c->latency[bucket], 1);
	}
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
