/* SPDX-License-Identifier: GPL-2.0 */
/* Looks random addresses up in a trie of ELEMENTS prefixes. */
#include "common.h"

struct prefix {
	__u32 length, address;
};
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, ELEMENTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u64);
} prefixes SEC(".maps");

__u64 sum;

SEC("tc") int run(struct __sk_buff *ctx)
{
	struct prefix key = { .length = 32 };

	if (filling(ctx)) {
		__u64 value = filled;

		key.address = filled * 2654435761u;
		if (filled < ELEMENTS && !bpf_map_update_elem(&prefixes, &key, &value, BPF_ANY))
			filled++;
		return filled < ELEMENTS ? DONE : FULL;
	}
	for (int number = 0; number < TIMES; number++) {
		key.address = (drawn() & (ELEMENTS - 1)) * 2654435761u;
		__u64 *found = bpf_map_lookup_elem(&prefixes, &key);

		if (found)
			sum += *found;
	}
	return DONE;
}
