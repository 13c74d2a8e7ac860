/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which branches a CPU foresees: conditions by a small TAGE (Seznec and Michaud, 2006), targets by the branch's address
 * and by its history, returns by a stack.
 */
#ifndef BRANCHES_H
#define BRANCHES_H

#include <stdint.h>
#include <string.h>

enum { BASE = 1 << 13, TAGGED = 1 << 11, TABLES = 5, TARGETS_KNOWN = 1 << 12, STACK = 32, HISTORY = 128 };
static const int reach[TABLES] = { 4, 9, 19, 42, 90 }; /* branches of the history that a table heeds */

struct tagged {
	uint16_t tag;
	int8_t counter; /* at least 0: taken */
	uint8_t useful;
};
struct target {
	uint64_t tag, address;
};
static struct {
	int8_t base[BASE];
	struct tagged tagged[TABLES][TAGGED];
	struct target by_address[TARGETS_KNOWN], by_history[TARGETS_KNOWN];
	uint64_t stack[STACK], depth;
	uint8_t history[HISTORY]; /* newest first */
} branches;

static uint32_t branch_hash(uint64_t address, int length, int salt)
{
	uint64_t value = address * 0x9e3779b97f4a7c15ULL + salt * 0x517cc1b727220a95ULL, word = 0;
	for (int at = 0; at < length; at++) {
		word = word << 1 | branches.history[at];
		if (at % 32 == 31) {
			value = (value ^ word) * 0xff51afd7ed558ccdULL;
			value ^= value >> 29;
			word = 0;
		}
	}
	return (value ^ word ^ length) * 0xff51afd7ed558ccdULL >> 32;
}

static void branch_went(int taken, uint64_t target)
{
	memmove(branches.history + 1, branches.history, HISTORY - 1);
	branches.history[0] = taken ^ (target >> 4 & 1);
}

static void towards(int8_t *counter, int taken, int most)
{
	if (taken ? *counter < most : *counter > -most - 1)
		*counter += taken ? 1 : -1;
}

/* Whether a condition was foreseen, which is learned. */
static int condition_foreseen(uint64_t address, int taken)
{
	struct tagged *entry[TABLES], *own = NULL, *next = NULL;
	uint16_t tag[TABLES];
	int provider = -1, done = 0;
	for (int table = TABLES - 1; table >= 0; table--) {
		uint32_t hash = branch_hash(address, reach[table], table);
		entry[table] = &branches.tagged[table][hash % TAGGED];
		tag[table] = hash >> 16 | 1;
		if (entry[table]->tag != tag[table])
			continue;
		if (own == NULL) {
			own = entry[table];
			provider = table;
		} else if (next == NULL)
			next = entry[table];
	}
	int8_t *base = &branches.base[(address ^ address >> 13) % BASE];
	int otherwise = next != NULL ? next->counter >= 0 : *base >= 0, guess = otherwise;
	if (own != NULL) {
		int says = own->counter >= 0, weak = own->counter == 0 || own->counter == -1;
		guess = weak && own->useful == 0 ? otherwise : says;
		if (says != otherwise && says == taken && own->useful < 3)
			own->useful++;
		else if (says != otherwise && says != taken && own->useful > 0)
			own->useful--;
		towards(&own->counter, taken, 3);
	} else
		towards(base, taken, 1);
	for (int table = provider + 1; guess != taken && table < TABLES && !done; table++)
		if (entry[table]->useful == 0) {
			*entry[table] = (struct tagged){ tag[table], taken ? 0 : -1, 0 };
			done = 1;
		}
	for (int table = provider + 1; guess != taken && table < TABLES && !done; table++)
		entry[table]->useful--;
	branch_went(taken, 0);
	return guess == taken;
}

/* Whether it was foreseen where an indirect branch goes, which is learned. */
static int target_foreseen(uint64_t address, uint64_t goes_to)
{
	uint32_t hash = branch_hash(address, 16, TABLES);
	struct target *recent = &branches.by_history[hash % TARGETS_KNOWN];
	struct target *last = &branches.by_address[(address * 0x9e3779b97f4a7c15ULL >> 40) % TARGETS_KNOWN];
	uint64_t tag = address ^ (uint64_t)(hash >> 12) << 48;
	int known = recent->tag == tag;
	int foreseen = known ? recent->address == goes_to : last->tag == address && last->address == goes_to;
	*last = (struct target){ address, goes_to };
	if (known || !foreseen)
		*recent = (struct target){ tag, goes_to };
	branch_went(1, goes_to);
	return foreseen;
}

static void call_went(uint64_t returns_to)
{
	branches.stack[branches.depth++ % STACK] = returns_to;
}

/* Whether it was foreseen where a return goes: to its call, or where this one went before. */
static int return_foreseen(uint64_t address, uint64_t goes_to)
{
	if (branches.depth > 0 && branches.stack[--branches.depth % STACK] == goes_to)
		return 1;
	return target_foreseen(address, goes_to);
}

#endif
