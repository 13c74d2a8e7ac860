/* SPDX-License-Identifier: GPL-2.0 */
/* Goes one of two ways TIMES times, by bits of a random number (MASK -1), or always the same (MASK 0). */
#include "common.h"

__u64 one, other;
volatile __u32 mask = MASK;

SEC("tc") int run(struct __sk_buff *ctx)
{
	__u64 first = 0, second = 0;

	if (filling(ctx))
		return FULL;
	for (int number = 0; number < TIMES; number++) {
		__u32 bit = drawn() & mask & 0x10000;

		if (bit) {
			first += 3;
			asm volatile("" : "+r"(first));
		} else {
			second += 5;
			asm volatile("" : "+r"(second));
		}
	}
	one += first;
	other += second;
	return DONE;
}
