/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of a CPU that executes out of order: when is each instruction of a trace done?
 *
 * Instructions are fetched until a branch is taken, and go on only when one that was not foreseen is done. Each waits for
 * the registers and the memory that it reads, and for a port. They leave in order, and no more are under way than the
 * CPU's window holds. So what waits for each other adds up, and what does not overlaps.
 *
 * What an instruction reads, writes and takes comes with it: instructions.py says so. The layouts are those of
 * timed_trace.py. The trace is that of trace.h, with the levels of caches that missed.
 */
#include <stdlib.h>

#include "branches.h"
#include "trace.h"

enum { SOURCES = 6, TARGETS = 4, REGISTERS = 64 };
enum {
	LOADS = 1 << 0, STORES = 1 << 1, IF = 1 << 2, JUMPS = 1 << 3, INDIRECT = 1 << 4, CALLS = 1 << 5, RETURNS = 1 << 6,
	LOCKED = 1 << 7, SERIALISES = 1 << 8, REPEATS = 1 << 9, FUSED = 1 << 10, FREE = 1 << 11, FENCE = 1 << 12,
	RETURN_THUNK = 1 << 13, INDIRECT_THUNK = 1 << 14,
};
enum { BRANCHES = IF | JUMPS | INDIRECT | CALLS | RETURNS };
enum port { ALU, MULTIPLY, DIVIDE, VECTOR, BRANCH, LOAD, STORE, PORTS };

struct insn {
	uint64_t address, next;
	uint16_t flags;
	uint8_t sources, addresses /* so many of the sources make an address */, targets, port;
	uint8_t source[SOURCES], target[TARGETS];
	uint16_t latency, slots, slow /* kind of slow instruction, from 1 */;
	uint32_t place, function;
};
struct block {
	uint32_t first, length;
};

/* A CPU, in cycles but for what says otherwise. */
struct cpu {
	double fetched, entered, left; /* instructions a cycle */
	double window, stores, misses; /* the most that are under way */
	double first, second, last, memory; /* latencies of a load */
	double pages, more_pages; /* entries of the two levels of the TLB */
	double second_page, walk;
	double second_size, last_size; /* bytes */
	double redirect, lock;
	double repeat, repeated; /* a string instruction, and bytes that it moves in a cycle */
	double ports[PORTS];
	double slow[32];
};

struct timed {
	double cycles, windows, mispredicted, instructions, walks;
};

enum { PARTS = 60 /* of a cycle */, CYCLES = 1 << 15, LATEST = 1 << 14, MOST = 4096, ANY_ENTRIES = 128, NEAR = 200, QUEUE = 16 };
enum { WAYS = 6, MORE_WAYS = 8 };

/* --- Ports --------------------------------------------------------------------------------------------------------- */

static struct {
	uint64_t cycle, used;
} port_at[PORTS][CYCLES];

/* The first cycle from this one on at which a port of the kind is free; it is taken. */
static uint64_t port_from(const struct cpu *cpu, enum port port, uint64_t cycle)
{
	for (;; cycle++) {
		unsigned at = cycle % CYCLES;
		if (port_at[port][at].cycle != cycle) {
			port_at[port][at].cycle = cycle;
			port_at[port][at].used = 0;
		}
		if (port_at[port][at].used < cpu->ports[port]) {
			port_at[port][at].used++;
			return cycle;
		}
	}
}

/* --- Pages --------------------------------------------------------------------------------------------------------- */

struct pages {
	uint64_t sets, ways, *page;
};

static struct pages pages_of(double entries, uint64_t ways)
{
	uint64_t sets = entries / ways;
	return (struct pages){ sets, ways, calloc(sets * ways, sizeof(uint64_t)) };
}

static int has_page(struct pages *pages, uint64_t page)
{
	uint64_t *set = pages->page + page % pages->sets * pages->ways, way = 0;
	while (way < pages->ways && set[way] != page + 1)
		way++;
	int hit = way < pages->ways;
	memmove(set + 1, set, (hit ? way : pages->ways - 1) * sizeof *set);
	set[0] = page + 1;
	return hit;
}

