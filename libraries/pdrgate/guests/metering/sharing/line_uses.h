/* SPDX-License-Identifier: MIT */
/*
 * What each CPU did to a line, and what CPUs share of it by that.
 *
 * A line is shared where another CPU touched it not long ago, and one of the two wrote to it: on hardware it then goes
 * from one core to another. Where each CPU that shares it touches other bytes of it, it is shared falsely.
 */
#ifndef LINE_USES_H
#define LINE_USES_H

#include "../memory/seen_lines.h"

/* What a CPU did to a line. */
struct use {
	uint64_t touched, written; /* bytes */
	uint64_t at, written_at; /* when it was touched last, and written to: instructions of all CPUs */
	uint64_t step; /* the last for which it counted as shared */
};
struct line {
	uint64_t line; /* 0: a free entry */
	uint64_t writer; /* where it was written to last */
	uint64_t tick, since; /* when it was written last, and the bytes that were since the clock ticked */
	struct use cpu[]; /* one for each of the guest */
};
struct line_table {
	char *entries;
	size_t entry; /* bytes of one */
	int cpus;
	uint64_t now, window; /* instructions of all CPUs; what was done longer ago than a window is over */
};

/* Whether there is memory for it. */
static inline int lines_make(struct line_table *lines, int cpus, uint64_t window)
{
	*lines = (struct line_table){ .entry = sizeof(struct line) + cpus * sizeof(struct use), .cpus = cpus,
				      .now = window + 1, .window = window };
	lines->entries = calloc(LINES, lines->entry);
	return lines->entries != NULL;
}

static inline void lines_free(struct line_table *lines)
{
	free(lines->entries);
	lines->entries = NULL;
}

/* NULL where there is no room. */
static inline struct line *line_at(struct line_table *lines, uint64_t number)
{
	uint64_t slot = mixed(number) % LINES;
	for (int tried = 0; tried < TRIED; tried++, slot = (slot + 1) % LINES) {
		struct line *found = (struct line *)(lines->entries + slot * lines->entry);
		if (found->line == 0)
			found->line = number;
		if (found->line == number)
			return found;
	}
	return NULL;
}

/* What was written not long ago: one that reads on for long has taken the line back. */
static inline uint64_t written(const struct line_table *lines, const struct use *use)
{
	return lines->now - use->written_at <= lines->window ? use->written : 0;
}

static inline void note_use(const struct line_table *lines, struct use *use, uint64_t touched, uint64_t wrote)
{
	if (lines->now - use->at > lines->window)
		use->touched = 0;
	use->touched |= touched;
	use->at = lines->now;
	if (wrote != 0) {
		use->written = wrote | written(lines, use);
		use->written_at = lines->now;
	}
}

/* What a CPU shares of a line with others. */
struct sharing_of_line {
	int shared, truly;
	uint64_t written; /* bytes, by one or the other */
};

static inline struct sharing_of_line
shared_with_others(const struct line_table *lines, const struct line *line, unsigned cpu)
{
	const struct use *own = &line->cpu[cpu];
	struct sharing_of_line found = { 0 };
	for (int number = 0; number < lines->cpus; number++) {
		const struct use *other = &line->cpu[number];
		uint64_t either = written(lines, own) | written(lines, other);
		if (other == own || lines->now - other->at > lines->window || either == 0)
			continue;
		found.shared = 1;
		found.truly |= (written(lines, other) & own->touched) != 0 || (written(lines, own) & other->touched) != 0;
		found.written |= either;
	}
	return found;
}

#endif
