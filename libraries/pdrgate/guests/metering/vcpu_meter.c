/* SPDX-License-Identifier: MIT */
/*
 * A plugin for QEMU's TCG: counts what the one virtual CPU of a guest executes, by block of code, and can hold it to a
 * constant number of instructions a second. It is built on the machine that runs QEMU, against QEMU's documented plugin
 * interface (declared below; no package ships its header), and loaded by `-plugin FILE,memory=PATH`, where PATH is the
 * memory it shares with who reads the counts and sets the speed; meter.py has its layout too.
 *
 * Holding: the CPU is due to have executed n instructions n / speed seconds after it was held. When it is ahead of that
 * it sleeps; when it is behind, it runs as fast as it can until it has made up for it. Arrears are bounded: short stalls
 * of the machine are made good, what is beyond the bound is given up and counted as lost. A halted CPU owes nothing.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PLUGIN_API
#define PLUGIN_API 1
#endif

/* --- QEMU's interface, as far as it is used; API 1 to 4 agree on it ------------------------------------------------ */

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
enum register_use { NO_REGISTERS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*told)(unsigned, void *),
					  enum register_use use, void *data);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*told)(plugin_id, unsigned));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);

EXPORTED int qemu_plugin_version = PLUGIN_API;

/* --- The shared memory --------------------------------------------------------------------------------------------- */

#define MAGIC 0x31726574656d7076ULL /* "vpmeter1" */
#define CAPACITY (1u << 18)
#define FIRST_KERNEL_ADDRESS 0x8000000000000000ULL

struct block {
	uint64_t address; /* 0: of a program, or beyond the capacity */
	uint64_t length; /* instructions */
	uint64_t executions;
};

struct meter {
	uint64_t magic;
	_Atomic uint64_t speed; /* instructions/s; 0: as fast as it can. Set by the reader, at any time. */
	_Atomic uint64_t bound; /* ns of arrears that are made good. Set by the reader. */
	uint64_t instructions;
	uint64_t halted; /* ns */
	uint64_t halts;
	uint64_t held; /* ns slept to be no faster */
	uint64_t lost; /* ns of arrears that were given up */
	uint64_t arrears; /* ns, now */
	uint64_t blocks;
	uint64_t reserved[6];
	struct block block[CAPACITY];
};

static struct meter *meter;
static uint64_t speed, counted_at, next_look, due, halted_since;
static int is_halted;

enum { SECOND = 1000000000, SLICES = 2000 /* a second */, UNHELD_LOOK = 100000 /* instructions */ };

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static void sleep_until(uint64_t when)
{
	struct timespec time = { .tv_sec = when / SECOND, .tv_nsec = when % SECOND };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
		;
}

/* Moves `due` on by what was executed since. */
static void settle(void)
{
	due += (meter->instructions - counted_at) * SECOND / speed;
	counted_at = meter->instructions;
}

static void owe(uint64_t arrears)
{
	uint64_t bound = atomic_load_explicit(&meter->bound, memory_order_relaxed);
	if (arrears > bound) {
		meter->lost += arrears - bound;
		due += arrears - bound;
		arrears = bound;
	}
	meter->arrears = arrears;
}

static void look(void)
{
	uint64_t wanted = atomic_load_explicit(&meter->speed, memory_order_relaxed), time = now();
	if (wanted != speed) {
		speed = wanted;
		counted_at = meter->instructions;
		due = time;
		meter->arrears = 0;
		prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	}
	if (speed == 0) {
		next_look = meter->instructions + UNHELD_LOOK;
		return;
	}
	settle();
	next_look = meter->instructions + speed / SLICES;
	if (due <= time) {
		owe(time - due);
		return;
	}
	meter->arrears = 0;
	meter->held += due - time;
	sleep_until(due);
}

static void executed(unsigned cpu, void *data)
{
	struct block *block = data;
	(void)cpu;
	block->executions++;
	meter->instructions += block->length;
	if (meter->instructions >= next_look)
		look();
}

static void halts(plugin_id id, unsigned cpu)
{
	(void)id;
	(void)cpu;
	is_halted = 1;
	halted_since = now();
	meter->halts++;
	if (speed != 0) {
		settle();
		/* All that there was to do is done, late or not. */
		if (due < halted_since)
			owe(halted_since - due);
		meter->arrears = 0;
	}
}

static void resumes(plugin_id id, unsigned cpu)
{
	uint64_t time = now();
	(void)id;
	(void)cpu;
	if (!is_halted)
		return;
	is_halted = 0;
	meter->halted += time - halted_since;
	if (due < time)
		due = time;
	/* One that was ahead when it halted still is, for a while. */
}

/* --- Blocks, by address and length: code is translated more than once ---------------------------------------------- */

static uint32_t found_at[2 * CAPACITY]; /* index of a block + 1 */

static struct block *block_at(uint64_t address, uint64_t length)
{
	uint64_t hash = (address * 31 + length) * 0x9e3779b97f4a7c15ULL;
	uint32_t slot = hash >> (64 - 19);
	for (;; slot = (slot + 1) % (2 * CAPACITY)) {
		struct block *block;
		if (found_at[slot] == 0)
			break;
		block = &meter->block[found_at[slot] - 1];
		if (block->address == address && block->length == length)
			return block;
	}
	if (meter->blocks == CAPACITY)
		return NULL;
	meter->block[meter->blocks] = (struct block){ .address = address, .length = length };
	found_at[slot] = ++meter->blocks;
	return &meter->block[meter->blocks - 1];
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), length = qemu_plugin_tb_n_insns(tb);
	struct block *block;
	(void)id;
	if (address < FIRST_KERNEL_ADDRESS)
		address = 0; /* programs: counted together */
	block = block_at(address, length);
	if (block == NULL)
		block = block_at(0, length); /* made when the plugin was loaded */
	if (block != NULL)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
}

/* ------------------------------------------------------------------------------------------------------------------- */

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	static const char option[] = "memory=";
	(void)info;
	if (argc != 1 || strncmp(argv[0], option, strlen(option)) != 0) {
		fprintf(stderr, "vcpu_meter: give it memory=PATH\n");
		return 1;
	}
	int file = open(argv[0] + strlen(option), O_RDWR | O_CLOEXEC);
	if (file < 0) {
		perror("vcpu_meter");
		return 1;
	}
	meter = mmap(NULL, sizeof *meter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (meter == MAP_FAILED || meter->magic != MAGIC) {
		fprintf(stderr, "vcpu_meter: %s is no memory of this version\n", argv[0] + strlen(option));
		return 1;
	}
	for (uint64_t length = 1; length <= 512; length++)
		block_at(0, length);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_vcpu_idle_cb(id, halts);
	qemu_plugin_register_vcpu_resume_cb(id, resumes);
	return 0;
}
