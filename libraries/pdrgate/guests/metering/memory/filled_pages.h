/* SPDX-License-Identifier: MIT */
/* Pages that a CPU fills: stores to from begin to end, one store behind the other, and reads next to nothing meanwhile. */
#ifndef FILLED_PAGES_H
#define FILLED_PAGES_H

#include <stdint.h>

enum { PAGE_BYTES = 4096, FEW_LOADS = 64 /* a copy of a page takes as many loads as stores */ };

/* Stores in a row. */
struct filling {
	uint64_t begin, end, loads;
};

static inline void filling_loads(struct filling *row)
{
	row->loads++;
}

/* Whether a store completes a page. */
static inline int filling_stores(struct filling *row, uint64_t address, uint64_t size)
{
	if (address != row->end) {
		row->begin = address;
		row->loads = 0;
	}
	row->end = address + size;
	if (row->end % PAGE_BYTES != 0)
		return 0;
	int filled = row->end - row->begin >= PAGE_BYTES && row->loads <= FEW_LOADS;
	row->loads = 0;
	return filled;
}

#endif
