/* SPDX-License-Identifier: GPL-2.0 */
/* Adds to a counter TIMES times: by atomic instructions (ADD), by compare and exchange (EXCHANGE), or by neither. */
#include "common.h"

__u64 counter;

SEC("tc") int run(struct __sk_buff *ctx)
{
	if (filling(ctx))
		return FULL;
	for (int number = 0; number < TIMES; number++) {
#if defined(ADD)
		__sync_fetch_and_add(&counter, 1);
#elif defined(EXCHANGE)
		__u64 old = *(volatile __u64 *)&counter;
		__sync_val_compare_and_swap(&counter, old, old + 1);
#else
		*(volatile __u64 *)&counter += 1;
#endif
	}
	return DONE;
}