/* Code of modules and of programs, and what vmalloc has, are of small pages; the map of all memory is of large ones. */
static uint64_t page_of(uint64_t address)
{
	int small = (address >= 0xffffc90000000000ULL && address < 0xffffe90000000000ULL) || address >= 0xffffffffa0000000ULL;
	return small ? address >> 12 : address >> 21 | 1ULL << 60;
}

/* --- The model ----------------------------------------------------------------------------------------------------- */

static struct {
	uint64_t word, ready, number, locked;
} stored[LATEST]; /* what loads get their values from */
static struct {
	uint64_t line, ready;
} coming[LATEST]; /* lines on their way */
static uint64_t leaves[MOST], buffer[ANY_ENTRIES], store_leaves[ANY_ENTRIES];

struct state {
	const struct cpu *cpu;
	const double *footprint; /* bytes that a place reads */
	struct timed *timed;
	struct pages pages, more_pages;
	uint64_t ready[REGISTERS], fetched, entered, left /* in parts of a cycle, as the two before */;
	uint64_t barrier, newest, last_store, number, stores, misses;
	uint64_t done; /* of the last instruction */
	const struct insn *last;
};

static inline uint64_t later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t kind_of(const struct step *step)
{
	return step->what >> STEP_SHIFT;
}

static uint32_t place_of(const struct step *step)
{
	return step->what & ((1 << STEP_SHIFT) - 1);
}

/* The level that has a line, from 0. Of what is read at random a cache has as much as it holds. */
static int level_of(const struct state *state, const struct step *step)
{
	uint64_t how = kind_of(step), line = step->address >> 6;
	if (!(how & STEP_FIRST_EVER))
		return how & STEP_MISSED_LAST ? 3 : how & STEP_MISSED_L2 ? 2 : how & STEP_MISSED_L1 ? 1 : 0;
	double reached = (line * 0x9e3779b97f4a7c15ULL >> 11) / (double)(1ULL << 53) * state->footprint[place_of(step)];
	return 1 + (reached > state->cpu->second_size) + (reached > state->cpu->last_size);
}

static uint64_t page_time(struct state *state, uint64_t address)
{
	uint64_t page = page_of(address);
	if (state->cpu->walk == 0 || has_page(&state->pages, page))
		return 0;
	if (has_page(&state->more_pages, page))
		return state->cpu->second_page;
	state->timed->walks++;
	return state->cpu->walk;
}

/* When a load has its value. */
static uint64_t loaded_at(struct state *state, const struct insn *insn, const struct step *step, uint64_t from)
{
	const struct cpu *cpu = state->cpu;
	uint64_t word = step->address >> 3, line = step->address >> 6;
	uint64_t more = page_time(state, step->address);
	int level = level_of(state, step);
	from = later(from, state->barrier);
	if (insn->flags & LOCKED)
		from = later(from, state->last_store);
	from = port_from(cpu, LOAD, from);
	uint64_t done = from + (uint64_t)cpu->first + more;
	if (level > 0) {
		uint64_t *free_at = &buffer[state->misses++ % (uint64_t)cpu->misses];
		done = later(from, *free_at) + (uint64_t)(level == 1 ? cpu->second : level == 2 ? cpu->last : cpu->memory);
		*free_at = done;
		done += more;
		coming[line % LATEST].line = line;
		coming[line % LATEST].ready = done;
	} else if (coming[line % LATEST].line == line)
		done = later(done, coming[line % LATEST].ready + more);
	if (stored[word % LATEST].word == word && !stored[word % LATEST].locked &&
	    state->number - stored[word % LATEST].number < NEAR)
		done = later(from, stored[word % LATEST].ready);
	return done;
}

static void store(struct state *state, const struct insn *insn, uint64_t address, uint64_t ready)
{
	uint64_t word = address >> 3, slot = word % LATEST;
	stored[slot].word = word;
	stored[slot].ready = ready;
	stored[slot].number = state->number;
	stored[slot].locked = insn->flags & LOCKED;
	state->last_store = later(state->last_store, ready);
	/* A store leaves the CPU's buffer after its instruction; where none is free, nothing enters. */
	state->entered = later(state->entered, store_leaves[state->stores % (uint64_t)state->cpu->stores] * PARTS);
}

