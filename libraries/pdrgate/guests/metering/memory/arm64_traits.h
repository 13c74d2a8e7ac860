/* SPDX-License-Identifier: MIT */
/* What an arm64 instruction is, beside what it does to memory. */
#ifndef ARM64_TRAITS_H
#define ARM64_TRAITS_H

#include "arm64_code.h"
#include "record.h"

/*
 * What each CPU has for itself is named by no instruction: its distance is read from a register of the CPU, and added.
 * Registers that are made of it so far, a bit each, from the begin of a block on.
 */
struct code_state {
	uint32_t own;
};

enum { ARM64_NONE = 31 /* the register that is zero, or the stack pointer where it is a base */ };

/* Loads and stores; those of a literal name no register. */
static inline int arm64_accesses(uint32_t word)
{
	return arm64_is(word, 0x0a000000, 0x08000000) && !arm64_of_literal(word);
}

/* STXR ends what LDXR began, and stores. LDAR, STLR and LDAPR order, and are not atomic. */
static inline int arm64_atomic(uint32_t word)
{
	if (arm64_exclusive_or_ordered(word))
		return arm64_is(word, 0x00800000, 0) || arm64_is(word, 0x00200000, 0x00200000);
	return arm64_read_modify_write(word) && !arm64_is(word, 0x3ffffc00, 0x38bfc000);
}

static inline int arm64_has(const struct code_state *state, unsigned number)
{
	return number != ARM64_NONE && state->own >> number & 1;
}

static inline void arm64_forget(struct code_state *state, unsigned number)
{
	state->own &= ~(1u << number);
}

/* PRFM by a number or a register, and PRFUM: where loads have a register they have an operation. */
static inline int arm64_prefetches(uint32_t word)
{
	return arm64_is(word, 0xffc00000, 0xf9800000) || arm64_is(word, 0xffe00c00, 0xf8a00800) ||
	       arm64_is(word, 0xffe00c00, 0xf8800000);
}

/* Whether a load or store is by a register that is made of the CPU's distance. It forgets those that are loaded. */
static inline int arm64_accesses_own(uint32_t word, struct code_state *state)
{
	unsigned to = word & 31, base = word >> 5 & 31, second = word >> 10 & 31, index = word >> 16 & 31;
	int by_register = arm64_is(word, 0x3b200c00, 0x38200800);
	int own = arm64_has(state, base) || (by_register && arm64_has(state, index));
	int of_vector = arm64_is(word, 0x04000000, 0x04000000);
	int stores = arm64_pair(word) ? arm64_is(word, 0x00400000, 0)
				      : arm64_single(word) && arm64_is(word, 0x00c00000, 0) &&
						!arm64_read_modify_write(word);
	if (of_vector || stores || arm64_prefetches(word))
		return own;
	arm64_forget(state, to);
	if (arm64_pair(word))
		arm64_forget(state, second);
	if (arm64_exclusive_or_ordered(word)) {
		arm64_forget(state, second);
		arm64_forget(state, index); /* of a store the result, of CAS what was there */
		if (arm64_is(word, 0xbfa07c00, 0x08207c00)) /* CASP has two of them */
			arm64_forget(state, index | 1);
	}
	return own;
}

/* What an instruction that accesses no memory makes of the registers. */
static inline void arm64_learn(uint32_t word, struct code_state *state)
{
	unsigned to = word & 31, first = word >> 5 & 31, second = word >> 16 & 31;
	int adds = arm64_is(word, 0xff200000, 0x8b000000) || arm64_is(word, 0xffe00000, 0x8b200000);
	int adds_number = arm64_is(word, 0xff800000, 0x91000000);
	int moves = arm64_is(word, 0xffe0ffe0, 0xaa0003e0);
	/* MRS of TPIDR_EL1, or of TPIDR_EL2 in a kernel that is a hypervisor */
	int own = arm64_is(word, 0xffffffe0, 0xd538d080) || arm64_is(word, 0xffffffe0, 0xd53cd040) ||
		  (adds && (arm64_has(state, first) || arm64_has(state, second))) ||
		  (adds_number && arm64_has(state, first)) || (moves && arm64_has(state, second));
	/* A conditional comparison has flags where others have a register, and what a vector gets is in none. */
	if (arm64_is(word, 0x3fe00c00, 0x3a400000) || arm64_is(word, 0x3fe00c00, 0x3a400800) ||
	    arm64_is(word, 0x0e000000, 0x0e000000))
		return;
	/* Branches, and what goes to the system from a register, change none. */
	if (arm64_is(word, 0x1c000000, 0x14000000) && !arm64_is(word, 0xfff00000, 0xd5300000))
		return;
	arm64_forget(state, to);
	if (own && to != ARM64_NONE)
		state->own |= 1u << to;
}

static inline uint16_t traits_of(const uint8_t *code, size_t size, struct code_state *state)
{
	uint32_t word = arm64_word(code, size);
	if (arm64_accesses(word))
		return (arm64_atomic(word) ? ATOMIC : 0) | ((word >> 5 & 31) == ARM64_NONE ? ON_STACK : 0) |
		       (arm64_accesses_own(word, state) ? OF_CPU : 0);
	arm64_learn(word, state);
	return (arm64_returns(word) ? RETURNS : 0) | (arm64_goes_indirectly(word) ? GOES_INDIRECTLY : 0);
}

#endif
