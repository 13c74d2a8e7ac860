/* SPDX-License-Identifier: MIT */
/*
 * A plugin for QEMU's TCG: counts what each virtual CPU of a guest executes, by block of code, and can hold each of them
 * to a constant number of instructions a second. It is built on the machine that runs QEMU, against QEMU's documented
 * plugin interface (declared below; no package ships its header), and loaded by `-plugin FILE,memory=PATH`, where PATH is
 * the memory it shares with who reads the counts and sets the speed; meter.py has its layout too.
 *
 * QEMU runs each virtual CPU in a thread of its own. Each has its own head, its own counts and its own calls, which only
 * its thread writes: no count takes an atomic instruction. What the code is, is one for all, and is written under a lock.
 *
 * Holding: a CPU is due to have executed n instructions n / speed seconds after it was held. When it is ahead of that
 * it sleeps; when it is behind, it runs as fast as it can until it has made up for it. Arrears are bounded: short stalls
 * of the machine are made good, what is beyond the bound is given up and counted as lost. A halted CPU owes nothing.
 *
 * Counting begins when it is asked for: what is translated by then is thrown away, and translated again as code that is
 * counted.
 *
 * A string instruction (`rep stosb` and its like) counts by what it moves, as a CPU takes time for it: QEMU executes each
 * of its steps, before version 10 as an execution of a block of its own, and from then on in a loop inside of one.
 *
 * Programs: what they execute is counted together, and is no part of a packet's way. Code below the kernel's addresses
 * is theirs where an access to memory shows it (privilege.h). What nobody shows to be a program's counts as the kernel's.
 *
 * Tracing: while it is asked for, the plugin follows calls and returns as the code makes them, and counts each block by
 * the chain of callers in which it runs. That costs a good part of the emulator's speed, and what a packet costs is not
 * shown by it but for which function called which.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "privilege.h"
#include "qemu_interface.h"

EXPORTED int qemu_plugin_version = PLUGIN_API;

/* --- The shared memory --------------------------------------------------------------------------------------------- */

#define MAGIC 0x37726574656d7076ULL /* "vpmeter7" */
#define CAPACITY (1u << 18)
#define CHAINS (1u << 16)
#define STEPS (1u << 18)
#define GAPS (1u << 8)

enum { OF_PROGRAMS = 0 };

struct block {
	uint64_t address; /* OF_PROGRAMS, or NOWHERE: of a kernel where programs are, or beyond the capacity */
	uint32_t length; /* instructions, without string instructions: what these move is a block of length 1 */
	uint32_t bytes; /* of its code, on the first CPU's list; 0 of the blocks without an address of their own */
	uint64_t executions;
	uint64_t goes_to; /* where it calls or jumps at its end, on the first CPU's list; 0: not to an address in the code */
};

/* To count costs the emulator a fifth of its speed, so a guest comes up without. */
enum counting { NOT_YET, WANTED, COUNTS };

/* A function that was called, by whom: what was called there, from which block of the caller's, in which chain. */
struct chain {
	uint64_t address; /* 0: nobody knows who called, of the first one */
	uint32_t caller; /* a chain */
	uint32_t from; /* a block */
};

/* A block as it ran in a chain. */
struct step {
	uint32_t chain, block;
	uint64_t executions; /* 0: a free place */
};

/* A time in which QEMU wanted to run and had no CPU; ns of the monotonic clock. */
struct gap {
	uint64_t begin, end;
};

/* What a virtual CPU did. Its own thread writes it, and nobody else but where a block is noted. */
struct cpu {
	uint64_t instructions;
	uint64_t next_stop; /* instructions at which it does more than count */
	uint64_t halted; /* ns */
	uint64_t halts;
	uint64_t held; /* ns slept to be no faster */
	uint64_t lost; /* ns of arrears that were given up */
	uint64_t arrears; /* ns, now */
	_Atomic uint64_t halted_since; /* ns of the monotonic clock; 0: it is not */
	_Atomic uint64_t tracing; /* which value of `traced` it has heeded */
	uint64_t chains, steps; /* steps: those that are taken, anywhere in the table */
	uint64_t no_room; /* executions that had no place there */
	uint64_t unused[4];
	struct block block[CAPACITY]; /* the same blocks in the same order for each CPU */
	struct chain chain[CHAINS];
	struct step step[STEPS];
};

