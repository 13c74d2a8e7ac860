/* SPDX-License-Identifier: MIT */
/* arm64 code: how it goes on after an instruction, and whose it is. All is read of its 32 bits (Arm ARM, C4.1). */
#ifndef ARM64_CODE_H
#define ARM64_CODE_H

#include "code_flow.h"

static inline uint32_t arm64_word(const uint8_t *code, size_t size)
{
	uint32_t word = 0;
	memcpy(&word, code, size < sizeof word ? size : sizeof word);
	return word;
}

/* One that stands for bits of the word: whether those that `mask` has are `value`. */
static inline int arm64_is(uint32_t word, uint32_t mask, uint32_t value)
{
	return (word & mask) == value;
}

/* Exclusive ones, CAS and CASP, and those that order and are not atomic. */
static inline int arm64_exclusive_or_ordered(uint32_t word)
{
	return arm64_is(word, 0x3f000000, 0x08000000);
}

static inline int arm64_pair(uint32_t word)
{
	return arm64_is(word, 0x3a000000, 0x28000000);
}

static inline int arm64_of_literal(uint32_t word)
{
	return arm64_is(word, 0x3b000000, 0x18000000);
}

/* A load or store of one register, by any way to say the address. */
static inline int arm64_single(uint32_t word)
{
	return arm64_is(word, 0x3a000000, 0x38000000);
}

/* LDADD and its like, SWP, and LDAPR, which orders only. */
static inline int arm64_read_modify_write(uint32_t word)
{
	return arm64_is(word, 0x3f200c00, 0x38200000);
}

/* LDTR and STTR: a kernel's, with the privilege of programs. */
static inline int arm64_unprivileged(uint32_t word)
{
	return arm64_is(word, 0x3b200c00, 0x38000800);
}

/*
 * A kernel has the view 2 when QEMU starts it (target/arm/cpu.h, ARMMMUIdx_E10_1), and its programs the view 0. One that
 * runs as a hypervisor has others, and no guest of ours is one.
 */
static inline uint32_t programs_views(unsigned first_view)
{
	enum { OF_KERNEL = 2, OF_PROGRAMS = 0 };
	return first_view == OF_KERNEL ? 1 << OF_PROGRAMS : 0;
}

/* Loads and stores that QEMU makes itself, with the privilege of the code: no atomics, which call functions of its own. */
static inline int accesses_plainly(const uint8_t *code, size_t size)
{
	uint32_t word = arm64_word(code, size);
	int prefetches = arm64_is(word, 0xffc00000, 0xf9800000) || arm64_is(word, 0xffe00000, 0xf8a00000) ||
			 arm64_is(word, 0xffe00c00, 0xf8800000) || arm64_is(word, 0xff000000, 0xd8000000);
	if (prefetches || arm64_unprivileged(word))
		return 0;
	if (arm64_pair(word) || arm64_of_literal(word))
		return 1;
	if (!arm64_single(word))
		return 0;
	/* By a register, or an offset in one of three ways; what is left of the other half are atomics. */
	return arm64_is(word, 0x01000000, 0x01000000) || arm64_is(word, 0x00200000, 0) ||
	       arm64_is(word, 0x00200c00, 0x00200800);
}

/* Calls of the kernel, a hypervisor or firmware, traps, and what ends an exception. */
static inline int changes_privilege(const uint8_t *code, size_t size)
{
	uint32_t word = arm64_word(code, size);
	return arm64_is(word, 0xff000000, 0xd4000000) || arm64_is(word, 0xfffff000, 0xd69f0000);
}

/* None of the CPUs that guests have moves any number of bytes by one instruction (FEAT_MOPS). */
static inline int string_accesses(const uint8_t *code, size_t size)
{
	(void)code, (void)size;
	return 0;
}

/* RET, and those that authenticate. */
static inline int arm64_returns(uint32_t word)
{
	return arm64_is(word, 0xfffff000, 0xd65f0000);
}

/* BR and BLR, and those that authenticate. */
static inline int arm64_goes_indirectly(uint32_t word)
{
	return arm64_is(word, 0xfedff000, 0xd61f0000);
}

static inline enum flow flow_after(const uint8_t *code, size_t size)
{
	uint32_t word = arm64_word(code, size);
	if (arm64_is(word, 0xfc000000, 0x94000000) || arm64_is(word, 0xfefff000, 0xd63f0000)) /* BL, BLR */
		return CALLS;
	return arm64_returns(word) ? ENDS_CALL : GOES_ON;
}

/* B and BL. */
static inline uint64_t goes_to(const uint8_t *code, size_t size, uint64_t end)
{
	uint32_t word = arm64_word(code, size);
	if (!arm64_is(word, 0x7c000000, 0x14000000))
		return 0;
	return end - sizeof word + (int64_t)((int32_t)(word << 6) >> 4);
}

#endif
