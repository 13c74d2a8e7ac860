// SPDX-License-Identifier: Apache-2.0
/* A heartbeat on one CPU: how well that CPU does while it forwards packets.
 *
 *   pdrgate-heartbeat CPU
 *
 * Held across trials. It says that it is ready; from then on each line of input begins a watch, or ends the one that is
 * on, and is answered by one line of JSON: {"on":true}, or what was seen, or {"error":"..."}. It ends when its input
 * ends or when its parent dies.
 *
 * While it watches, a SCHED_FIFO thread on that CPU wakes every PERIOD and does the same little work: arithmetic that
 * takes what execution units there are, and loads from more memory than the first cache holds. What these take shows how
 * fast the CPU is just now: of a shared machine, how much of a core there is. Code that is spread over many cache lines
 * would show more, but what it takes depends on the load.
 *
 * A beat that comes late was kept waiting in one of two ways, and the kernel's own account of the thread shows which. It
 * was ready to run and something else ran (run_delay): packet work, which is the SUT's, or a real-time thread. Or not
 * even the timer's interrupt came: then nothing of this kernel ran, or it had its interrupts off all the time. Of the
 * former only that is a disturbance for which packet work had to wait too, which the account of ksoftirqd shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000ull
#define PERIOD 2037100ull	/* ns; far from any part of a tick, which would find a beat each time for a while */
#define MOST 65536		/* beats whose work is kept; of longer watches the first ones, and all gaps */
#define STALL 8000000ull		/* ns; packet work in an interrupt may hold a beat up for less, and is the SUT's */
#define WITHHELD 3000000ull	/* ns; the kernel lets threads run after 2 ms of packet work, or at the next tick */
#define ROUNDS 1000
#define LINE 64
#define LOADS 128
#define LINES (512 * 1024 / LINE)

struct account {
	uint64_t ran, waited;		/* ns */
};

struct seen {
	uint64_t beats, missed, stalls;
	uint64_t stalled, longest_stall, withheld, longest_withheld, longest_wait;	/* ns */
};

static uint32_t *arithmetic_took, *loads_took;	/* ns, of each beat */
static uint8_t *memory;
static struct seen seen;
static struct account own;		/* of the thread that beats */
static int packets = -1, packets_state = -1;	/* the account and the state of the thread that does packet work */
static uint64_t packets_ran_at;		/* of the last beat that found that it had run since the one before */
static atomic_bool watching, over;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static volatile uint64_t sink;

