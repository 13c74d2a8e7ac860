/* SPDX-License-Identifier: MIT */
/*
 * Whether code below the kernel's addresses is a program's: by the privilege with which its accesses to memory are made.
 * An address says nothing of that, for a kernel may map code of its own wherever it likes.
 *
 * QEMU's interface has no registers up to API 1. But each access comes with the number of the page tables' view that it
 * goes by, and x86 has views of its own for programs (target/i386/cpu.h, MMU_USER_IDX). Their numbers are not the same in
 * all versions of QEMU. The first access of all shows which they are: it is the firmware's, in real mode, before any
 * kernel runs. Where it is neither of those known, programs are known by their addresses.
 */
#ifndef PRIVILEGE_H
#define PRIVILEGE_H

#include "qemu_interface.h"

enum { NOWHERE = 1 }; /* the address of a kernel's code that is counted without its own */
enum { VIEW = 15, OLD_REAL_MODE = 2, NEW_REAL_MODE = 5 };

static uint32_t views_of_programs; /* a bit for each number */
static int firmware_was_seen;

static inline void see_firmware(unsigned cpu, plugin_access access, uint64_t address, void *then)
{
	(void)cpu, (void)address;
	if (firmware_was_seen)
		return;
	firmware_was_seen = 1;
	if ((access & VIEW) == OLD_REAL_MODE)
		views_of_programs = 1 << 1;
	else if ((access & VIEW) == NEW_REAL_MODE)
		views_of_programs = 1 << 2 | 1 << 3; /* of 64 and of 32 bits */
	((void (*)(void))then)();
}

/* Whether accesses show who makes them. */
static inline int knows_programs(void)
{
	return views_of_programs != 0;
}

static inline int is_of_program(plugin_access access)
{
	return views_of_programs >> (access & VIEW) & 1;
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

/* Has the first access of all looked at, of a block that is translated before it, and then calls `then`. */
static inline void look_at_firmware(struct qemu_plugin_tb *tb, void (*then)(void))
{
	for (size_t number = 0; !firmware_was_seen && number < qemu_plugin_tb_n_insns(tb); number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		uint8_t code[CODE_MAX];
		if (accesses_plainly(code, code_of(insn, code)))
			qemu_plugin_register_vcpu_mem_cb(insn, see_firmware, NO_REGISTERS, READS_AND_WRITES,
							 (void *)then);
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

#endif
