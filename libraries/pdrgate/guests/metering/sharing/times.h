/* SPDX-License-Identifier: MIT */
/*
 * The time of CPUs that execute in turn, in instructions. A CPU's own take it, and where it has nothing to do, those of
 * another CPU. Ticks, devices' interrupts and whatever else a kernel does beside packets take none.
 */
#ifndef TIMES_H
#define TIMES_H

#include "sharing.h"

static inline void time_passes(struct sharing *record, unsigned cpu, uint64_t instructions)
{
	record->time[cpu] += instructions;
	for (int other = 0; other < turns.cpus; other++)
		if (turns.idle[other]) {
			record->time[other] += instructions;
			record->idle[other] += instructions;
		}
}

static inline void note_taken(struct sharing *record, unsigned cpu)
{
	if (record->taken_up == TAKEN)
		return;
	struct taken *packet = &record->taken[record->taken_up++];
	memcpy(packet->time, record->time, sizeof packet->time);
	memcpy(packet->idle, record->idle, sizeof packet->idle);
	packet->cpu = cpu;
}

/*
 * All CPUs stand still, as the others wait for this one's turn to end. Meanwhile QEMU's main loop hands over packets, and
 * takes those that leave: else how many wait depends on how fast this machine is just now. To sleep takes far longer than
 * was asked for where others use the machine, so it is done once for several packets.
 */
enum { AT_ONCE = 16, REST = 800000 /* ns */ };
static unsigned since_rest; /* packets */

static inline void rest(void)
{
	if (++since_rest % AT_ONCE == 0)
		nanosleep(&(struct timespec){ .tv_nsec = REST }, NULL);
}

static inline void begin_time(struct sharing *record)
{
	record->taken_up = record->by_programs = 0;
	memset(record->time, 0, sizeof record->time);
	memset(record->idle, 0, sizeof record->idle);
}

#endif
