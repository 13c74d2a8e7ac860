/* SPDX-License-Identifier: MIT */
/* What an x86 instruction is, beside what it does to memory: read of its bytes. */
#ifndef X86_TRAITS_H
#define X86_TRAITS_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

/*
 * A kernel that runs on one CPU has replaced the prefix of locks by one that does nothing (0x3e, a segment that compilers
 * name nowhere but before indirect jumps and in padding): the instruction would be atomic on a server. What each CPU has
 * for itself is named by a segment too (0x65). Pushes, pops, calls and returns touch a stack and nothing else.
 */
static inline uint16_t traits_of(const uint8_t *code, size_t size)
{
	size_t at = 0;
	int locked = 0, unlocked = 0;
	uint16_t traits = 0;
	for (; at < size; at++) {
		uint8_t byte = code[at];
		if (byte == 0xf0)
			locked = 1;
		else if (byte == 0x3e)
			unlocked = 1;
		else if (byte == 0x65)
			traits = OF_CPU;
		else if (byte != 0x66 && byte != 0x2e && byte != 0xf2 && byte != 0xf3 && byte != 0x64 &&
			 (byte & 0xf0) != 0x40)
			break;
	}
	if (at == size)
		return 0;
	uint8_t opcode = code[at], operands = at + 1 < size ? code[at + 1] : 0;
	int of_memory = operands >> 6 != 3;
	if (opcode == 0xff && ((operands >> 3 & 7) == 2 || (operands >> 3 & 7) == 4))
		return traits | GOES_INDIRECTLY;
	if (opcode == 0xc2 || opcode == 0xc3)
		return RETURNS | ON_STACK;
	if ((opcode & 0xf0) == 0x50 || opcode == 0xe8)
		return ON_STACK;
	if (locked || ((opcode == 0x86 || opcode == 0x87) && of_memory))
		return traits | ATOMIC;
	return traits | (unlocked && !(opcode == 0x0f && operands == 0x1f) ? ATOMIC : 0);
}

#endif
