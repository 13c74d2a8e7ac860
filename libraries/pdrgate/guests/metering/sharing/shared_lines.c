/* SPDX-License-Identifier: MIT */
/*
 * A plugin for QEMU's TCG, of guests of two to four virtual CPUs: sees each access to memory of the guest's kernel while a
 * trial wants it, and counts by instruction which lines several CPUs touch. It is loaded by `-plugin FILE,memory=PATH`,
 * where PATH is the memory of sharing.h.
 *
 * What a shared line is stands in line_uses.h. It counts once for each step of a packet's way, however many CPUs share
 * it, and while all CPUs handle packets: what a kernel does with one of them idle, in a tick, or for itself, does not.
 *
 * A trial is slow, and the guest's clock is not: it ticks every few packets. So what an instruction writes no more often
 * than the clock ticks, such as the time of the last packet, would be taken for written by each of them. It is no write.
 *
 * A timed trial records only how many packets the CPUs take up in what time, see times.h.
 *
 * The CPUs execute in turn while a trial is under way. While none is, no code is instrumented.
 */
#include "../qemu_interface.h"
#include "../memory/filled_pages.h"
#include "../memory/line_kinds.h"
#include GUEST_TRAITS
#include "line_uses.h"
#include "sharing.h"
#include "times.h"

EXPORTED int qemu_plugin_version = PLUGIN_API;

enum { KNOWN = 2 * PLACES };

static struct sharing *record;
static plugin_id self;
static _Atomic uint64_t requested; /* of what was asked for, the last that the emulator was asked to make so */

static struct line_table lines;
static struct kinds kinds;
static uint32_t known_at[KNOWN]; /* index of a place + 1 */
static struct {
	int interrupted;
	uint64_t step;
	struct filling filling;
} doing[MOST_CPUS];
static _Atomic unsigned elsewhere; /* a bit for each CPU that does something else than to handle packets */

/* --- Packets ------------------------------------------------------------------------------------------------------- */

enum { LEARNED = 256 /* calls */ };
static uint64_t calls[MARKS], all_calls;
static int packet_mark; /* -1: not known yet */

static int is_elsewhere(unsigned cpu)
{
	return atomic_load_explicit(&elsewhere, memory_order_relaxed) >> cpu & 1;
}

/* Fewer CPUs share fewer lines: where one of them has no packet, how many depends on chance. */
static int counts(unsigned cpu)
{
	return packet_mark >= 0 && !doing[cpu].interrupted && atomic_load_explicit(&elsewhere, memory_order_relaxed) == 0;
}

/* A packet is what the kernel takes up, or what a program gets that takes up most: not all of its packets go on. */
static void learn(int mark)
{
	int taken_up = -1, program = -1;
	calls[mark]++;
	if (packet_mark >= 0 || ++all_calls < LEARNED)
		return;
	for (uint64_t number = 0; number < record->marks && number < MARKS; number++) {
		int *most = record->mark[number].role == PACKET ? &taken_up : &program;
		if (calls[number] != 0 && (*most < 0 || calls[number] > calls[*most]))
			*most = number;
	}
	packet_mark = program < 0 || (taken_up >= 0 && 10 * calls[taken_up] >= 9 * calls[program]) ? taken_up : program;
}

/* --- Lines --------------------------------------------------------------------------------------------------------- */

/* Of what is written now, the bytes that count as written: not what is written as the clock ticks. */
static uint64_t not_by_the_clock(struct line *line, const struct counted_place *place, uint64_t bytes)
{
	if (line->tick != record->ticks)
		line->since = 0;
	line->tick = record->ticks;
	uint64_t again = line->since & bytes;
	line->since |= bytes;
	return place->count[WROTE] * 4 > record->ticks * 5 ? bytes : again;
}

static void touch(unsigned cpu, struct counted_place *place, uint64_t number, uint64_t bytes, int store)
{
	struct line *line = line_at(&lines, number);
	if (line == NULL) {
		record->no_room++;
		return;
	}
	struct use *own = &line->cpu[cpu];
	uint64_t wrote = store ? not_by_the_clock(line, place, bytes) : 0;
	if (wrote != 0)
		line->writer = place->address;
	note_use(&lines, own, bytes, wrote);
	if (own->step == doing[cpu].step || !counts(cpu))
		return;
	struct sharing_of_line found = shared_with_others(&lines, line, cpu);
	if (found.shared) {
		own->step = doing[cpu].step;
		place->count[SHARED]++;
		place->count[SHARED_FALSELY] += !found.truly;
		place->writer = line->writer;
		unsigned kind = kinds_of(&kinds, record->area, record->areas, number);
		place->shared_of[kind]++;
		list_line(record->listed, SHARED_LISTED,
			  &(struct listed_line){ .line = number, .place = place - record->place, .kind = kind,
					       .touched = bytes, .written = found.written, .writer = line->writer });
	}
}

