/* SPDX-License-Identifier: GPL-2.0 */
/* Goes from element to element of an array, each of which holds the number of the next: ELEMENTS, a power of two. */
#include "common.h"

struct element {
	__u32 next, rest[15];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ELEMENTS);
	__type(key, __u32);
	__type(value, struct element);
} elements SEC(".maps");

__u32 at;

SEC("tc") int run(struct __sk_buff *ctx)
{
	__u32 key = at;

	if (filling(ctx)) {
		__u32 number = filled;
		struct element *one = bpf_map_lookup_elem(&elements, &number);

		if (one) {
			one->next = (number * 1664525 + 1013904223) & (ELEMENTS - 1);
			filled = number + 1;
		}
		return filled < ELEMENTS ? DONE : FULL;
	}
	for (int number = 0; number < TIMES; number++) {
		struct element *found = bpf_map_lookup_elem(&elements, &key);

		if (!found)
			return DONE;
		key = found->next;
	}
	at = key;
	return DONE;
}
