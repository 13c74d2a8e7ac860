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
 *
 * Counting begins when it is asked for: what is translated by then is thrown away, and translated again as code that is
 * counted.
 *
 * Tracing: while it is asked for, the plugin follows calls and returns as the code makes them, and counts each block by
 * the chain of callers in which it runs. That costs a good part of the emulator's speed, and what a packet costs is not
 * told by it but for which function called which.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

/* --- QEMU's interface, as far as it is used; API 1 to 7 differ in an instruction's bytes, and in who is called ------- */

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
enum register_use { NO_REGISTERS = 0 };

#if PLUGIN_API >= 7
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(struct qemu_plugin_tb *, void *), void *data);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(unsigned, void *), void *data);
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*told)(unsigned, void *), void *data);
void qemu_plugin_reset(plugin_id id, void (*then)(void *), void *data);
#else
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*told)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, void (*told)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_resume_cb(plugin_id id, void (*told)(plugin_id, unsigned));
void qemu_plugin_reset(plugin_id id, void (*then)(plugin_id));
#endif
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*told)(unsigned, void *),
					  enum register_use use, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn;
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t number);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
#if PLUGIN_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif

EXPORTED int qemu_plugin_version = PLUGIN_API;

/* --- The shared memory --------------------------------------------------------------------------------------------- */

#define MAGIC 0x34726574656d7076ULL /* "vpmeter4" */
#define CAPACITY (1u << 18)
#define CHAINS (1u << 16)
#define STEPS (1u << 18)
#define GAPS (1u << 8)
#define FIRST_KERNEL_ADDRESS 0x8000000000000000ULL

struct block {
	uint64_t address; /* 0: of a program, or beyond the capacity */
	uint64_t length; /* instructions */
	uint64_t executions;
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
	_Atomic uint64_t traced; /* whether calls are to be followed. Set by the reader. */
	_Atomic uint64_t tracing; /* whether they are */
	uint64_t chains, steps; /* steps: those that are taken, anywhere in the table */
	uint64_t untold; /* executions that had no place there */
	_Atomic uint64_t counting; /* one of enum counting. Set by the reader, but for the last of them. */
	uint64_t halted_since; /* ns of the monotonic clock; 0: it is not */
	_Atomic uint64_t gaps; /* so far: the table has the last of them */
	_Atomic uint64_t next_beat; /* ns of the monotonic clock: when QEMU wants to run again, see watch() */
	struct block block[CAPACITY];
	struct chain chain[CHAINS];
	struct step step[STEPS];
	struct gap gap[GAPS];
};

static struct meter *meter;
static plugin_id self;
static uint64_t speed, counted_at, next_look, next_stop, due;
static int tracing;

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

/* --- Calls and returns ---------------------------------------------------------------------------------------------- */

enum { DEPTH = 128, SOUGHT = 16, SEARCHED = 64 };

/* How a block ends. */
enum flow { GOES_ON, CALLS, RETURNS };
static struct {
	uint64_t end;
	enum flow flow;
} flow_of[CAPACITY];

static uint64_t return_point[1u << 18]; /* where calls return to, as far as they were seen */
static uint32_t chain_at[2 * CHAINS]; /* number of a chain; 0: none */
static struct {
	uint64_t returns_to;
	uint32_t chain; /* the caller's */
} stack[DEPTH];
static uint32_t depth, chain, last;

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

static uint32_t called(uint32_t caller, uint32_t from, uint64_t address)
{
	uint32_t slot = hash(address, (uint64_t)caller << 32 | from) >> (64 - 17);
	for (;; slot = (slot + 1) % (2 * CHAINS)) {
		struct chain *found = &meter->chain[chain_at[slot]];
		if (chain_at[slot] == 0)
			break;
		if (found->address == address && found->caller == caller && found->from == from)
			return chain_at[slot];
	}
	if (meter->chains == CHAINS)
		return caller;
	meter->chain[meter->chains] = (struct chain){ .address = address, .caller = caller, .from = from };
	return chain_at[slot] = meter->chains++;
}

/* Begins anew, or ends. */
static void trace(int on)
{
	if (on) {
		memset(meter->chain, 0, sizeof meter->chain);
		memset(meter->step, 0, sizeof meter->step);
		memset(chain_at, 0, sizeof chain_at);
		meter->chains = 1;
		meter->steps = meter->untold = 0;
		depth = chain = last = 0;
	}
	tracing = on;
	atomic_store_explicit(&meter->tracing, on, memory_order_release);
}

static void lose_track(uint64_t address)
{
	depth = 0;
	chain = called(0, 0, address);
}

/* Interrupts need nothing here: one comes in the chain that it interrupts, returns from all that it calls, and ends. */
static void follow(struct block *block)
{
	uint32_t number = block - meter->block;
	if (block->address == 0) { /* of a program: what comes next is called by it */
		depth = chain = 0;
		last = number;
		return;
	}
	if (flow_of[last].flow == CALLS) {
		if (depth == DEPTH)
			lose_track(block->address);
		stack[depth].returns_to = flow_of[last].end;
		stack[depth++].chain = chain;
		chain = called(chain, last, block->address);
	} else if (flow_of[last].flow == RETURNS) {
		uint32_t back = depth, least = depth > SOUGHT ? depth - SOUGHT : 0;
		while (back > least && stack[back - 1].returns_to != block->address)
			back--;
		if (back > least) {
			depth = back - 1;
			chain = stack[depth].chain;
		} else if (known_return_point(block->address, 0)) {
			lose_track(block->address); /* of another thread */
		} /* else it was a jump by a return, as retpolines are */
	}
	last = number;
	uint32_t slot = hash(number, chain) >> (64 - 18);
	for (uint32_t tried = 0; tried < SEARCHED; tried++, slot = (slot + 1) % STEPS) {
		struct step *step = &meter->step[slot];
		if (step->executions == 0) {
			*step = (struct step){ .chain = chain, .block = number };
			meter->steps++;
		}
		if (step->chain == chain && step->block == number) {
			step->executions++;
			return;
		}
	}
	meter->untold++;
}

