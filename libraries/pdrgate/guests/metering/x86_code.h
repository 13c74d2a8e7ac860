/* SPDX-License-Identifier: MIT */
/* The parts of an x86 instruction, read of its bytes by the opcode tables of Intel's SDM, and how code goes on then. */
#ifndef X86_CODE_H
#define X86_CODE_H

#include "code_flow.h"

enum x86_map { ONE_BYTE, TWO_BYTES /* behind 0x0f */ };

struct x86_parts {
	uint8_t opcode, modrm;
	enum x86_map map;
	int locked, repeated, ds, gs; /* prefixes */
};

/* Whether there is an opcode. What has no ModRM byte gets whatever comes next, or one of registers. */
static inline int x86_parts_of(const uint8_t *code, size_t size, struct x86_parts *parts)
{
	size_t at = 0;
	*parts = (struct x86_parts){ .map = ONE_BYTE };
	for (; at < size; at++) {
		uint8_t byte = code[at];
		if (byte == 0xf0)
			parts->locked = 1;
		else if (byte == 0xf2 || byte == 0xf3)
			parts->repeated = 1;
		else if (byte == 0x3e)
			parts->ds = 1;
		else if (byte == 0x65)
			parts->gs = 1;
		else if (byte != 0x26 && byte != 0x2e && byte != 0x36 && byte != 0x64 && byte != 0x66 && byte != 0x67 &&
			 (byte & 0xf0) != 0x40)
			break;
	}
	if (at < size && code[at] == 0x0f) {
		parts->map = TWO_BYTES;
		at++;
	}
	if (at >= size)
		return 0;
	parts->opcode = code[at];
	parts->modrm = at + 1 < size ? code[at + 1] : 0xc0;
	return 1;
}

static inline int x86_extension(const struct x86_parts *parts)
{
	return parts->modrm >> 3 & 7;
}

static inline int x86_operand_in_memory(const struct x86_parts *parts)
{
	return parts->modrm >> 6 != 3;
}

/* Also far. */
static inline int x86_calls(const struct x86_parts *parts)
{
	int extension = x86_extension(parts);
	return parts->map == ONE_BYTE &&
	       (parts->opcode == 0xe8 || (parts->opcode == 0xff && (extension == 2 || extension == 3)));
}

/* Also far. An iret ends an interrupt, and no function that was called. */
static inline int x86_returns(const struct x86_parts *parts)
{
	return parts->map == ONE_BYTE && (parts->opcode & 0xf6) == 0xc2;
}

/* A call or a jump, also far, to where a register or memory says. */
static inline int x86_goes_indirectly(const struct x86_parts *parts)
{
	int extension = x86_extension(parts);
	return parts->map == ONE_BYTE && parts->opcode == 0xff && extension >= 2 && extension <= 5;
}

/* A jump, on a condition or not, to where the instruction itself says: it touches no memory. */
static inline int x86_jumps_directly(const struct x86_parts *parts)
{
	if (parts->map == TWO_BYTES)
		return (parts->opcode & 0xf0) == 0x80;
	return (parts->opcode & 0xf0) == 0x70 || (parts->opcode & 0xfc) == 0xe0 || (parts->opcode & 0xfd) == 0xe9;
}

/*
 * x86 has views of its own for programs (target/i386/cpu.h, MMU_USER_IDX), whose numbers are not the same in all versions
 * of QEMU. The firmware's first access shows which they are: it is made in real mode.
 */
static inline uint32_t programs_views(unsigned first_view)
{
	enum { OLD_REAL_MODE = 2, NEW_REAL_MODE = 5 };
	if (first_view == OLD_REAL_MODE)
		return 1 << 1;
	return first_view == NEW_REAL_MODE ? 1 << 2 | 1 << 3 /* of 64 and of 32 bits */ : 0;
}

/* Where the opcode begins of an x86 instruction, behind its prefixes, and whether one of these says to repeat it. */
static inline size_t opcode_at(const uint8_t *code, size_t size, int *repeats)
{
	size_t at = 0;
	*repeats = 0;
	for (; at < size; at++) {
		if (code[at] == 0xf2 || code[at] == 0xf3)
			*repeats = 1;
		else if (code[at] != 0x66 && code[at] != 0x67 && code[at] != 0x2e && code[at] != 0x3e &&
			 (code[at] & 0xf0) != 0x40)
			break;
	}
	return at;
}