struct meter {
	uint64_t magic;
	uint64_t cpus; /* how many the guest has */
	_Atomic uint64_t speed; /* instructions/s of each; 0: as fast as it can. Set by the reader, at any time. */
	_Atomic uint64_t bound; /* ns of arrears that are made good. Set by the reader. */
	_Atomic uint64_t blocks;
	_Atomic uint64_t traced; /* odd: calls are to be followed; each time has a number of its own. Set by the reader. */
	_Atomic uint64_t counting; /* one of enum counting. Set by the reader, but for the last of them. */
	_Atomic uint64_t gaps; /* so far: the table has the last of them */
	_Atomic uint64_t next_beat; /* ns of the monotonic clock: when QEMU wants to run again, see watch() */
	uint64_t unused[7];
	struct gap gap[GAPS];
	struct cpu cpu[];
};

enum { DEPTH = 128, SOUGHT = 16, SEARCHED = 64 };

/* What the plugin keeps of a CPU for itself. */
struct own {
	uint64_t speed, counted_at, next_look, due, heeded;
	int tracing;
	uint32_t chain_at[2 * CHAINS]; /* number of a chain; 0: none */
	struct {
		uint64_t returns_to;
		uint32_t chain; /* the caller's */
	} stack[DEPTH];
	uint32_t depth, chain, last;
	struct block *moving; /* the string instruction that was last executed, */
	uint64_t moved_at; /* and how many instructions were counted by then */
	uint64_t paid; /* bytes that it may move still, of those that were counted */
	enum { UNKNOWN, PROGRAM, KERNEL } low; /* whose code below the kernel's addresses is */
	uint64_t low_until; /* how many instructions were counted when such code was last executed */
	uint64_t unknown; /* instructions of such code of which it is not known yet */
};

static struct meter *meter;
static struct cpu *cpus; /* meter->cpu */
static struct own *own_of;
static struct block *of_programs, *unnamed; /* of one instruction each, the first CPU's */
static plugin_id self;

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
static void settle(struct cpu *cpu, struct own *own)
{
	own->due += (cpu->instructions - own->counted_at) * SECOND / own->speed;
	own->counted_at = cpu->instructions;
}

static void owe(struct cpu *cpu, struct own *own, uint64_t arrears)
{
	uint64_t bound = atomic_load_explicit(&meter->bound, memory_order_relaxed);
	if (arrears > bound) {
		cpu->lost += arrears - bound;
		own->due += arrears - bound;
		arrears = bound;
	}
	cpu->arrears = arrears;
}

/* --- Calls and returns ---------------------------------------------------------------------------------------------- */

/* How a block ends. */
static struct {
	uint64_t end;
	enum flow flow;
} flow_of[CAPACITY];

static uint64_t return_point[1u << 18]; /* where calls return to, as far as they were seen */

static uint64_t hash(uint64_t one, uint64_t other)
{
	return (one * 0x9e3779b97f4a7c15ULL ^ other) * 0xc2b2ae3d27d4eb4fULL;
}

static int known_return_point(uint64_t address, int add)
{
	uint32_t slot = hash(address, 1) >> (64 - 18);
	for (uint32_t tried = 0; tried < SEARCHED; tried++, slot = (slot + 1) % (1u << 18)) {
		if (return_point[slot] == address)
			return 1;
		if (return_point[slot] == 0) {
			if (add)
				return_point[slot] = address;
			return 0;
		}
	}
	return 0;
}

static uint32_t called(struct cpu *cpu, struct own *own, uint32_t caller, uint32_t from, uint64_t address)
{
	uint32_t slot = hash(address, (uint64_t)caller << 32 | from) >> (64 - 17);
	for (;; slot = (slot + 1) % (2 * CHAINS)) {
		struct chain *found = &cpu->chain[own->chain_at[slot]];
		if (own->chain_at[slot] == 0)
			break;
		if (found->address == address && found->caller == caller && found->from == from)
			return own->chain_at[slot];
	}
	if (cpu->chains == CHAINS)
		return caller;
	cpu->chain[cpu->chains] = (struct chain){ .address = address, .caller = caller, .from = from };
	return own->chain_at[slot] = cpu->chains++;
}

