/* SPDX-License-Identifier: MIT */
/*
 * A plugin for QEMU's TCG, of guests of one virtual CPU: sees each access to memory of the guest's kernel while a trial
 * wants it, and counts by instruction what it touches and what a model of caches misses. It is loaded beside vcpu_meter
 * by `-plugin FILE,memory=PATH`, where PATH is the memory of record.h.
 *
 * While no trial is under way no code is instrumented for it, so that it costs nothing: when that changes, all that was
 * translated is thrown away. Only a CPU's own thread may have that done, and here it comes by when it has nothing to do.
 *
 * What a packet touches is counted in windows: one ends, and the next begins, where the kernel takes a packet up. What
 * the kernel does by itself meanwhile, such as a tick, is not seen at all: it comes by the clock, of which a trial like
 * this takes much. A window in which the CPU had nothing to do does not count.
 *
 * What the kernel does for a program comes behind a switch of tasks, and is in no window. Of a program that reads
 * datagrams the atomic instructions are counted, for all packets of the trial together. Its lines are not: which of many
 * sockets' lines a cache has is chance of a boot.
 */
#include "../privilege.h"
#include "../qemu_interface.h"
#include "cache_model.h"
#include "filled_pages.h"
#include "line_kinds.h"
#include "record.h"
#include "seen_lines.h"
#include GUEST_TRAITS

EXPORTED int qemu_plugin_version = PLUGIN_API;

enum { NOTES = 1 << 16, KNOWN = 2 * PLACES, EVENT_SHIFT = 18 /* 2^18 places */, KIND_SHIFT = EVENT_SHIFT + EVENTS };

static struct record *record;
static plugin_id self;
static uint64_t requested; /* of what was asked for, the last that the emulator was asked to make so */

static struct cache level[LEVELS];
static struct seen seen;
static struct kinds kinds;
static uint32_t known_at[KNOWN]; /* index of a place + 1 */

/* The window: it counts when it has ended, if it does. */
static uint64_t window, windows_to_warm;
static int clean, interrupted, elsewhere;
static int reads; /* a program has read datagrams */
static int in_program; /* in a system call of one that does */
static struct filling filling;
static uint32_t note_of[NOTES], notes;
static uint64_t line_of[NOTES], bytes_of[NOTES];

/* --- Windows ------------------------------------------------------------------------------------------------------- */

static inline void note(const struct place *place, unsigned events, unsigned kind, uint64_t line, uint64_t bytes)
{
	if (notes == NOTES) {
		clean = 0;
		return;
	}
	line_of[notes] = line;
	bytes_of[notes] = bytes;
	note_of[notes++] = (uint32_t)(place - record->place) | events << EVENT_SHIFT | kind << KIND_SHIFT;
}

/* One more step of the trace, where one is wanted and the model is warm. */
static inline void trace(uint64_t place, unsigned what, uint64_t address)
{
	if (record->steps < record->steps_wanted && windows_to_warm == 0)
		record->step[record->steps++] =
			(struct step){ .address = address, .what = place | (uint64_t)what << STEP_SHIFT };
}

static void count_notes(void)
{
	for (uint32_t number = 0; number < notes; number++) {
		uint32_t at = note_of[number] & (PLACES - 1);
		struct place *place = &record->place[at];
		unsigned events = note_of[number] >> EVENT_SHIFT & ((1 << EVENTS) - 1);
		unsigned kind = note_of[number] >> KIND_SHIFT;
		if ((events & NEW_LINE) && place->kind == INSTRUCTION) {
			place->lines_of[kind]++;
			if (record->listed_kinds >> kind & 1)
				list_line(record->listed, LISTED,
					  &(struct listed_line){ .line = line_of[number], .place = at, .kind = kind,
							       .touched = bytes_of[number],
							       .written = events & STORED ? bytes_of[number] : 0,
							       .missed_l2 = (events & MISSED_L2) != 0,
							       .missed_last = (events & MISSED_LAST) != 0,
							       .first_ever = (events & FIRST_EVER) != 0 });
		}
		for (; events != 0; events &= events - 1)
			place->count[__builtin_ctz(events)]++;
	}
}

static void next_window(void)
{
	trace(0, STEP_WINDOW, clean);
	if (windows_to_warm > 0) {
		windows_to_warm--;
	} else if (clean) {
		count_notes();
		record->windows++;
	} else {
		record->dropped++;
	}
	notes = 0;
	clean = 1;
	window++;
}

/* --- Touching lines ------------------------------------------------------------------------------------------------ */