static void trace_as_asked(void)
{
	if (tracing == (int)atomic_load_explicit(&meter->traced, memory_order_relaxed))
		return;
	trace(!tracing);
	next_stop = 0;
}

static void look(void)
{
	uint64_t wanted = atomic_load_explicit(&meter->speed, memory_order_relaxed), time = now();
	trace_as_asked();
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

/* All that is not done after each block, so that nothing of it costs one a branch. */
static void stop(struct block *block)
{
	if (tracing)
		follow(block);
	if (meter->instructions >= next_look)
		look();
	next_stop = tracing ? 0 : next_look;
}

static void executed(unsigned cpu, void *data)
{
	struct block *block = data;
	(void)cpu;
	block->executions++;
	meter->instructions += block->length;
	if (meter->instructions >= next_stop)
		stop(block);
}

static void halts(void)
{
	uint64_t time = now();
	meter->halted_since = time;
	meter->halts++;
	if (speed != 0) {
		settle();
		/* All that there was to do is done, late or not. */
		if (due < time)
			owe(time - due);
		meter->arrears = 0;
	}
}

static void resumes(void)
{
	uint64_t time = now();
	if (meter->halted_since == 0)
		return;
	meter->halted += time - meter->halted_since;
	meter->halted_since = 0;
	if (due < time)
		due = time;
	/* One that was ahead when it halted still is, for a while. */
	trace_as_asked(); /* it was asked for while there was nothing to do: the first packets count too */
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

/* How x86 code goes on after an instruction. */
static enum flow flow_after(const uint8_t *code, size_t size)
{
	size_t at = 0;
	while (at < size && (code[at] == 0x66 || code[at] == 0x2e || code[at] == 0x3e || code[at] == 0xf2 ||
			     code[at] == 0xf3 || (code[at] & 0xf0) == 0x40))
		at++;
	if (at == size)
		return GOES_ON;
	switch (code[at]) {
	case 0xe8:
		return CALLS;
	case 0xff:
		return at + 1 < size && (code[at + 1] >> 3 & 7) == 2 ? CALLS : GOES_ON;
	case 0xc2:
	case 0xc3:
		return RETURNS;
	default:
		return GOES_ON;
	}
}

static void note_flow(struct qemu_plugin_tb *tb, struct block *block, size_t length)
{
	const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, length - 1);
	size_t size = qemu_plugin_insn_size(insn), number = block - meter->block;
#if PLUGIN_API >= 3
	uint8_t code[16];
	size = qemu_plugin_insn_data(insn, code, sizeof code);
#else
	const uint8_t *code = qemu_plugin_insn_data(insn);
#endif
	flow_of[number].end = qemu_plugin_insn_vaddr(insn) + size;
	flow_of[number].flow = flow_after(code, size);
	if (flow_of[number].flow == CALLS)
		known_return_point(flow_of[number].end, 1);
}

static void translated(struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), length = qemu_plugin_tb_n_insns(tb);
	struct block *block;
	if (address < FIRST_KERNEL_ADDRESS)
		address = 0; /* programs: counted together */
	block = block_at(address, length);
	if (block == NULL)
		block = block_at(0, length); /* made when the plugin was loaded */
	if (block != NULL && block->address != 0)
		note_flow(tb, block, length);
	if (block != NULL)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
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

static void reset(void);

/* Only the CPU's own thread may have the translated code thrown away, and here it comes by while nothing is counted. */
static void begin_if_wanted(void)
{
	static int begun;
	if (begun || atomic_load_explicit(&meter->counting, memory_order_relaxed) != WANTED)
		return;
	begun = 1;
	reset();
}

#if PLUGIN_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *data) { (void)data; translated(tb); }
static void on_idle(unsigned cpu, void *data) { (void)cpu; (void)data; halts(); }
static void on_resume(unsigned cpu, void *data) { (void)cpu; (void)data; resumes(); }
static void on_idle_uncounted(unsigned cpu, void *data) { (void)cpu; (void)data; begin_if_wanted(); }
#define TELL(what, told) qemu_plugin_register_vcpu_##what##_cb(self, told, NULL)
#else
static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; translated(tb); }
static void on_idle(plugin_id id, unsigned cpu) { (void)id; (void)cpu; halts(); }
static void on_resume(plugin_id id, unsigned cpu) { (void)id; (void)cpu; resumes(); }
static void on_idle_uncounted(plugin_id id, unsigned cpu) { (void)id; (void)cpu; begin_if_wanted(); }
#define TELL(what, told) qemu_plugin_register_vcpu_##what##_cb(self, told)
#endif

static void begin(void)
{
	TELL(tb_trans, on_translation);
	TELL(idle, on_idle);
	TELL(resume, on_resume);
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
	if (begin_to_watch() != 0) {
		fprintf(stderr, "vcpu_meter: no thread can be made\n");
		return 1;
	}
	self = id;
	TELL(idle, on_idle_uncounted);
	return 0;
}
