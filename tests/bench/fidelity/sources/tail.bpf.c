/* SPDX-License-Identifier: GPL-2.0 */
/* Calls a program by its tail TIMES times, at a place of a table that is known only when it runs. */
#include "common.h"

__u32 depth;

int again(struct __sk_buff *ctx);
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, int(struct __sk_buff *));
} programs SEC(".maps") = { .values = { [0] = (void *)&again, [1] = (void *)&again } };

SEC("tc") int again(struct __sk_buff *ctx)
{
	if (depth++ < TIMES)
		bpf_tail_call(ctx, &programs, depth & 1);
	return DONE;
}

SEC("tc") int run(struct __sk_buff *ctx)
{
	if (filling(ctx))
		return FULL;
	depth = 1;
	bpf_tail_call(ctx, &programs, depth & 1);
	return DONE;
}