/* A device has no lines, and each CPU's own interrupt controller lies at the same address. */
static int of_device(plugin_access info, uint64_t address)
{
	struct qemu_plugin_hwaddr *physical = qemu_plugin_get_hwaddr(info, address);
	return physical != NULL && qemu_plugin_hwaddr_is_io(physical);
}

static void accessed(unsigned cpu, plugin_access info, uint64_t address, void *data)
{
	struct counted_place *place = data;
	uint64_t size = 1ULL << qemu_plugin_mem_size_shift(info), beyond = bytes_beyond(address, size);
	int store = qemu_plugin_mem_is_store(info);
	if (address < FIRST_KERNEL_ADDRESS || cpu >= (unsigned)turns.cpus || doing[cpu].interrupted || is_elsewhere(cpu) ||
	    of_device(info, address))
		return;
	if (store && place->traits & ATOMIC && counts(cpu))
		place->count[LOCKED]++;
	kinds_learn(&kinds, place->traits, store, address >> LINE_SHIFT);
	place->count[WROTE] += store;
	if (!store)
		filling_loads(&doing[cpu].filling);
	else
		place->count[FILLED] += filling_stores(&doing[cpu].filling, address, size);
	touch(cpu, place, address >> LINE_SHIFT, bytes_within(address, size), store);
	if (beyond != 0)
		touch(cpu, place, (address >> LINE_SHIFT) + 1, beyond, store);
}

static int mark_at[PLACES]; /* index of a mark + 1 */

static void heed(unsigned cpu, int mark)
{
	switch (record->mark[mark].role) {
	case PACKET:
	case PROGRAM:
		learn(mark);
		if (mark == packet_mark) {
			doing[cpu].step++;
			record->packets += counts(cpu);
			if (record->timed)
				note_taken(record, cpu);
		}
		if (record->timed)
			rest();
		break;
	case STEP:
		doing[cpu].step++;
		break;
	case TICK:
		record->ticks++;
		break;
	case INTERRUPT:
		doing[cpu].interrupted = 1;
		break;
	case RETURN:
		doing[cpu].interrupted = 0;
		break;
	case FOREIGN:
		atomic_fetch_or(&elsewhere, 1u << cpu);
		break;
	case POLL:
		atomic_fetch_and(&elsewhere, ~(1u << cpu));
		if (record->timed) /* also where a tick ends with them */
			doing[cpu].interrupted = 0;
		break;
	}
}

static void executed(unsigned cpu, void *data)
{
	struct counted_place *place = data;
	if (cpu >= (unsigned)turns.cpus)
		return;
	take_turn(cpu, place->length, record->turn);
	lines.now += place->length;
	if (mark_at[place - record->place] != 0)
		heed(cpu, mark_at[place - record->place] - 1);
	if (counts(cpu))
		place->count[RAN]++;
}

static void executed_in_time(unsigned cpu, void *data)
{
	struct counted_place *place = data;
	if (cpu >= (unsigned)turns.cpus)
		return;
	take_turn(cpu, place->length, record->turn);
	if (mark_at[place - record->place] != 0)
		heed(cpu, mark_at[place - record->place] - 1);
	if (!doing[cpu].interrupted && !is_elsewhere(cpu))
		time_passes(record, cpu, place->length);
}

static void executed_by_program(unsigned cpu, void *data)
{
	if (cpu >= (unsigned)turns.cpus)
		return;
	take_turn(cpu, (uintptr_t)data, record->turn);
	record->by_programs += (uintptr_t)data;
}

/* --- Translation --------------------------------------------------------------------------------------------------- */

/* Code is translated more than once, by each CPU's thread. NULL where there is no room. */
static struct counted_place *place_at(uint64_t address, uint16_t kind, uint32_t length, uint16_t traits)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct counted_place *found = NULL;
	pthread_mutex_lock(&lock);
	uint64_t places = record->places, slot = mixed(address * 4 + kind + ((uint64_t)length << 48)) % KNOWN;
	for (; found == NULL && known_at[slot] != 0; slot = (slot + 1) % KNOWN) {
		struct counted_place *known = &record->place[known_at[slot] - 1];
		if (known->address == address && known->kind == kind && known->length == length)
			found = known;
	}
	if (found == NULL && places < PLACES) {
		found = &record->place[places];
		*found = (struct counted_place){ .address = address, .kind = kind, .length = length, .traits = traits };
		known_at[slot] = places + 1;
		atomic_store_explicit(&record->places, places + 1, memory_order_release);
	} else if (found == NULL) {
		record->no_room++;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static uint16_t traits_of_insn(const struct qemu_plugin_insn *insn, struct code_state *state)
{
	uint8_t code[CODE_MAX];
	return traits_of(code, code_of(insn, code), state);
}

static int mark_of(uint64_t address)
{
	for (uint64_t number = 0; number < record->marks && number < MARKS; number++)
		if (record->mark[number].address == address)
			return number + 1;
	return 0;
}

static void translated(struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), length = qemu_plugin_tb_n_insns(tb);
	if (address < FIRST_KERNEL_ADDRESS) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed_by_program, NO_REGISTERS, (void *)(uintptr_t)length);
		return;
	}
	struct counted_place *block = place_at(address, BLOCK, length, 0);
	if (block == NULL)
		return;
	mark_at[block - record->place] = mark_of(address);
	if (record->timed) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, executed_in_time, NO_REGISTERS, block);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
	struct code_state state = { 0 };
	for (size_t number = 0; number < length; number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		struct counted_place *place =
			place_at(qemu_plugin_insn_vaddr(insn), INSTRUCTION, 1, traits_of_insn(insn, &state));
		if (place != NULL)
			qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, READS_AND_WRITES, place);
	}
}

