/* SPDX-License-Identifier: GPL-2.0 */
/* Reads LENGTH bytes of the packet: a hash byte by byte (HASH), headers one behind the other (HEADERS), or a sum. */
#include "common.h"

__u64 result;

SEC("tc") int run(struct __sk_buff *ctx)
{
	unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 found = 14695981039346656037ULL;

	if (filling(ctx))
		return FULL;
	if (data + LENGTH > end)
		return DONE;
#if defined(HASH)
	for (int number = 0; number < LENGTH; number++)
		found = (found ^ data[number]) * 1099511628211ULL;
#elif defined(HEADERS)
	for (int number = 0; number < LENGTH / 8; number++) {
		if (data + 8 > end)
			return DONE;
		if (data[0] > 200)
			break;
		found += data[2];
		data += 8 + (data[1] & 1) * 8;
	}
#else
	for (int number = 0; number < LENGTH / 4; number++)
		found += ((__u32 *)data)[number];
#endif
	result = found;
	return DONE;
}
