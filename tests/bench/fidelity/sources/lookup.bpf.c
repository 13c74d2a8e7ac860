/* SPDX-License-Identifier: GPL-2.0 */
/* Adds one to random elements of a map: KIND, ELEMENTS (a power of two), ROOM (its size; it may be larger). */
#include "common.h"

#ifndef ROOM
#define ROOM ELEMENTS
#endif

struct element {
	__u64 value, rest[7];
};
struct {
	__uint(type, KIND);
	__uint(max_entries, ROOM);
	__type(key, __u32);
	__type(value, struct element);
} elements SEC(".maps");

SEC("tc") int run(struct __sk_buff *ctx)
{
	if (filling(ctx)) {
#ifdef EMPTY
		struct element none = {};
		__u32 next = filled;

		if (next < ELEMENTS && !bpf_map_update_elem(&elements, &next, &none, BPF_ANY))
			filled = next + 1;
		return filled < ELEMENTS ? DONE : FULL;
#else
		return FULL;
#endif
	}
	for (int number = 0; number < TIMES; number++) {
		__u32 key = drawn() & (ELEMENTS - 1);
		struct element *found = bpf_map_lookup_elem(&elements, &key);

		if (found)
			found->value++;
	}
	return DONE;
}
