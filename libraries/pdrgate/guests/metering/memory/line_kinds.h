/* SPDX-License-Identifier: MIT */
/*
 * What a line of data is. Which pages are stacks, and what each CPU has for itself, is known by the instructions that touch
 * them: it needs no word of the guest. All that lies between two lines of a CPU's own, and not far apart, is its own too.
 */
#ifndef LINE_KINDS_H
#define LINE_KINDS_H

#include <stdint.h>
#include <string.h>

#include "record.h"
#include "seen_lines.h"

enum {
	STACK_PAGES = 1 << 12,
	PAGE_OF_LINES = 6, /* 2^6 lines */
	BLOCKS = 16,
	BLOCK_OF_LINES = 15 /* 2^15 lines, 2 MiB: as much as a kernel gives to one CPU at once, and it begins there */
};

struct kinds {
	uint64_t stack[STACK_PAGES]; /* numbers of pages; 0: a free place */
	uint64_t last_stack;
	struct {
		uint64_t first, last;
	} cpu[BLOCKS];
	unsigned blocks;
};

static inline void kinds_forget(struct kinds *kinds)
{
	memset(kinds, 0, sizeof *kinds);
}

/* The place of a page of stacks, or a free one; NULL where there is no room. */
static inline uint64_t *kinds_stack(struct kinds *kinds, uint64_t page)
{
	uint64_t slot = mixed(page) % STACK_PAGES;
	for (int tried = 0; tried < TRIED; tried++, slot = (slot + 1) % STACK_PAGES)
		if (kinds->stack[slot] == page || kinds->stack[slot] == 0)
			return &kinds->stack[slot];
	return NULL;
}

static inline void kinds_learn_stack(struct kinds *kinds, uint64_t line)
{
	uint64_t page = line >> PAGE_OF_LINES, *place;
	if (page == kinds->last_stack)
		return;
	kinds->last_stack = page;
	place = kinds_stack(kinds, page);
	if (place != NULL)
		*place = page;
}

static inline void kinds_learn_cpu(struct kinds *kinds, uint64_t line)
{
	for (unsigned block = 0; block < kinds->blocks; block++)
		if (kinds->cpu[block].first >> BLOCK_OF_LINES == line >> BLOCK_OF_LINES) {
			if (line < kinds->cpu[block].first)
				kinds->cpu[block].first = line;
			if (line > kinds->cpu[block].last)
				kinds->cpu[block].last = line;
			return;
		}
	if (kinds->blocks < BLOCKS) {
		kinds->cpu[kinds->blocks].first = kinds->cpu[kinds->blocks].last = line;
		kinds->blocks++;
	}
}

/* What an access to a line says of it, by the traits of its instruction. */
static inline void kinds_learn(struct kinds *kinds, uint16_t traits, int stores, uint64_t line)
{
	if (traits & ON_STACK && !(traits & (stores ? STORES_ELSEWHERE : LOADS_ELSEWHERE)))
		kinds_learn_stack(kinds, line);
	else if (traits & OF_CPU)
		kinds_learn_cpu(kinds, line);
}

static inline unsigned kinds_of(struct kinds *kinds, const struct area *area, uint64_t areas, uint64_t line)
{
	uint64_t *stack = kinds_stack(kinds, line >> PAGE_OF_LINES), address = line << LINE_SHIFT;
	for (unsigned block = 0; block < kinds->blocks; block++)
		if (line >= kinds->cpu[block].first && line <= kinds->cpu[block].last)
			return PER_CPU;
	if (stack != NULL && *stack != 0)
		return STACK;
	for (uint64_t number = 0; number < areas && number < AREAS; number++)
		if (address >= area[number].first && address <= area[number].last)
			return area[number].kind % LINE_KINDS;
	return UNKNOWN;
}

#endif