/* The cycle at which an instruction enters the window. */
static uint64_t enters(struct state *state, const struct insn *insn)
{
	const struct cpu *cpu = state->cpu;
	uint64_t window = cpu->window;
	if (state->number >= window)
		state->entered = later(state->entered, leaves[(state->number - window) % MOST] * PARTS);
	uint64_t cycle = state->entered / PARTS + 1;
	if (insn->flags & FUSED)
		return cycle;
	state->entered += (uint64_t)(PARTS / cpu->entered) * insn->slots;
	state->fetched += (uint64_t)(PARTS / cpu->fetched) * insn->slots;
	if (state->entered > QUEUE * PARTS) /* fetching is no further ahead */
		state->fetched = later(state->fetched, state->entered - QUEUE * PARTS);
	state->entered = later(state->entered, state->fetched);
	return cycle;
}

/* Executes an instruction with its accesses, and returns the step behind them. */
static uint64_t execute(struct state *state, const struct insn *insn, const struct step *steps, uint64_t at, uint64_t count)
{
	const struct cpu *cpu = state->cpu;
	uint64_t start = enters(state, insn), address, data, loaded = 0, accesses = 0, written[8], writes = 0;
	if (insn->flags & SERIALISES)
		start = later(start, state->newest);
	address = data = start;
	for (int source = 0; source < insn->sources; source++) {
		uint64_t *which = source < insn->addresses ? &address : &data;
		*which = later(*which, state->ready[insn->source[source]]);
	}
	for (; at < count && !(kind_of(&steps[at]) & (STEP_BLOCK | STEP_WINDOW)) && place_of(&steps[at]) == insn->place; at++) {
		accesses++;
		if (insn->flags & REPEATS)
			continue;
		if (kind_of(&steps[at]) & STEP_STORE) {
			page_time(state, steps[at].address);
			if (writes < 8)
				written[writes++] = steps[at].address;
		} else
			loaded = later(loaded, loaded_at(state, insn, &steps[at], address));
	}
	if (insn->flags & LOADS && accesses == 0)
		loaded = address + (uint64_t)cpu->first;
	uint64_t done = later(data, loaded);
	if (!(insn->flags & (LOADS | STORES)))
		done = later(done, address);
	if (!(insn->flags & FREE) && insn->latency > 0 && insn->port != LOAD && insn->port != STORE) {
		done = port_from(cpu, insn->port, done);
		for (int busy = 1; insn->port == DIVIDE && busy < insn->latency / 2; busy++)
			port_from(cpu, DIVIDE, done + busy);
	}
	done += insn->latency;
	if (insn->flags & LOCKED)
		state->barrier = done = later(done, state->barrier) + (uint64_t)cpu->lock;
	if (insn->slow > 0) {
		uint64_t own = cpu->slow[insn->slow - 1];
		if (!(insn->flags & SERIALISES))
			state->entered += own * PARTS;
		done = (insn->flags & SERIALISES ? later(done, state->newest) : done) + own;
	}
	if (insn->flags & REPEATS) {
		/* Each round of it is a block of its own. */
		uint64_t begins = state->last == insn ? 0 : (uint64_t)cpu->repeat;
		state->entered += begins * PARTS / 2 + (uint64_t)(PARTS * accesses * insn->latency / 2 / cpu->repeated);
		done = later(done + begins, state->entered / PARTS);
		state->last_store = later(state->last_store, done);
	}
	if (insn->flags & SERIALISES)
		state->entered = later(state->entered, done * PARTS);
	if (insn->flags & FENCE)
		state->barrier = later(state->barrier, state->newest);
	for (uint64_t number = 0; number < writes; number++) {
		uint64_t ready = later(address, insn->flags & LOADS ? done : data);
		ready = insn->flags & LOCKED ? done : port_from(cpu, STORE, ready);
		store(state, insn, written[number], ready);
		done = later(done, ready);
	}
	for (int target = 0; target < insn->targets; target++)
		state->ready[insn->target[target]] = done;
	state->newest = later(state->newest, done);
	if (!(insn->flags & FUSED))
		state->left += (uint64_t)(PARTS / cpu->left);
	state->left = later(state->left, done * PARTS);
	for (uint64_t number = 0; number < writes; number++)
		store_leaves[state->stores++ % (uint64_t)cpu->stores] = state->left / PARTS + 1;
	leaves[state->number++ % MOST] = state->left / PARTS;
	state->done = done;
	state->last = insn;
	return at;
}

