/* SPDX-License-Identifier: Apache-2.0 */
/* Latencies in buckets: all of them are counted, in little memory, with a bounded relative error. */
#ifndef PDRGATE_LATENCY_H
#define PDRGATE_LATENCY_H

#include <linux/types.h>

/* Buckets are exact below 2^8 ns and at most 1/128 of their values wide above. */
#define LATENCY_BITS 7
#define LATENCY_TOP 36			/* 2^36 ns and more, over a minute, is all in the last bucket */
#define LATENCY_BUCKETS ((LATENCY_TOP - LATENCY_BITS + 1) << LATENCY_BITS)

static inline __u32 latency_bucket(__u64 ns)
{
	__u32 shift = 0;

	if (ns >> LATENCY_TOP)
		ns = (1ull << LATENCY_TOP) - 1;
	for (__u32 step = 16; step; step >>= 1)
		if (ns >> (shift + step - 1) >> (LATENCY_BITS + 1))
			shift += step;
	return (shift << LATENCY_BITS) + (__u32)(ns >> shift);
}

/* The largest latency of a bucket, ns. */
static inline __u64 latency_bucket_end(__u32 bucket)
{
	__u32 shift = bucket >> LATENCY_BITS ? (bucket >> LATENCY_BITS) - 1 : 0;

	return ((bucket - (shift << LATENCY_BITS) + 1ull) << shift) - 1;
}

/* The nearest-rank percentile, the smallest value that `percent` of all `count` do not exceed, as the upper end of its
 * bucket: at most 1/128 too high, and never above the longest, which is exact. */
static inline __u64 latency_percentile(const __u32 *buckets, __u64 count, __u64 longest, __u64 percent)
{
	__u64 rank = (count * percent + 99) / 100, seen = 0, end;

	for (__u32 bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
		seen += buckets[bucket];
		if (seen >= rank) {
			end = latency_bucket_end(bucket);
			return end < longest ? end : longest;
		}
	}
	return longest;
}

#endif