/*
 * Whether an x86 instruction accesses memory by itself: moves, sums, comparisons, push, pop, call and return. Others are
 * left out, of which QEMU has functions of its own do the access: before version 8 it goes on to report what such
 * functions access when the instruction is done, and aborts where what was registered is gone by then.
 */
static inline int accesses_plainly(const uint8_t *code, size_t size)
{
	int repeats;
	size_t at = opcode_at(code, size, &repeats);
	if (at + 1 >= size) /* push and pop of a register, and return */
		return at < size && ((code[at] & 0xf0) == 0x50 || code[at] == 0xc3);
	switch (code[at]) {
	case 0xa0 ... 0xa3: /* mov */
	case 0xc2: /* return */
	case 0xe8: /* call */
		return 1;
	case 0x00 ... 0x3f: /* sums and comparisons, of which the others have no operand in memory */
		if ((code[at] & 7) > 3)
			return code[at] == 0x0f && (code[at + 1] & 0xf6) == 0xb6 && at + 2 < size &&
			       code[at + 2] >> 6 != 3; /* movzx, movsx */
		return code[at + 1] >> 6 != 3;
	case 0x63: /* movsxd */
	case 0x80 ... 0x85: /* sums and comparisons */
	case 0x88 ... 0x8b: /* mov */
	case 0xc6 ... 0xc7:
		return code[at + 1] >> 6 != 3;
	default:
		return 0;
	}
}

/* Whether another privilege may hold after an x86 instruction: far transfers of the SDM, and entries of guests. */
static inline int changes_privilege(const uint8_t *code, size_t size)
{
	int repeats;
	size_t at = opcode_at(code, size, &repeats);
	if (at == size)
		return 0;
	switch (code[at]) {
	case 0x9a: /* call */
	case 0xca ... 0xcf: /* return, int3, int, into, iret */
	case 0xea: /* jmp */
	case 0xf1: /* int1 */
		return 1;
	case 0xff:
		return at + 1 < size && ((code[at + 1] >> 3 & 7) == 3 || (code[at + 1] >> 3 & 7) == 5);
	case 0x0f:
		/* syscall, sysret; sysenter, sysexit; rsm; vmrun and its like */
		return at + 1 < size && (code[at + 1] == 0x05 || code[at + 1] == 0x07 || code[at + 1] == 0x34 ||
					 code[at + 1] == 0x35 || code[at + 1] == 0xaa || code[at + 1] == 0x01);
	default:
		return 0;
	}
}

/* The accesses of a string instruction that show what it moves; 0: it is none. */
static inline int string_accesses(const uint8_t *code, size_t size)
{
	struct x86_parts parts;
	if (!x86_parts_of(code, size, &parts) || !parts.repeated || parts.map != ONE_BYTE)
		return 0;
	switch (parts.opcode & ~1) {
	case 0x6c: /* ins */
	case 0xa4: /* movs */
	case 0xaa: /* stos */
		return WRITES;
	case 0x6e: /* outs */
	case 0xa6: /* cmps */
	case 0xac: /* lods */
	case 0xae: /* scas */
		return READS;
	default:
		return 0;
	}
}

/* How x86 code goes on after an instruction. */
static inline enum flow flow_after(const uint8_t *code, size_t size)
{
	struct x86_parts parts;
	if (!x86_parts_of(code, size, &parts))
		return GOES_ON;
	return x86_calls(&parts) ? CALLS : x86_returns(&parts) ? ENDS_CALL : GOES_ON;
}

/* Where a call or a jump goes that has the distance in its code, of 32 bits; 0: it is none. */
static inline uint64_t goes_to(const uint8_t *code, size_t size, uint64_t end)
{
	int repeats;
	int32_t distance;
	size_t at = opcode_at(code, size, &repeats);
	int jumps_if = at + 6 == size && code[at] == 0x0f && (code[at + 1] & 0xf0) == 0x80;
	if (!jumps_if && !(at + 5 == size && (code[at] & ~1) == 0xe8))
		return 0;
	memcpy(&distance, code + size - sizeof distance, sizeof distance);
	return end + (int64_t)distance;
}

#endif