/* Begins anew, or ends. A CPU that slept all the time in which calls were followed has followed none. */
static void trace(struct cpu *cpu, struct own *own, uint64_t wanted)
{
	own->tracing = wanted & 1;
	if (own->tracing || own->heeded + 1 != wanted) {
		memset(cpu->chain, 0, sizeof cpu->chain);
		memset(cpu->step, 0, sizeof cpu->step);
		memset(own->chain_at, 0, sizeof own->chain_at);
		cpu->chains = 1;
		cpu->steps = cpu->no_room = 0;
		own->depth = own->chain = own->last = 0;
	}
	own->heeded = wanted;
	atomic_store_explicit(&cpu->tracing, wanted, memory_order_release);
}

static void lose_track(struct cpu *cpu, struct own *own, uint64_t address)
{
	own->depth = 0;
	own->chain = called(cpu, own, 0, 0, address);
}

/* Counts executions of a block in the chain that is under way. */
static void run_in_chain(struct cpu *cpu, struct own *own, uint32_t number, uint64_t executions)
{
	uint32_t slot = hash(number, own->chain) >> (64 - 18);
	for (uint32_t tried = 0; tried < SEARCHED; tried++, slot = (slot + 1) % STEPS) {
		struct step *step = &cpu->step[slot];
		if (step->executions == 0) {
			*step = (struct step){ .chain = own->chain, .block = number };
			cpu->steps++;
		}
		if (step->chain == own->chain && step->block == number) {
			step->executions += executions;
			return;
		}
	}
	cpu->no_room++;
}

/* Interrupts need nothing here: one comes in the chain that it interrupts, returns from all that it calls, and ends. */
static void follow(struct cpu *cpu, struct own *own, struct block *block)
{
	uint32_t number = block - cpu->block;
	if (block->address == OF_PROGRAMS) { /* or a kernel's where programs are: what comes next is called by it */
		own->depth = own->chain = 0;
		own->last = number;
		return;
	}
	if (flow_of[own->last].flow == CALLS) {
		if (own->depth == DEPTH)
			lose_track(cpu, own, block->address);
		own->stack[own->depth].returns_to = flow_of[own->last].end;
		own->stack[own->depth++].chain = own->chain;
		own->chain = called(cpu, own, own->chain, own->last, block->address);
	} else if (flow_of[own->last].flow == ENDS_CALL) {
		uint32_t back = own->depth, least = back > SOUGHT ? back - SOUGHT : 0;
		while (back > least && own->stack[back - 1].returns_to != block->address)
			back--;
		if (back > least) {
			own->depth = back - 1;
			own->chain = own->stack[own->depth].chain;
		} else if (known_return_point(block->address, 0)) {
			lose_track(cpu, own, block->address); /* of another thread */
		} /* else it was a jump by a return, as retpolines are */
	}
	own->last = number;
	run_in_chain(cpu, own, number, 1);
}

static void trace_as_asked(struct cpu *cpu, struct own *own)
{
	uint64_t wanted = atomic_load_explicit(&meter->traced, memory_order_relaxed);
	if (own->heeded == wanted)
		return;
	trace(cpu, own, wanted);
	cpu->next_stop = 0;
}

static void look(struct cpu *cpu, struct own *own)
{
	uint64_t wanted = atomic_load_explicit(&meter->speed, memory_order_relaxed), time = now();
	trace_as_asked(cpu, own);
	if (wanted != own->speed) {
		own->speed = wanted;
		own->counted_at = cpu->instructions;
		own->due = time;
		cpu->arrears = 0;
		prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	}
	if (own->speed == 0) {
		own->next_look = cpu->instructions + UNHELD_LOOK;
		return;
	}
	settle(cpu, own);
	own->next_look = cpu->instructions + own->speed / SLICES;
	if (own->due <= time) {
		owe(cpu, own, time - own->due);
		return;
	}
	cpu->arrears = 0;
	cpu->held += own->due - time;
	sleep_until(own->due);
}

