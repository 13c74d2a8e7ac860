/* SPDX-License-Identifier: MIT */
/*
 * What windows executed and touched, one after the other, for who models the CPU's time: a block is followed by what its
 * instructions access, and by the next block, which shows where its last instruction went.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>

enum { STEPS = 1 << 21, TRACED_CODE = 15 /* bytes: no instruction of x86 has more */ };
enum { STEP_SHIFT = 18 /* 2^18 places */ };

/* What a step is, by the bits above its place. */
enum step_kind {
	STEP_WINDOW = 1 << 0, /* a window begins; `address` is whether the one that ends counts */
	STEP_BLOCK = 1 << 1,
	STEP_STORE = 1 << 2, /* an access that is no load */
	STEP_MISSED_L1 = 1 << 3,
	STEP_MISSED_L2 = 1 << 4,
	STEP_MISSED_LAST = 1 << 5,
	STEP_FIRST_EVER = 1 << 6, /* the model has never seen the line */
};

struct step {
	uint64_t address; /* that is accessed */
	uint64_t what; /* the place, and bits of what happened there */
};

struct traced_code {
	uint8_t size, byte[TRACED_CODE];
};

#endif
