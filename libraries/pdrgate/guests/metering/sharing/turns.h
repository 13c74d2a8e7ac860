/* SPDX-License-Identifier: MIT */
/*
 * Virtual CPUs that execute in turn, each so many instructions. So what they do to each other's lines does not depend on
 * when this machine ran which, and no two of them count at the same time.
 */
#ifndef TURNS_H
#define TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { NOBODY = -1, PATIENCE = 5000000 /* ns */ };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t passed;
	_Atomic int whose;
	int idle[2];
	uint64_t left; /* instructions */
	uint64_t slips;
} turns = { .lock = PTHREAD_MUTEX_INITIALIZER, .passed = PTHREAD_COND_INITIALIZER, .whose = NOBODY };

static inline void turn_passes_to(int cpu)
{
	atomic_store(&turns.whose, cpu);
	pthread_cond_broadcast(&turns.passed);
}

/* A CPU that waits for all others to stand still, as the emulator sometimes does, would wait for one that waits here. */
static __attribute__((noinline)) void await_turn(int cpu, uint64_t instructions)
{
	struct timespec until;
	pthread_mutex_lock(&turns.lock);
	if (atomic_load(&turns.whose) == cpu && !turns.idle[1 - cpu])
		turn_passes_to(1 - cpu);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PATIENCE;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (atomic_load(&turns.whose) == 1 - cpu)
		if (pthread_cond_timedwait(&turns.passed, &turns.lock, &until) != 0) {
			turns.slips++;
			break;
		}
	atomic_store(&turns.whose, cpu);
	turns.left = instructions;
	pthread_mutex_unlock(&turns.lock);
}

static inline void take_turn(int cpu, uint64_t length, uint64_t instructions)
{
	if (atomic_load_explicit(&turns.whose, memory_order_relaxed) != cpu || turns.left < length)
		await_turn(cpu, instructions);
	turns.left -= turns.left < length ? turns.left : length;
}

/* A CPU has nothing to do. */
static inline void end_turn(int cpu)
{
	pthread_mutex_lock(&turns.lock);
	turns.idle[cpu] = 1;
	if (atomic_load(&turns.whose) == cpu)
		turn_passes_to(turns.idle[1 - cpu] ? NOBODY : 1 - cpu);
	pthread_mutex_unlock(&turns.lock);
}

/* A CPU has something to do again; returns whether the other has nothing. */
static inline int want_turn(int cpu)
{
	pthread_mutex_lock(&turns.lock);
	int alone = turns.idle[1 - cpu];
	turns.idle[cpu] = 0;
	pthread_mutex_unlock(&turns.lock);
	return alone;
}

#endif
