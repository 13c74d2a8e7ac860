/* SPDX-License-Identifier: MIT */
/*
 * QEMU's plugin interface as far as our plugins use it, and how a plugin finds the memory that it shares with its reader.
 * No package ships QEMU's header. API 1 to 7 differ in how an instruction's bytes are handed out, and in who is informed of
 * translations and halts.
 */
#ifndef QEMU_INTERFACE_H
#define QEMU_INTERFACE_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t plugin_access;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
enum register_use { NO_REGISTERS = 0 };
enum plugin_rw { READS = 1, WRITES = 2, READS_AND_WRITES = 3 };

#if PLUGIN_API >= 7
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*called)(struct qemu_plugin_tb *, void *), void *data);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*called)(unsigned, void *), void *data);
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*called)(unsigned, void *), void *data);
void qemu_plugin_reset(plugin_id id, void (*then)(void *), void *data);
#else
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*called)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*called)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*called)(plugin_id, unsigned));
void qemu_plugin_reset(plugin_id id, void (*then)(plugin_id));
#endif
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*called)(unsigned, void *),
					  enum register_use use, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*called)(unsigned, plugin_access, uint64_t, void *), enum register_use use,
				      enum plugin_rw which, void *data);
unsigned qemu_plugin_mem_size_shift(plugin_access info);
_Bool qemu_plugin_mem_is_store(plugin_access info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(plugin_access info, uint64_t address);
_Bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
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

#define FIRST_KERNEL_ADDRESS 0x8000000000000000ULL
enum { CODE_MAX = 16 /* bytes: no instruction of any architecture has more */ };

/* Copies an instruction's bytes, and returns how many there are. */
static inline size_t code_of(const struct qemu_plugin_insn *insn, uint8_t code[CODE_MAX])
{
#if PLUGIN_API >= 3
	return qemu_plugin_insn_data(insn, code, CODE_MAX);
#else
	size_t size = qemu_plugin_insn_size(insn);
	if (size > CODE_MAX)
		size = CODE_MAX;
	memcpy(code, qemu_plugin_insn_data(insn), size);
	return size;
#endif
}

/*
 * Maps the file that the plugin's one option `memory=PATH` names, whose first 64 bits are `magic`. Returns it with its
 * size, or NULL, when `plugin` has reported why.
 */
static inline void *shared_with_reader(const char *plugin, int argc, char **argv, uint64_t magic, size_t *size)
{
	static const char option[] = "memory=";
	if (argc != 1 || strncmp(argv[0], option, strlen(option)) != 0) {
		fprintf(stderr, "%s: give it memory=PATH\n", plugin);
		return NULL;
	}
	const char *path = argv[0] + strlen(option);
	int file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0) {
		perror(plugin);
		return NULL;
	}
	struct stat about = { 0 };
	fstat(file, &about);
	*size = about.st_size;
	void *memory = *size < sizeof magic ? MAP_FAILED
					    : mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (memory == MAP_FAILED || *(uint64_t *)memory != magic) {
		fprintf(stderr, "%s: %s is no memory of this version\n", plugin, path);
		return NULL;
	}
	return memory;
}

/* The same for a plugin whose memory has a fixed size in bytes. */
static inline void *record_with_reader(const char *plugin, int argc, char **argv, uint64_t magic, size_t wanted)
{
	size_t size;
	void *memory = shared_with_reader(plugin, argc, argv, magic, &size);
	if (memory != NULL && size != wanted) {
		fprintf(stderr, "%s: its memory has %zu bytes in place of %zu\n", plugin, size, wanted);
		return NULL;
	}
	return memory;
}

#endif