/* All that is not done after each block. It is a function of its own, so that counting saves no registers for it. */
static __attribute__((noinline)) void stop(struct cpu *cpu, struct block *block)
{
	struct own *own = &own_of[cpu - cpus];
	if (own->tracing)
		follow(cpu, own, block);
	if (cpu->instructions >= own->next_look)
		look(cpu, own);
	cpu->next_stop = own->tracing ? 0 : own->next_look;
}

static inline void count(struct cpu *cpu, struct block *block)
{
	block->executions++;
	cpu->instructions += block->length;
	if (cpu->instructions >= cpu->next_stop)
		stop(cpu, block);
}

static void executed(unsigned number, void *data)
{
	/* `data` is the first CPU's block; each CPU has the same one as far behind its head. */
	struct cpu *cpu = &cpus[number];
	count(cpu, (struct block *)((char *)data + number * sizeof *cpu));
}

/* The same where there is one CPU. To find a CPU's own block made each instruction some 7 % slower. */
static void executed_by_only(unsigned number, void *data)
{
	(void)number;
	count(cpus, data);
}

/* --- Code below the kernel's addresses ----------------------------------------------------------------------------- */

static struct block *own_block(struct cpu *cpu, struct block *first)
{
	return cpu->block + (first - cpus->block);
}

static void low_is(struct cpu *cpu, struct own *own, int whose)
{
	own->low = whose;
	if (own->unknown == 0)
		return;
	struct block *block = own_block(cpu, whose == PROGRAM ? of_programs : unnamed);
	block->executions += own->unknown;
	if (own->tracing && whose != PROGRAM)
		run_in_chain(cpu, own, block - cpu->block, own->unknown);
	own->unknown = 0;
}

/* What was executed before is over, and nobody has shown it to be a program's. */
static void begin_low(struct cpu *cpu, struct own *own)
{
	low_is(cpu, own, KERNEL);
	own->low = knows_programs() ? UNKNOWN : PROGRAM;
}

/* A block of such code. `data` is twice its length, and one more where it ends with a change of privilege. */
static void executed_low(unsigned number, void *data)
{
	struct cpu *cpu = &cpus[number];
	struct own *own = &own_of[number];
	uint64_t length = (uintptr_t)data >> 1;
	if (own->low_until != cpu->instructions)
		begin_low(cpu, own);
	own->unknown += length;
	if (own->low != UNKNOWN)
		low_is(cpu, own, own->low);
	cpu->instructions += length;
	if (cpu->instructions >= cpu->next_stop)
		stop(cpu, own_block(cpu, of_programs));
	own->low_until = (uintptr_t)data & 1 ? ~0ULL : cpu->instructions;
}

static void shows_whose(unsigned number, plugin_access access, uint64_t address, void *data)
{
	(void)address, (void)data;
	if (knows_programs())
		low_is(&cpus[number], &own_of[number], is_of_program(access) ? PROGRAM : KERNEL);
}

/* --- String instructions ---------------------------------------------------------------------------------------------- */

/* What hardware takes, in instructions of one cycle: docs/measurements.md has it for each length. */
enum { BEGINS = 16, MOVED_AT_ONCE = 32 /* bytes */ };

static void costs(struct cpu *cpu, struct block *block, uint64_t instructions)
{
	struct own *own = &own_of[cpu - cpus];
	block->executions += instructions;
	cpu->instructions += instructions;
	if (own->tracing)
		run_in_chain(cpu, own, block - cpu->block, instructions);
}

/*
 * A step of a string instruction. It is the next one of the same execution where nothing else was counted since the
 * last one.
 */
static void step(struct cpu *cpu, struct own *own, struct block *block, plugin_access access)
{
	uint64_t bytes = 1ULL << qemu_plugin_mem_size_shift(access);
	if (own->moving != block || own->moved_at != cpu->instructions) {
		own->moving = block;
		own->paid = 0;
		costs(cpu, block, BEGINS);
	}
	if (own->paid < bytes) {
		own->paid += MOVED_AT_ONCE;
		costs(cpu, block, 1);
	}
	own->paid -= bytes;
	own->moved_at = cpu->instructions;
}