static unsigned touched(struct place *place, uint64_t line, struct cache *first)
{
	struct seen_line *known = seen_line(&seen, line);
	unsigned events = 0;
	if (known == NULL) {
		record->no_room++;
		return 0;
	}
	if (known->window != window)
		events = NEW_LINE;
	if (!cache_touch(first, line)) {
		int second = cache_touch(&level[2], line), last = second || cache_touch(&level[3], line);
		if (known->window == 0) {
			events |= FIRST_EVER;
			place->regions += seen_new_region(&seen, place - record->place, line);
		} else {
			events |= MISSED_L1 | (second ? 0 : MISSED_L2) | (last ? 0 : MISSED_LAST);
		}
	}
	known->window = window;
	return events;
}

/* Data. */
static void touched_data(struct place *place, unsigned events, uint64_t address, uint64_t line, uint64_t bytes)
{
	events |= touched(place, line, &level[0]);
	if (record->steps_wanted != 0)
		trace(place - record->place,
		      (events & STORED ? STEP_STORE : 0) | (events & MISSED_L1 ? STEP_MISSED_L1 : 0) |
			      (events & MISSED_L2 ? STEP_MISSED_L2 : 0) | (events & MISSED_LAST ? STEP_MISSED_LAST : 0) |
			      (events & FIRST_EVER ? STEP_FIRST_EVER : 0),
		      address);
	if (events != 0)
		note(place, events, events & NEW_LINE ? kinds_of(&kinds, record->area, record->areas, line) : UNKNOWN, line,
		     bytes);
}

static void accessed(unsigned cpu, plugin_access info, uint64_t address, void *data)
{
	if (interrupted)
		return;
	struct place *place = data;
	int stores = qemu_plugin_mem_is_store(info), locked = stores && (place->traits & ATOMIC);
	if (in_program)
		place->by_program += locked;
	if (elsewhere)
		return;
	uint64_t line = address >> LINE_SHIFT, size = 1ULL << qemu_plugin_mem_size_shift(info);
	unsigned events = stores ? STORED : LOADED;
	(void)cpu;
	kinds_learn(&kinds, place->traits, stores, line);
	if (locked && !in_program)
		events |= STORED_LOCKED;
	if (!stores)
		filling_loads(&filling);
	else if (filling_stores(&filling, address, size))
		events |= FILLED_PAGE;
	touched_data(place, events, address, line, bytes_within(address, size));
	if ((address + size - 1) >> LINE_SHIFT != line)
		touched_data(place, 0, (line + 1) << LINE_SHIFT, line + 1, bytes_beyond(address, size));
}

/* What is known of a block beside its place: where its code ends, and what it begins. */
static struct {
	uint64_t last_line;
	uint64_t role;
} block_of[PLACES];

static void heed(uint64_t role)
{
	switch (role) {
	case PACKET:
		interrupted = elsewhere = in_program = 0;
		record->packets++;
		next_window();
		break;
	case INTERRUPT:
		interrupted = 1;
		break;
	case RETURN:
		interrupted = 0;
		break;
	case FOREIGN:
		elsewhere = 1;
		in_program = 0;
		break;
	case READ:
		in_program = reads = 1;
		break;
	case SEND:
		in_program = reads;
		break;
	case POLL:
		elsewhere = in_program = 0;
		break;
	}
}

static void executed(unsigned cpu, void *data)
{
	struct place *place = data;
	uint32_t number = place - record->place;
	unsigned events = EXECUTED;
	(void)cpu;
	if (block_of[number].role != 0)
		heed(block_of[number].role);
	if (interrupted || elsewhere)
		return;
	if (record->steps_wanted != 0)
		trace(number, STEP_BLOCK, place->address);
	for (uint64_t line = place->address >> LINE_SHIFT; line <= block_of[number].last_line; line++, events = 0)
		if ((events |= touched(place, line, &level[1])) != 0)
			note(place, events, UNKNOWN, line, 0);
}

/* --- Translation --------------------------------------------------------------------------------------------------- */

/* Code is translated more than once. NULL where there is no room. */
static struct place *place_at(uint64_t address, uint16_t kind, uint32_t length, uint16_t traits)
{
	uint64_t places = record->places, slot = mixed(address * 4 + kind + ((uint64_t)length << 48)) % KNOWN;
	for (; known_at[slot] != 0; slot = (slot + 1) % KNOWN) {
		struct place *known = &record->place[known_at[slot] - 1];
		if (known->address == address && known->kind == kind && known->length == length)
			return known;
	}
	if (places == PLACES) {
		record->no_room++;
		return NULL;
	}
	record->place[places] =
		(struct place){ .address = address, .kind = kind, .length = length, .traits = traits };
	known_at[slot] = places + 1;
	atomic_store_explicit(&record->places, places + 1, memory_order_release);
	return &record->place[places];
}

static uint16_t traits_of_insn(const struct qemu_plugin_insn *insn, struct code_state *state)
{
	uint8_t code[CODE_MAX];
	return traits_of(code, code_of(insn, code), state);
}

static void keep_code(const struct qemu_plugin_insn *insn, struct traced_code *kept)
{
	uint8_t code[CODE_MAX];
	kept->size = code_of(insn, code);
	memcpy(kept->byte, code, TRACED_CODE);
}

