/* SPDX-License-Identifier: MIT */
/* What an x86 instruction is, beside what it does to memory: read of its bytes, by the opcode tables of Intel's SDM. */
#ifndef X86_TRAITS_H
#define X86_TRAITS_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

enum x86_map { ONE_BYTE, TWO_BYTES /* behind 0x0f */ };

/* An instruction's parts. */
struct x86_parts {
	uint8_t opcode, modrm;
	enum x86_map map;
	int locked, ds, gs; /* prefixes */
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
		else if (byte == 0x3e)
			parts->ds = 1;
		else if (byte == 0x65)
			parts->gs = 1;
		else if (byte != 0x26 && byte != 0x2e && byte != 0x36 && byte != 0x64 && byte != 0x66 && byte != 0x67 &&
			 byte != 0xf2 && byte != 0xf3 && (byte & 0xf0) != 0x40)
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

/* Whether the instruction may have a LOCK prefix, and so may have had one. */
static inline int x86_lockable(const struct x86_parts *parts)
{
	int extension = x86_extension(parts);
	if (!x86_operand_in_memory(parts))
		return 0;
	if (parts->map == TWO_BYTES)
		switch (parts->opcode) {
		case 0xab: /* bts */
		case 0xb3: /* btr */
		case 0xbb: /* btc */
		case 0xb0: /* cmpxchg */
		case 0xb1:
		case 0xc0: /* xadd */
		case 0xc1:
			return 1;
		case 0xba: /* bts, btr, btc */
			return extension >= 5;
		case 0xc7: /* cmpxchg8b, cmpxchg16b */
			return extension == 1;
		default:
			return 0;
		}
	if (parts->opcode < 0x38) /* add, or, adc, sbb, and, sub, xor */
		return (parts->opcode & 7) < 2;
	switch (parts->opcode) {
	case 0x80: /* the same, and cmp */
	case 0x81:
	case 0x83:
		return extension != 7;
	case 0x86: /* xchg */
	case 0x87:
		return 1;
	case 0xf6: /* not, neg */
	case 0xf7:
		return extension == 2 || extension == 3;
	case 0xfe: /* inc, dec */
	case 0xff:
		return extension < 2;
	default:
		return 0;
	}
}

/*
 * A kernel that runs on one CPU may have replaced the prefix of locks by one that does nothing (0x3e): the instruction
 * would be atomic on a server. The same prefix pads instructions that no LOCK is allowed for. xchg needs none.
 */
static inline int x86_atomic(const struct x86_parts *parts)
{
	int exchanges = parts->map == ONE_BYTE && (parts->opcode & 0xfe) == 0x86;
	return x86_lockable(parts) && (parts->locked || parts->ds || exchanges);
}

/* Whether it uses the stack, and what else it touches: an operand in memory, or a descriptor where it goes far. */
static inline uint16_t x86_stack_use(const struct x86_parts *parts)
{
	int extension = x86_extension(parts);
	if (parts->map == TWO_BYTES) /* push and pop of fs and gs */
		return (parts->opcode & 0xf6) == 0xa0 ? ON_STACK : 0;
	switch (parts->opcode) {
	case 0x50 ... 0x5f: /* push, pop */
	case 0x68: /* push */
	case 0x6a:
	case 0x9c: /* pushf, popf */
	case 0x9d:
	case 0xc2: /* ret */
	case 0xc3:
	case 0xc8: /* enter, leave */
	case 0xc9:
	case 0xe8: /* call */
		return ON_STACK;
	case 0xca: /* ret far */
	case 0xcb:
	case 0xcf: /* iret */
		return ON_STACK | LOADS_ELSEWHERE;
	case 0x8f: /* pop */
		if (extension != 0)
			return 0;
		return ON_STACK | (x86_operand_in_memory(parts) ? STORES_ELSEWHERE : 0);
	case 0xff: /* call, also far, and push */
		if (extension != 2 && extension != 3 && extension != 6)
			return 0;
		return ON_STACK | (x86_operand_in_memory(parts) ? LOADS_ELSEWHERE : 0);
	default:
		return 0;
	}
}

/* How it goes on elsewhere. An iret ends an interrupt, and no function that was called. */
static inline uint16_t x86_flow(const struct x86_parts *parts)
{
	int extension = x86_extension(parts);
	if (parts->map != ONE_BYTE)
		return 0;
	switch (parts->opcode) {
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
		return RETURNS;
	case 0xff: /* call and jump, also far */
		return extension >= 2 && extension <= 5 ? GOES_INDIRECTLY : 0;
	default:
		return 0;
	}
}

/* What each CPU has for itself is named by the segment gs. */
static inline uint16_t traits_of(const uint8_t *code, size_t size)
{
	struct x86_parts parts;
	if (!x86_parts_of(code, size, &parts))
		return 0;
	return (x86_atomic(&parts) ? ATOMIC : 0) | x86_flow(&parts) | x86_stack_use(&parts) | (parts.gs ? OF_CPU : 0);
}

#endif
