/* SPDX-License-Identifier: MIT */
/*
 * QEMU's plugin interface as far as memory trials use it. No package ships its header. API 1 to 7 differ in how an
 * instruction's bytes are handed out, and in who is told of translations and halts.
 */
#ifndef QEMU_INTERFACE_H
#define QEMU_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t access_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum register_use { NO_REGISTERS = 0 };
enum direction { READS_AND_WRITES = 3 };

#if PLUGIN_API >= 7
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(struct qemu_plugin_tb *, void *), void *data);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(unsigned, void *), void *data);
void qemu_plugin_reset(plugin_id id, void (*then)(void *), void *data);
#else
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(plugin_id, unsigned));
void qemu_plugin_reset(plugin_id id, void (*then)(plugin_id));
#endif
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*told)(unsigned, void *),
					  enum register_use use, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*told)(unsigned, access_info, uint64_t, void *), enum register_use use,
				      enum direction which, void *data);
unsigned qemu_plugin_mem_size_shift(access_info info);
_Bool qemu_plugin_mem_is_store(access_info info);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t number);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
#if PLUGIN_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif

/* The first bytes of an instruction, at most `room`; returns how many there are. */
static inline size_t code_of(const struct qemu_plugin_insn *insn, uint8_t *to, size_t room)
{
#if PLUGIN_API >= 3
	return qemu_plugin_insn_data(insn, to, room);
#else
	const uint8_t *code = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	if (size > room)
		size = room;
	for (size_t at = 0; at < size; at++)
		to[at] = code[at];
	return size;
#endif
}

#endif