static void fail(const char *what, int error)
{
	printf("{\"error\":\"%s: %s\"}\n", what, strerror(error));
	fflush(stdout);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* What the kernel keeps of a thread in its schedstat; zeros where it keeps nothing. */
static struct account account(int file)
{
	struct account found = { 0 };
	char text[80], *rest;
	ssize_t length = file < 0 ? -1 : pread(file, text, sizeof(text) - 1, 0);

	if (length > 0) {
		text[length] = 0;
		found.ran = strtoull(text, &rest, 10);
		found.waited = strtoull(rest, NULL, 10);
	}
	return found;
}

static uint64_t arithmetic(uint64_t seed)
{
	uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4;

	for (int i = 0; i < ROUNDS; i++) {
		a = a * 3 + 1;
		b = (b ^ 0x55) + 7;
		c = (c << 1) + 5;
		d = d - 9;
		e = e ^ (e >> 1);
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	}
	return a ^ b ^ c ^ d ^ e;
}

/* Each time other lines, of which the first cache has none. */
static uint64_t loads(uint32_t at)
{
	uint64_t sum = 0;

	for (int i = 0; i < LOADS; i++) {
		at = at * 1664525u + 1013904223u;
		sum += ((volatile uint8_t *)memory)[(at >> 16) % LINES * LINE];
	}
	return sum;
}

static void watch(int schedstat)
{
	struct account begin = account(schedstat), last = begin, current = begin;
	struct account packet_work = account(packets);
	uint64_t packets_before = packet_work.waited, packets_last = packets_before, long_wait = 0;
	uint64_t due = now() + PERIOD;

	memset(&seen, 0, sizeof(seen));
	while (!atomic_load(&over)) {
		struct timespec until = { due / NS, due % NS };
		uint64_t woke, late, waited, packets_ran, packets_waited, before, between, after;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		woke = now();
		current = account(schedstat);
		packets_ran = packet_work.ran;
		packet_work = account(packets);
		packets_waited = packet_work.waited;
		if (packet_work.ran != packets_ran)
			packets_ran_at = woke;
		before = now();
		sink += arithmetic(sink);
		between = now();
		sink += loads(seen.beats);
		after = now();
		late = woke - due;
		waited = current.waited - last.waited;
		last = current;
		if (seen.beats < MOST) {
			arithmetic_took[seen.beats] = between - before;
			loads_took[seen.beats] = after - between;
		}
		seen.beats++;
		if (waited > seen.longest_wait)
			seen.longest_wait = waited;
		/* The last beat was kept waiting for long. Was packet work too? Its account has that once it has run again. */
		if (long_wait) {
			uint64_t kept = packets_waited - packets_before < long_wait ? packets_waited - packets_before : long_wait;

			if (kept > WITHHELD) {
				seen.withheld += kept;
				if (kept > seen.longest_withheld)
					seen.longest_withheld = kept;
			}
		}
		long_wait = waited > WITHHELD ? waited : 0;
		packets_before = packets_last;
		packets_last = packets_waited;
		if (late > waited + STALL) {
			seen.stalls++;
			seen.stalled += late - waited;
			if (late - waited > seen.longest_stall)
				seen.longest_stall = late - waited;
		}
		/* Work that was interrupted for long is a gap too, and its time is in no beat's lateness. */
		if (after - woke > STALL) {
			uint64_t stopped = after - woke, ready = account(schedstat).waited - current.waited;

			if (stopped > ready + STALL) {
				seen.stalls++;
				seen.stalled += stopped - ready;
				if (stopped - ready > seen.longest_stall)
					seen.longest_stall = stopped - ready;
			}
		}
		due += PERIOD;
		if (after > due) {
			uint64_t behind = (after - due) / PERIOD + 1;

			seen.missed += behind;
			due += behind * PERIOD;
		}
	}
	current = account(schedstat);
	own = (struct account){ current.ran - begin.ran, current.waited - begin.waited };
}

static void *beat(void *unused)
{
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

	(void)unused;
	pthread_mutex_lock(&turn);
	for (;;) {
		while (!atomic_load(&watching))
			pthread_cond_wait(&change, &turn);
		pthread_mutex_unlock(&turn);
		watch(schedstat);
		pthread_mutex_lock(&turn);
		atomic_store(&watching, false);
		pthread_cond_broadcast(&change);
	}
	return NULL;
}

/* Whether that thread is ready to run, or runs. */
static bool ready(void)
{
	char text[64];
	ssize_t length = packets_state < 0 ? -1 : pread(packets_state, text, sizeof(text) - 1, 0);
	char *state;

	if (length <= 0)
		return false;
	text[length] = 0;
	state = strstr(text, ") ");
	return state && state[2] == 'R';
}

/* Finds the thread that does a CPU's packet work when there is much of it. */
static void find_packet_work(int cpu)
{
	char wanted[32], name[32] = "";
	glob_t found;

	snprintf(wanted, sizeof(wanted), "ksoftirqd/%d\n", cpu);
	if (glob("/proc/[0-9]*/comm", GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && packets < 0; i++) {
		FILE *comm = fopen(found.gl_pathv[i], "r");

		if (!comm)
			continue;
		if (fgets(name, sizeof(name), comm) && !strcmp(name, wanted)) {
			char path[64];
			long process = strtol(found.gl_pathv[i] + strlen("/proc/"), NULL, 10);

			snprintf(path, sizeof(path), "/proc/%ld/schedstat", process);
			packets = open(path, O_RDONLY | O_CLOEXEC);
			snprintf(path, sizeof(path), "/proc/%ld/stat", process);
			packets_state = open(path, O_RDONLY | O_CLOEXEC);
		}
		fclose(comm);
	}
	globfree(&found);
}

static int ascending(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return a < b ? -1 : a > b;
}

static uint32_t quantile(uint32_t *sorted, uint64_t count, double at)
{
	return count ? sorted[(uint64_t)(at * (count - 1))] : 0;
}

static void report(uint64_t elapsed, struct account packet_time)
{
	uint64_t kept = seen.beats < MOST ? seen.beats : MOST;

	qsort(arithmetic_took, kept, sizeof(*arithmetic_took), ascending);
	qsort(loads_took, kept, sizeof(*loads_took), ascending);
	printf("{\"elapsed\":%" PRIu64 ",\"beats\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"stalls\":%" PRIu64
	       ",\"stalled\":%" PRIu64 ",\"longest_stall\":%" PRIu64, elapsed, seen.beats, seen.missed,
	       seen.stalls, seen.stalled, seen.longest_stall);
	printf(",\"withheld\":%" PRIu64 ",\"longest_withheld\":%" PRIu64 ",\"longest_wait\":%" PRIu64, seen.withheld,
	       seen.longest_withheld, seen.longest_wait);
	printf(",\"arithmetic_median\":%u,\"arithmetic_q90\":%u,\"loads_median\":%u,\"loads_q90\":%u",
	       quantile(arithmetic_took, kept, 0.5), quantile(arithmetic_took, kept, 0.9),
	       quantile(loads_took, kept, 0.5), quantile(loads_took, kept, 0.9));
	printf(",\"own_time\":%" PRIu64 ",\"packets_ran\":%" PRIu64 ",\"packets_waited\":%" PRIu64 "}\n", own.ran,
	       packet_time.ran, packet_time.waited);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int cpu = argc > 1 ? atoi(argv[1]) : 0, error;
	struct sched_param priority = { .sched_priority = 1 };
	struct account before = { 0 }, after;
	uint64_t began = 0, elapsed;
	bool on = false;
	pthread_attr_t attributes;
	cpu_set_t own_cpu, others;
	pthread_t thread;
	char line[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	arithmetic_took = calloc(MOST, sizeof(*arithmetic_took));
	loads_took = calloc(MOST, sizeof(*loads_took));
	memory = aligned_alloc(4096, LINES * LINE);
	if (!arithmetic_took || !loads_took || !memory)
		fail("memory", ENOMEM);
	memset(memory, 1, LINES * LINE);
	memset(arithmetic_took, 0, MOST * sizeof(*arithmetic_took));
	memset(loads_took, 0, MOST * sizeof(*loads_took));
	mlockall(MCL_CURRENT);		/* where it may not, a page fault or two delays a beat */
	find_packet_work(cpu);
	CPU_ZERO(&own_cpu);
	CPU_SET(cpu, &own_cpu);
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &priority);
	pthread_attr_setaffinity_np(&attributes, sizeof(own_cpu), &own_cpu);
	error = pthread_create(&thread, &attributes, beat, NULL);
	if (error)
		fail("a real-time thread on that CPU", error);
	/* What talks to the parent keeps off the CPU where packets are forwarded. */
	if (!sched_getaffinity(0, sizeof(others), &others)) {
		CPU_CLR(cpu, &others);
		sched_setaffinity(0, sizeof(others), &others);
	}
	puts("{\"ready\":true}");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		pthread_mutex_lock(&turn);
		on = !on;
		atomic_store(&over, !on);
		if (on) {
			before = account(packets);
			began = packets_ran_at = now();
			atomic_store(&watching, true);
			pthread_cond_broadcast(&change);
		} else {
			while (atomic_load(&watching))
				pthread_cond_wait(&change, &turn);
		}
		pthread_mutex_unlock(&turn);
		if (on) {
			puts("{\"on\":true}");
			fflush(stdout);
			continue;
		}
		after = account(packets);
		elapsed = now() - began;
		after.ran -= before.ran;
		after.waited -= before.waited;
		/* A wait is in the account once it is over: one that goes on is not there, and one may have begun before. */
		if (ready())
			after.waited += began + elapsed - packets_ran_at;
		if (after.ran + after.waited > elapsed)
			after.waited = after.ran < elapsed ? elapsed - after.ran : 0;
		report(elapsed, after);
	}
	return 0;
}
