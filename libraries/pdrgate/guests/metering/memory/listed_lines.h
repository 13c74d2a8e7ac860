/* SPDX-License-Identifier: MIT */
/* Lines of data that count, by the instruction that touched them. listed_lines.py has the layout, too. */
#ifndef LISTED_LINES_H
#define LISTED_LINES_H

#include <stdint.h>

#include "seen_lines.h"

struct listed_line {
	uint64_t line; /* its number */
	uint64_t touched, written; /* bytes: of the instruction; of whoever wrote to the line */
	uint64_t writer; /* where that was, of lines that CPUs share */
	uint32_t place, lines; /* no lines: a free place */
	uint32_t kind;
	uint32_t missed_l2, missed_last, first_ever; /* of the lines; no level has what was never touched before */
};

/* The bytes of an access, a bit each, that lie in its first line, and those in the next. */
static inline uint64_t bytes_within(uint64_t address, uint64_t size)
{
	return (size >= 64 ? ~0ULL : (1ULL << size) - 1) << (address & 63);
}

static inline uint64_t bytes_beyond(uint64_t address, uint64_t size)
{
	uint64_t within = 64 - (address & 63);
	return size <= within ? 0 : size - within >= 64 ? ~0ULL : (1ULL << (size - within)) - 1;
}

/* A line that there is no room for stays unlisted, and counts as one without a name. */
static inline void list_line(struct listed_line *table, uint64_t room, const struct listed_line *one)
{
	uint64_t slot = mixed(one->line << 18 ^ one->place) % room;
	for (int tried = 0; tried < TRIED; tried++, slot = (slot + 1) % room) {
		struct listed_line *found = &table[slot];
		if (found->lines != 0 &&
		    (found->line != one->line || found->place != one->place || found->kind != one->kind))
			continue;
		found->line = one->line;
		found->place = one->place;
		found->kind = one->kind;
		found->touched |= one->touched;
		found->written |= one->written;
		if (one->writer != 0)
			found->writer = one->writer;
		found->lines++;
		found->missed_l2 += one->missed_l2;
		found->missed_last += one->missed_last;
		found->first_ever += one->first_ever;
		return;
	}
}

#endif
