/* SPDX-License-Identifier: MIT */
/* Which lines a trial has touched, and in which window last; and in which regions a place touched new ones. */
#ifndef SEEN_LINES_H
#define SEEN_LINES_H

#include <stdint.h>
#include <stdlib.h>

enum { LINES = 1 << 20, REGIONS = 1 << 16, TRIED = 64, REGION_SHIFT = 12 /* of lines: 256 KiB */ };

struct seen_line {
	uint64_t line; /* 0: a free place */
	uint64_t window; /* 0: none yet */
};

struct seen {
	struct seen_line *lines;
	uint64_t *regions;
};

static inline int seen_make(struct seen *seen)
{
	seen->lines = calloc(LINES, sizeof *seen->lines);
	seen->regions = calloc(REGIONS, sizeof *seen->regions);
	return seen->lines != NULL && seen->regions != NULL;
}

static inline void seen_free(struct seen *seen)
{
	free(seen->lines);
	free(seen->regions);
	seen->lines = NULL;
	seen->regions = NULL;
}

static inline uint64_t mixed(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 32;
}

/* NULL where there is no room. */
static inline struct seen_line *seen_line(struct seen *seen, uint64_t line)
{
	uint64_t slot = mixed(line) % LINES;
	for (int tried = 0; tried < TRIED; tried++, slot = (slot + 1) % LINES) {
		struct seen_line *found = &seen->lines[slot];
		if (found->line == 0)
			found->line = line;
		if (found->line == line)
			return found;
	}
	return NULL;
}

/* Whether a place was not known to touch lines there. */
static inline int seen_new_region(struct seen *seen, uint64_t place, uint64_t line)
{
	uint64_t key = mixed((line >> REGION_SHIFT) * 0xc2b2ae3d27d4eb4fULL ^ place) | 1, slot = key % REGIONS;
	for (int tried = 0; tried < TRIED; tried++, slot = (slot + 1) % REGIONS) {
		if (seen->regions[slot] == key)
			return 0;
		if (seen->regions[slot] == 0) {
			seen->regions[slot] = key;
			return 1;
		}
	}
	return 0;
}

#endif