/* Goes on from a branch, that is done at a cycle, to an address. Returns whether the CPU had not foreseen it. */
static int goes_on(struct state *state, const struct insn *branch, unsigned how, uint64_t done, uint64_t address)
{
	int taken = address != branch->next, foreseen = 1;
	if (how & RETURNS)
		foreseen = return_foreseen(branch->address, address);
	else if (how & INDIRECT)
		foreseen = target_foreseen(branch->address, address);
	else if (how & IF)
		foreseen = condition_foreseen(branch->address, taken);
	else
		branch_went(1, address);
	if (branch->flags & CALLS)
		call_went(branch->next);
	if (!foreseen && state->cpu->redirect > 0) {
		state->entered = later(state->entered, (done + (uint64_t)state->cpu->redirect) * PARTS);
		state->fetched = later(state->fetched, state->entered);
	} else if (taken)
		state->fetched = (state->fetched + PARTS - 1) / PARTS * PARTS;
	return !foreseen;
}

static void forget(void)
{
	memset(&branches, 0, sizeof branches);
	memset(port_at, 0, sizeof port_at);
	memset(stored, 0, sizeof stored);
	memset(coming, 0, sizeof coming);
	memset(leaves, 0, sizeof leaves);
	memset(buffer, 0, sizeof buffer);
	memset(store_leaves, 0, sizeof store_leaves);
}

/*
 * Times a trace. The first `warm` windows only fill the model. `cycles` and `mispredicted` are of functions, and get what
 * all windows that count take together.
 */
__attribute__((visibility("default"))) void timed_trace(const struct cpu *cpu, const struct insn *insns,
	const struct block *block_at, const double *footprint, const struct step *steps, uint64_t count, uint64_t warm,
	double *cycles, double *mispredicted, struct timed *timed)
{
	struct state state = { .cpu = cpu, .footprint = footprint, .timed = timed };
	const struct insn *branch = NULL; /* of which it is not known yet where it goes, and as what it does */
	unsigned how = 0;
	uint64_t branch_done = 0, windows = 0, begun = 0;
	state.pages = pages_of(cpu->pages, WAYS);
	state.more_pages = pages_of(cpu->more_pages, MORE_WAYS);
	forget();
	memset(timed, 0, sizeof *timed);
	for (uint64_t at = 0; at < count;) {
		const struct step *step = &steps[at++];
		if (kind_of(step) & STEP_WINDOW) {
			if (++windows == warm) {
				memset(timed, 0, sizeof *timed);
				begun = state.left;
			}
			if (windows >= warm) {
				timed->windows = windows - warm;
				timed->cycles = (double)(state.left - begun) / PARTS;
			}
		}
		if (!(kind_of(step) & STEP_BLOCK))
			continue;
		const struct block *block = &block_at[place_of(step)];
		const struct insn *first = &insns[block->first];
		if (block->length == 0)
			continue;
		if (first->flags & (RETURN_THUNK | INDIRECT_THUNK)) {
			/* A CPU that needs none goes on from where the thunk was called. */
			how = first->flags & RETURN_THUNK ? RETURNS : INDIRECT;
			continue;
		}
		if (branch != NULL && goes_on(&state, branch, how, branch_done, step->address)) {
			timed->mispredicted++;
			if (windows >= warm)
				mispredicted[branch->function]++;
		}
		branch = NULL;
		for (uint32_t number = 0; number < block->length; number++) {
			const struct insn *insn = &first[number];
			uint64_t before = state.left;
			at = execute(&state, insn, steps, at, count);
			timed->instructions++;
			if (windows >= warm)
				cycles[insn->function] += (double)(state.left - before) / PARTS;
			if (number + 1 == block->length && insn->flags & BRANCHES) {
				branch = insn;
				how = insn->flags;
				branch_done = state.done;
			}
		}
	}
	free(state.pages.page);
	free(state.more_pages.page);
}
