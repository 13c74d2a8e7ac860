// SPDX-License-Identifier: Apache-2.0
/* Counts what CPUs execute, by perf_event_open(2): instructions and cycles of the kernel, instructions of programs.
 *
 *   pdrgate-counts FOLDER CPUS       CPUS as 1,2,3
 *
 * FOLDER has two named pipes: `control`, from which it reads lines, and `answer`, into which each is answered by a line
 * of JSON. The first answer, {"ready":1}, comes unasked: the counters are there. An {"error":...} is the last.
 *
 *   begin      counts from 0
 *   end        prints {"kernel_instructions":..,"user_instructions":..,"kernel_cycles":..,"counted_ns":..}
 *
 * Where the processor has fewer counters than are asked for, the kernel takes turns, and values are scaled by the time
 * that each had; so CPUs count one group of three, which takes turns as one. The program itself runs on no CPU that it
 * counts where there is another.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asked.h"

#define MOST_CPUS 1024
#define KINDS 3

static const struct {
	const char *name;
	uint64_t config;
	int user;
} kinds[KINDS] = {
	{ "kernel_instructions", PERF_COUNT_HW_INSTRUCTIONS, 0 },
	{ "user_instructions", PERF_COUNT_HW_INSTRUCTIONS, 1 },
	{ "kernel_cycles", PERF_COUNT_HW_CPU_CYCLES, 0 },
};

struct group {
	uint64_t members, enabled, running, values[KINDS];
};

static int cpus[MOST_CPUS], counters[MOST_CPUS][KINDS], many;

static int counter(int kind, int cpu, int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = kinds[kind].config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = leader < 0,
		.exclude_user = !kinds[kind].user,
		.exclude_kernel = kinds[kind].user,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		fail(kinds[kind].name);
	return fd;
}

static void open_all(char *list)
{
	cpu_set_t others;

	sched_getaffinity(0, sizeof(others), &others);
	for (char *cpu = strtok(list, ","); cpu && many < MOST_CPUS; cpu = strtok(NULL, ",")) {
		cpus[many] = atoi(cpu);
		CPU_CLR(cpus[many], &others);
		for (int kind = 0; kind < KINDS; kind++)
			counters[many][kind] = counter(kind, cpus[many], kind ? counters[many][0] : -1);
		many++;
	}
	if (CPU_COUNT(&others))
		sched_setaffinity(0, sizeof(others), &others);
}

static void all(unsigned long request)
{
	for (int at = 0; at < many; at++)
		if (ioctl(counters[at][0], request, PERF_IOC_FLAG_GROUP))
			fail("ioctl");
}

static void begin(void)
{
	all(PERF_EVENT_IOC_RESET);
	all(PERF_EVENT_IOC_ENABLE);
	answer("{\"begun\":1}");
}

static void end(void)
{
	static uint64_t enabled_before[MOST_CPUS], running_before[MOST_CPUS];
	uint64_t sums[KINDS] = { 0 }, counted = 0;

	all(PERF_EVENT_IOC_DISABLE);
	for (int at = 0; at < many; at++) {
		struct group found;
		uint64_t enabled, running;

		if (read(counters[at][0], &found, sizeof(found)) != sizeof(found))
			fail("read");
		/* Resetting sets values to 0, and times go on. */
		enabled = found.enabled - enabled_before[at];
		running = found.running - running_before[at];
		enabled_before[at] = found.enabled;
		running_before[at] = found.running;
		if (!running) {
			errno = EBUSY;
			fail("others have all of the processor's counters");
		}
		for (int kind = 0; kind < KINDS; kind++)
			sums[kind] += (uint64_t)((double)found.values[kind] * enabled / running);
		counted = enabled > counted ? enabled : counted;
	}
	answer("{\"%s\":%llu,\"%s\":%llu,\"%s\":%llu,\"counted_ns\":%llu}", kinds[0].name, (unsigned long long)sums[0],
	       kinds[1].name, (unsigned long long)sums[1], kinds[2].name, (unsigned long long)sums[2],
	       (unsigned long long)counted);
}

int main(int argc, char **argv)
{
	char line[64];
	FILE *control;

	if (argc != 3) {
		fprintf(stderr, "usage: pdrgate-counts FOLDER CPUS\n");
		return 64;
	}
	control = begin_to_be_asked(argv[1]);
	if (!control)
		return 1;
	open_all(argv[2]);
	answer("{\"ready\":1}");
	while (fgets(line, sizeof(line), control)) {
		if (!strcmp(line, "begin\n"))
			begin();
		else if (!strcmp(line, "end\n"))
			end();
		else
			answer("{\"error\":\"asked for what is not understood\"}");
	}
	return 0;
}
