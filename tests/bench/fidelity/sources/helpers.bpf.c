/* SPDX-License-Identifier: GPL-2.0 */
/* Calls a function of the kernel's TIMES times: one of RANDOM, CHECKSUM, STORE, UPDATE, REPLACE, LOCK. */
#include "common.h"

struct element {
	struct bpf_spin_lock lock;
	__u32 number;
	__u64 value;
};
struct plain {
	__u64 words[4];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct element);
} locked SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct plain);
} array SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct plain);
} hash SEC(".maps");

__u64 sum;

SEC("tc") int run(struct __sk_buff *ctx)
{
	struct plain words = {};

	if (filling(ctx))
		return FULL;
	for (int number = 0; number < TIMES; number++) {
		__u32 key = number & 7;
#if defined(RANDOM)
		sum += bpf_get_prandom_u32();
#elif defined(CHECKSUM)
		sum += bpf_csum_diff(0, 0, (void *)&words, sizeof(words), number);
#elif defined(STORE)
		bpf_skb_store_bytes(ctx, 16, &words, sizeof(words), 0);
#elif defined(UPDATE)
		bpf_map_update_elem(&array, &key, &words, BPF_ANY);
#elif defined(REPLACE)
		bpf_map_update_elem(&hash, &key, &words, BPF_ANY);
#elif defined(LOCK)
		key = 0;
		struct element *one = bpf_map_lookup_elem(&locked, &key);
		if (!one)
			return DONE;
		bpf_spin_lock(&one->lock);
		one->value++;
		bpf_spin_unlock(&one->lock);
#endif
	}
	return DONE;
}
