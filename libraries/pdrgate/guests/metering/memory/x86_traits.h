/* SPDX-License-Identifier: MIT */
/* What an x86 instruction is, beside what it does to memory. */
#ifndef X86_TRAITS_H
#define X86_TRAITS_H

#include "x86_code.h"
#include "record.h"

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

/* Each instruction says all of itself. */
struct code_state {
	uint32_t unused;
};

/* What each CPU has for itself is named by the segment gs. */
static inline uint16_t traits_of(const uint8_t *code, size_t size, struct code_state *state)
{
	struct x86_parts parts;
	(void)state;
	if (!x86_parts_of(code, size, &parts))
		return 0;
	return (x86_atomic(&parts) ? ATOMIC : 0) | (x86_goes_indirectly(&parts) ? GOES_INDIRECTLY : 0) |
	       (x86_returns(&parts) ? RETURNS : 0) | x86_stack_use(&parts) | (parts.gs ? OF_CPU : 0);
}

#endif