static void moves(unsigned number, plugin_access access, uint64_t address, void *data)
{
	struct cpu *cpu = &cpus[number];
	(void)address;
	step(cpu, &own_of[number], own_block(cpu, data), access);
}

/* Of code below the kernel's addresses. */
static void moves_low(unsigned number, plugin_access access, uint64_t address, void *data)
{
	struct cpu *cpu = &cpus[number];
	struct own *own = &own_of[number];
	if (own->low_until != cpu->instructions)
		begin_low(cpu, own);
	shows_whose(number, access, address, data);
	step(cpu, own, own_block(cpu, own->low == PROGRAM ? of_programs : unnamed), access);
	own->low_until = cpu->instructions;
}

static void halts_uncounted(unsigned number)
{
	atomic_store_explicit(&cpus[number].halted_since, now(), memory_order_relaxed);
}

static void halts(unsigned number)
{
	struct cpu *cpu = &cpus[number];
	struct own *own = &own_of[number];
	uint64_t time = now();
	atomic_store_explicit(&cpu->halted_since, time, memory_order_relaxed);
	cpu->halts++;
	begin_low(cpu, own);
	if (own->speed != 0) {
		settle(cpu, own);
		/* All that there was to do is done, late or not. */
		if (own->due < time)
			owe(cpu, own, time - own->due);
		cpu->arrears = 0;
	}
}

static void resumes(unsigned number)
{
	struct cpu *cpu = &cpus[number];
	struct own *own = &own_of[number];
	uint64_t time = now(), since = atomic_load_explicit(&cpu->halted_since, memory_order_relaxed);
	if (since == 0)
		return;
	cpu->halted += time - since;
	atomic_store_explicit(&cpu->halted_since, 0, memory_order_relaxed);
	if (own->due < time)
		own->due = time;
	if (own->speed != atomic_load_explicit(&meter->speed, memory_order_relaxed)) {
		/* It was set to another speed while there was nothing to do: that is so from its first block on. */
		own->next_look = cpu->instructions;
		cpu->next_stop = 0;
	}
	/* One that was ahead when it halted still is, for a while. */
	trace_as_asked(cpu, own); /* it was asked for while there was nothing to do: the first packets count too */
}

/* --- Blocks, by address and length: code is translated more than once ---------------------------------------------- */

static pthread_mutex_t translating = PTHREAD_MUTEX_INITIALIZER; /* each CPU has its own code translated */
static uint32_t found_at[2 * CAPACITY]; /* index of a block + 1 */

/* The first CPU's block; the others have theirs at the same place. Call it with `translating` locked. */
static struct block *block_at(uint64_t address, uint64_t length)
{
	uint64_t hash = (address * 31 + length) * 0x9e3779b97f4a7c15ULL, known = meter->blocks;
	uint32_t slot = hash >> (64 - 19);
	for (;; slot = (slot + 1) % (2 * CAPACITY)) {
		struct block *block;
		if (found_at[slot] == 0)
			break;
		block = &cpus->block[found_at[slot] - 1];
		if (block->address == address && block->length == length)
			return block;
	}
	if (known == CAPACITY)
		return NULL;
	for (uint64_t number = 0; number < meter->cpus; number++)
		cpus[number].block[known] = (struct block){ .address = address, .length = length };
	found_at[slot] = known + 1;
	atomic_store_explicit(&meter->blocks, known + 1, memory_order_release);
	return &cpus->block[known];
}

static void note_flow(struct qemu_plugin_tb *tb, struct block *block, size_t length)
{
	const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, length - 1);
	uint8_t code[CODE_MAX];
	size_t size = code_of(insn, code), number = block - cpus->block;
	flow_of[number].end = qemu_plugin_insn_vaddr(insn) + size;
	flow_of[number].flow = flow_after(code, size);
	block->bytes = flow_of[number].end - qemu_plugin_tb_vaddr(tb);
	block->goes_to = goes_to(code, size, flow_of[number].end);
	if (flow_of[number].flow == CALLS)
		known_return_point(flow_of[number].end, 1);
}

