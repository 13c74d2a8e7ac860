/* SPDX-License-Identifier: MIT */
/*
 * Virtual CPUs that execute in turn, each so many instructions. So what they do to each other's lines does not depend on
 * when this machine ran which, and no two of them count at the same time. The turn goes round: to the next CPU that has
 * something to do.
 */
#ifndef TURNS_H
#define TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_CPUS = 4, NOBODY = -1 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t passed;
	int cpus; /* that take turns; at most MOST_CPUS */
	_Atomic int whose;
	uint64_t passes; /* how often the turn has gone to a CPU */
	int idle[MOST_CPUS];
	uint64_t each, left; /* instructions of a turn, and of the one that somebody has */
	uint64_t slips; /* turns that were taken, for the CPU that had one did not end it */
	long patience; /* ns that a CPU waits for another to pass the turn on; less than a second */
} turns = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.passed = PTHREAD_COND_INITIALIZER,
	.cpus = 2,
	.whose = NOBODY,
	.patience = 5000000,
};

static inline void turn_passes_to(int cpu)
{
	turns.left = turns.each;
	turns.passes++;
	atomic_store(&turns.whose, cpu);
	pthread_cond_broadcast(&turns.passed);
}

/* The next CPU behind this one that has something to do; NOBODY where no other has. */
static inline int next_of(int cpu)
{
	for (int next = (cpu + 1) % turns.cpus; next != cpu; next = (next + 1) % turns.cpus)
		if (!turns.idle[next])
			return next;
	return NOBODY;
}

static inline struct timespec patience_ends(void)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += turns.patience;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}

/*
 * A CPU that waits for all others to stand still, as the emulator sometimes does, would wait for one that waits here. So
 * a CPU takes its turn where the one whose turn it is has not passed it on for long.
 */
static __attribute__((noinline)) void await_turn(int cpu, uint64_t length, uint64_t instructions)
{
	pthread_mutex_lock(&turns.lock);
	turns.each = instructions;
	int next = next_of(cpu);
	/* One that was given the turn just now has not used it. */
	if (atomic_load(&turns.whose) == cpu && turns.left < length && next != NOBODY)
		turn_passes_to(next);
	struct timespec until = patience_ends();
	uint64_t passes = turns.passes;
	while (atomic_load(&turns.whose) != cpu && atomic_load(&turns.whose) != NOBODY) {
		int late = pthread_cond_timedwait(&turns.passed, &turns.lock, &until) != 0;
		if (passes != turns.passes) {
			passes = turns.passes;
			until = patience_ends();
		} else if (late) {
			turns.slips++;
			turn_passes_to(cpu);
		}
	}
	turns.left = instructions;
	atomic_store(&turns.whose, cpu);
	pthread_mutex_unlock(&turns.lock);
}

static inline void take_turn(int cpu, uint64_t length, uint64_t instructions)
{
	if (atomic_load_explicit(&turns.whose, memory_order_relaxed) != cpu || turns.left < length)
		await_turn(cpu, length, instructions);
	turns.left -= turns.left < length ? turns.left : length;
}

/* A CPU has nothing to do. */
static inline void end_turn(int cpu)
{
	pthread_mutex_lock(&turns.lock);
	turns.idle[cpu] = 1;
	if (atomic_load(&turns.whose) == cpu)
		turn_passes_to(next_of(cpu));
	pthread_mutex_unlock(&turns.lock);
}

/* A CPU has something to do again; returns whether no other has. */
static inline int want_turn(int cpu)
{
	pthread_mutex_lock(&turns.lock);
	turns.idle[cpu] = 0;
	int alone = next_of(cpu) == NOBODY;
	pthread_mutex_unlock(&turns.lock);
	return alone;
}

#endif
