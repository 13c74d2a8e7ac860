/* SPDX-License-Identifier: MIT */
/* The parts of an x86 instruction, read of its bytes by the opcode tables of Intel's SDM, and how code goes on then. */
#ifndef X86_CODE_H
#define X86_CODE_H

#include <stddef.h>
#include <stdint.h>

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

#endif