/* The listed block of that length, or the block without a name. Call it with `translating` locked. */
static struct block *known_block(uint64_t address, uint64_t length)
{
	struct block *block = block_at(address, length);
	return block != NULL ? block : block_at(NOWHERE, length); /* made when the plugin was loaded */
}

/* Has the string instructions counted by what they move. Returns how many there are. */
static size_t count_moves(struct qemu_plugin_tb *tb, size_t length, int is_low)
{
	size_t found = 0;
	for (size_t number = 0; number < length; number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		uint8_t code[CODE_MAX];
		int accesses = string_accesses(code, code_of(insn, code));
		if (accesses == 0)
			continue;
		found++;
		if (is_low)
			qemu_plugin_register_vcpu_mem_cb(insn, moves_low, NO_REGISTERS, accesses, NULL);
		else
			qemu_plugin_register_vcpu_mem_cb(insn, moves, NO_REGISTERS, accesses,
							 known_block(qemu_plugin_insn_vaddr(insn), 1));
	}
	return found;
}

static void reset(void);
static int begins; /* whether counting does when nothing that was translated is left */

/* Nothing more is to be seen in translation until counting begins. */
static void firmware_was_learned(void)
{
	if (!begins)
		reset();
}

/* Has the first plain access of a block below the kernel's addresses show whose it is. */
static void translated_low(struct qemu_plugin_tb *tb, uint64_t length, uint64_t counted)
{
	uint8_t code[CODE_MAX];
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, length - 1);
	uintptr_t ends = changes_privilege(code, code_of(last, code));
	for (size_t number = 0; number < length; number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		if (accesses_plainly(code, code_of(insn, code))) {
			qemu_plugin_register_vcpu_mem_cb(insn, shows_whose, NO_REGISTERS, READS_AND_WRITES, NULL);
			break;
		}
	}
	if (counted != 0)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed_low, NO_REGISTERS, (void *)(counted << 1 | ends));
}

static void translated(struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), length = qemu_plugin_tb_n_insns(tb), counted;
	int is_low = address < FIRST_KERNEL_ADDRESS;
	struct block *block = NULL;
	look_at_firmware(tb, firmware_was_learned);
	pthread_mutex_lock(&translating);
	counted = length - count_moves(tb, length, is_low);
	if (!is_low && counted != 0)
		block = known_block(address, counted);
	if (block != NULL && block->address != NOWHERE)
		note_flow(tb, block, length);
	pthread_mutex_unlock(&translating);
	if (is_low)
		translated_low(tb, length, counted);
	else if (block != NULL)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, meter->cpus == 1 ? executed_by_only : executed, NO_REGISTERS,
						     block);
}

/* --- Whether QEMU has a CPU ----------------------------------------------------------------------------------------- */

enum { HELD_BEAT = 1000000, UNHELD_BEAT = 10000000, NOTICED = 2000000 /* ns */ };

/*
 * A virtual CPU that halts owes nothing, and then nobody would see that QEMU's main loop, which hands it packets, has no
 * CPU. This thread runs where that one does, and takes turns as it does.
 */
static void *watch(void *unused)
{
	prctl(PR_SET_NAME, "pdrgate-watch");
	for (;;) {
		int held = atomic_load_explicit(&meter->speed, memory_order_relaxed) != 0;
		uint64_t due_at = now() + (held ? HELD_BEAT : UNHELD_BEAT), time;
		atomic_store_explicit(&meter->next_beat, due_at, memory_order_release);
		sleep_until(due_at);
		time = now();
		if (time - due_at > NOTICED) {
			uint64_t number = atomic_load_explicit(&meter->gaps, memory_order_relaxed);
			meter->gap[number % GAPS] = (struct gap){ .begin = due_at, .end = time };
			atomic_store_explicit(&meter->gaps, number + 1, memory_order_release);
		}
	}
	return unused;
}