static uint64_t role_of(uint64_t address)
{
	for (uint64_t number = 0; number < record->marks && number < MARKS; number++)
		if (record->mark[number].address == address)
			return record->mark[number].role;
	return 0;
}

/* Of code where programs are: these are no part of a packet's path, and a kernel's own code is. */
static void accessed_low(unsigned cpu, plugin_access info, uint64_t address, void *data)
{
	if (knows_programs() && !is_of_program(info))
		accessed(cpu, info, address, data);
}

static void translated_low(struct qemu_plugin_tb *tb, uint64_t length)
{
	struct place *place = place_at(NOWHERE, INSTRUCTION, 1, 0);
	for (size_t number = 0; place != NULL && number < length; number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		uint8_t code[CODE_MAX];
		if (accesses_plainly(code, code_of(insn, code)))
			qemu_plugin_register_vcpu_mem_cb(insn, accessed_low, NO_REGISTERS, READS_AND_WRITES, place);
	}
}

static void translated(struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), length = qemu_plugin_tb_n_insns(tb);
	if (address < FIRST_KERNEL_ADDRESS) {
		translated_low(tb, length);
		return;
	}
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, length - 1);
	struct code_state unknown = { 0 };
	struct place *block = place_at(address, BLOCK, length, traits_of_insn(last, &unknown));
	if (block == NULL)
		return;
	block_of[block - record->place].last_line =
		(qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last) - 1) >> LINE_SHIFT;
	block_of[block - record->place].role = role_of(address);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, block);
	struct code_state state = { 0 };
	for (size_t number = 0; number < length; number++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, number);
		struct place *place =
			place_at(qemu_plugin_insn_vaddr(insn), INSTRUCTION, 1, traits_of_insn(insn, &state));
		if (place != NULL && record->steps_wanted != 0)
			keep_code(insn, &record->code[place - record->place]);
		if (place != NULL)
			qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, READS_AND_WRITES, place);
	}
}

/* --- Trials -------------------------------------------------------------------------------------------------------- */

static void forget_model(void)
{
	for (int number = 0; number < LEVELS; number++)
		cache_free(&level[number]);
	seen_free(&seen);
}

/* Whether there is memory for it. */
static int begin_trial(void)
{
	memset(known_at, 0, sizeof known_at);
	kinds_forget(&kinds);
	memset(record->listed, 0, sizeof record->listed);
	record->places = record->packets = record->windows = record->dropped = record->no_room = record->steps = 0;
	window = 1;
	windows_to_warm = record->warm;
	clean = notes = interrupted = elsewhere = reads = in_program = 0;
	for (int number = 0; number < LEVELS; number++)
		if (!cache_make(&level[number], record->level[number].sets, record->level[number].ways))
			return 0;
	return seen_make(&seen);
}

static void idle(void);
static void begin_or_end(void);
static void translated_firmware(struct qemu_plugin_tb *tb);

#if PLUGIN_API >= 7
static void on_translation(struct qemu_plugin_tb *tb, void *data) { (void)data; translated(tb); }
static void on_firmware(struct qemu_plugin_tb *tb, void *data) { (void)data; translated_firmware(tb); }
static void on_idle(unsigned cpu, void *data) { (void)cpu; (void)data; idle(); }
static void on_reset(void *data) { (void)data; begin_or_end(); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function, NULL)
#define RESET() qemu_plugin_reset(self, on_reset, NULL)
#else
static void on_translation(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; translated(tb); }
static void on_firmware(plugin_id id, struct qemu_plugin_tb *tb) { (void)id; translated_firmware(tb); }
static void on_idle(plugin_id id, unsigned cpu) { (void)id; (void)cpu; idle(); }
static void on_reset(plugin_id id) { (void)id; begin_or_end(); }
#define CALL_BACK(what, function) qemu_plugin_register_vcpu_##what##_cb(self, function)
#define RESET() qemu_plugin_reset(self, on_reset)
#endif

static void firmware_was_learned(void)
{
	RESET();
}

static void translated_firmware(struct qemu_plugin_tb *tb)
{
	look_at_firmware(tb, firmware_was_learned);
}

static void idle(void)
{
	uint64_t asked = atomic_load_explicit(&record->asked, memory_order_acquire);
	clean = in_program = 0;
	if (asked != requested) {
		requested = asked;
		RESET();
	}
}

/* While the CPU stands still, and nothing that was translated is left. */
static void begin_or_end(void)
{
	CALL_BACK(idle, on_idle);
	forget_model();
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
	record = record_with_reader("memory_trial", argc, argv, MAGIC, sizeof *record);
	if (record == NULL)
		return 1;
	self = id;
	CALL_BACK(tb_trans, on_firmware);
	CALL_BACK(idle, on_idle);
	return 0;
}
