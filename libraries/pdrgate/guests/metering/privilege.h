/* SPDX-License-Identifier: MIT */
/*
 * Whether code below the kernel's addresses is a program's: by the privilege with which its accesses to memory are made.
 * An address says nothing of that, for a kernel may map code of its own wherever it likes.
 *
 * QEMU's interface has no registers up to API 1. But each access comes with the number of the page tables' view that it
 * goes by, and programs have views of their own. Which numbers these are, the decoder of the guest's architecture knows,
 * or learns of the first access of all: that one is the firmware's, or a kernel's before it runs any program. Where they
 * are not known, programs are known by their addresses.
 */
#ifndef PRIVILEGE_H
#define PRIVILEGE_H

#include GUEST_CODE
#include "qemu_interface.h"

enum { NOWHERE = 1 }; /* the address of a kernel's code that is counted without its own */
enum { VIEW = 15 };

static uint32_t views_of_programs; /* a bit for each number */
static int firmware_was_seen;

static inline void see_firmware(unsigned cpu, plugin_access access, uint64_t address, void *then)
{
	(void)cpu, (void)address;
	if (firmware_was_seen)
		return;
	firmware_was_seen = 1;
	views_of_programs = programs_views(access & VIEW);
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

#endif