static int begin_to_watch(void)
{
	sigset_t all, before;
	pthread_t thread;
	int failed;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are QEMU's */
	failed = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

/* --- What QEMU calls ------------------------------------------------------------------------------------------------ */

/* Only a CPU's own thread may have the translated code thrown away, and here it comes by while nothing is counted. */
static void begin_if_wanted(void)
{
	static atomic_flag begun = ATOMIC_FLAG_INIT;
	if (atomic_load_explicit(&meter->counting, memory_order_relaxed) == WANTED && !atomic_flag_test_and_set(&begun)) {
		begins = 1;
		reset();
	}
}

/* When a CPU halted is noted from the start: others halt for long when counting begins. */
static void idle_uncounted(unsigned number)
{
	halts_uncounted(number);
	begin_if_wanted();
}

static void resume_uncounted(unsigned number)
{
	atomic_store_explicit(&cpus[number].halted_since, 0, memory_order_relaxed);
}

#if PLUGIN_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *data) { (void)data; translated(tb); }
static void on_firmware(struct qemu_plugin_tb *tb, void *data) { (void)data; look_at_firmware(tb, firmware_was_learned); }
static void on_idle(unsigned cpu, void *data) { (void)data; halts(cpu); }
static void on_resume(unsigned cpu, void *data) { (void)data; resumes(cpu); }
static void on_idle_uncounted(unsigned cpu, void *data) { (void)data; idle_uncounted(cpu); }
static void on_resume_uncounted(unsigned cpu, void *data) { (void)data; resume_uncounted(cpu); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function, NULL)
#else
static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; translated(tb); }
static void on_firmware(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; look_at_firmware(tb, firmware_was_learned); }
static void on_idle(plugin_id id, unsigned cpu) { (void)id; halts(cpu); }
static void on_resume(plugin_id id, unsigned cpu) { (void)id; resumes(cpu); }
static void on_idle_uncounted(plugin_id id, unsigned cpu) { (void)id; idle_uncounted(cpu); }
static void on_resume_uncounted(plugin_id id, unsigned cpu) { (void)id; resume_uncounted(cpu); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function)
#endif

static void wait_to_begin(void)
{
	CALL_BACK(idle, on_idle_uncounted);
	CALL_BACK(resume, on_resume_uncounted);
}

/* While all CPUs stand still. */
static void begin(void)
{
	if (!begins) {
		wait_to_begin();
		return;
	}
	for (uint64_t number = 0; number < meter->cpus; number++)
		if (cpus[number].halted_since != 0)
			halts_uncounted(number); /* what it halted before is not counted */
	CALL_BACK(tb_trans, on_translation);
	CALL_BACK(idle, on_idle);
	CALL_BACK(resume, on_resume);
	atomic_store_explicit(&meter->counting, COUNTS, memory_order_release);
}

#if PLUGIN_API >= 7
static void on_reset(void *data) { (void)data; begin(); }
static void reset(void) { qemu_plugin_reset(self, on_reset, NULL); }
#else
static void on_reset(plugin_id id) { (void)id; begin(); }
static void reset(void) { qemu_plugin_reset(self, on_reset); }
#endif

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	size_t size;
	(void)info;
	meter = shared_with_reader("vcpu_meter", argc, argv, MAGIC, &size);
	if (meter == NULL)
		return 1;
	if (size < sizeof *meter || meter->cpus == 0 || size != sizeof *meter + meter->cpus * sizeof *cpus) {
		fprintf(stderr, "vcpu_meter: its memory has %zu bytes, which is not that of its virtual CPUs\n", size);
		return 1;
	}
	cpus = meter->cpu;
	own_of = calloc(meter->cpus, sizeof *own_of);
	if (own_of == NULL) {
		fprintf(stderr, "vcpu_meter: no memory for %u virtual CPUs\n", (unsigned)meter->cpus);
		return 1;
	}
	of_programs = block_at(OF_PROGRAMS, 1);
	for (uint64_t length = 1; length <= 512; length++)
		block_at(NOWHERE, length);
	unnamed = block_at(NOWHERE, 1);
	if (begin_to_watch() != 0) {
		fprintf(stderr, "vcpu_meter: no thread can be made\n");
		return 1;
	}
	self = id;
	CALL_BACK(tb_trans, on_firmware);
	wait_to_begin();
	return 0;
}