/* --- Trials -------------------------------------------------------------------------------------------------------- */

/* Whether guests of so many CPUs can be seen. */
static int takes_cpus(uint64_t cpus)
{
	if (cpus < 2 || cpus > MOST_CPUS) {
		fprintf(stderr, "shared_lines: %llu CPUs share nothing here; ask for 2 to %d\n", (unsigned long long)cpus,
			MOST_CPUS);
		return 0;
	}
	turns.cpus = cpus;
	return 1;
}

/* Whether there is memory for it. */
static int begin_trial(void)
{
	memset(known_at, 0, sizeof known_at);
	memset(calls, 0, sizeof calls);
	memset(record->listed, 0, sizeof record->listed);
	kinds_forget(&kinds);
	all_calls = record->packets = record->places = record->no_room = record->ticks = turns.slips = 0;
	packet_mark = -1;
	begin_time(record);
	for (int cpu = 0; cpu < turns.cpus; cpu++) {
		doing[cpu].interrupted = 0;
		doing[cpu].step = 1;
	}
	atomic_store(&elsewhere, (1u << turns.cpus) - 1);
	atomic_store(&turns.whose, NOBODY);
	return lines_make(&lines, turns.cpus, record->window);
}

static void idle(unsigned cpu);
static void resumes(unsigned cpu);
static void begin_or_end(void);

#if PLUGIN_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *data) { (void)data; translated(tb); }
static void on_idle(unsigned cpu, void *data) { (void)data; idle(cpu); }
static void on_resume(unsigned cpu, void *data) { (void)data; resumes(cpu); }
static void on_reset(void *data) { (void)data; begin_or_end(); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function, NULL)
#define RESET() qemu_plugin_reset(self, on_reset, NULL)
#else
static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; translated(tb); }
static void on_idle(plugin_id id, unsigned cpu) { (void)id; idle(cpu); }
static void on_resume(plugin_id id, unsigned cpu) { (void)id; resumes(cpu); }
static void on_reset(plugin_id id) { (void)id; begin_or_end(); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function)
#define RESET() qemu_plugin_reset(self, on_reset)
#endif

static void idle(unsigned cpu)
{
	if (cpu >= (unsigned)turns.cpus)
		return;
	atomic_fetch_or(&elsewhere, 1u << cpu);
	end_turn(cpu);
}

enum { LOOK_AGAIN = 20000 /* ns */ };

/* Until what was asked for is so. QEMU's own lock, which a CPU has here, is not taken for that. */
static void await_reset(void)
{
	while (atomic_load(&record->heeded) != atomic_load(&requested))
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN }, NULL);
}

/*
 * Trials begin and end here, where a CPU is about to go on and no other has anything to do. QEMU 7.2 keeps a pointer to
 * what was instrumented of the last instruction that each CPU executed, clears it where a CPU halts, and follows it where
 * an interrupt comes: for a CPU that was stopped in the midst of code it would lead to what is no more, and QEMU aborts.
 * So a CPU that wakes up before the translated code has been thrown away waits for that. What is asked for in idle() is
 * done when the CPU goes on, whatever the others do.
 */
static void resumes(unsigned cpu)
{
	uint64_t asked = atomic_load_explicit(&record->asked, memory_order_acquire), before = requested;
	if (cpu >= (unsigned)turns.cpus)
		return;
	if (want_turn(cpu) && asked != before && atomic_compare_exchange_strong(&requested, &before, asked))
		RESET();
	else
		await_reset();
}

/* While all CPUs stand still, and nothing that was translated is left. */
static void begin_or_end(void)
{
	CALL_BACK(idle, on_idle);
	CALL_BACK(resume, on_resume);
	lines_free(&lines);
	record->slips = turns.slips;
	if (requested % 2 == 1) {
		if (begin_trial())
			CALL_BACK(tb_trans, on_translation);
		else
			record->no_room++;
	}
	atomic_store_explicit(&record->heeded, requested, memory_order_release);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	record = record_with_reader("shared_lines", argc, argv, SHARING_MAGIC, sizeof *record);
	if (record == NULL || !takes_cpus(record->cpus))
		return 1;
	self = id;
	CALL_BACK(idle, on_idle);
	CALL_BACK(resume, on_resume);
	return 0;
}
