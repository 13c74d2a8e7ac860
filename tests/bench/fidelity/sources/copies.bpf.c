/* SPDX-License-Identifier: GPL-2.0 */
/* Copies LENGTH bytes of the packet into an element: by the kernel (HELPER), or by the program, eight at a time. */
#include "common.h"

struct element {
	__u64 words[192];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct element);
} elements SEC(".maps");

SEC("tc") int run(struct __sk_buff *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key = 0;
	struct element *into;

	if (filling(ctx))
		return FULL;
	into = bpf_map_lookup_elem(&elements, &key);
	if (!into || data + LENGTH > end)
		return DONE;
#ifdef HELPER
	bpf_skb_load_bytes(ctx, 0, into, LENGTH);
#else
	for (int number = 0; number < LENGTH / 8; number++)
		*(volatile __u64 *)&into->words[number] = ((__u64 *)data)[number];
#endif
	return DONE;
}
