/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have in common: how they are told to fill their maps, and numbers that cannot be foreseen. */
#ifndef COMMON_H
#define COMMON_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#ifndef TIMES
#define TIMES 8
#endif
#define FULL TC_ACT_OK
#define DONE TC_ACT_SHOT

__u64 state = 88172645463325252ULL;
__u32 filled;

/* The same numbers wherever it runs. */
static __always_inline __u32 drawn(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

/* Whether this run is one of those that fill the maps, by the packet's first byte. */
static __always_inline int filling(struct __sk_buff *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;

	return (void *)(data + 1) <= (void *)(long)ctx->data_end && data[0] == 0xff;
}

char licence[] SEC("license") = "GPL";

#endif
