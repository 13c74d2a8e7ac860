/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a pinned BPF program many times, by BPF_PROG_RUN.
 *
 *   repeat PIN LENGTH FIRST REPEAT BURSTS	prints what it returned, and nanoseconds a run of each burst of REPEAT runs
 *   repeat clock BURSTS			prints nanoseconds of a multiplication that waits for another, of each burst
 *
 * The packet has LENGTH bytes, the first of which is FIRST, and others are 0. It goes before other processes. Compiled
 * with SLOW_STORES, its loads wait until the addresses of all stores before them are known.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LARGEST 2048
#define CHAIN 200000

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e9 + at.tv_nsec;
}

static void clock_of_cpu(int bursts)
{
	while (bursts-- > 0) {
		uint64_t value = 3;
		double begun = now();

		for (int number = 0; number < CHAIN / 10; number++)
			for (int each = 0; each < 10; each++)
				__asm__ volatile("imul %0, %0" : "+r"(value));
		printf("%.5f\n", (now() - begun) / CHAIN);
	}
}

int main(int argc, char **argv)
{
	static unsigned char packet[LARGEST];
	union bpf_attr attr = { 0 };

	setpriority(PRIO_PROCESS, 0, -20);
#ifdef SLOW_STORES
	if (prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0)) {
		perror("PR_SPEC_STORE_BYPASS");
		return 1;
	}
#endif
	if (argc == 3 && !strcmp(argv[1], "clock")) {
		clock_of_cpu(atoi(argv[2]));
		return 0;
	}
	if (argc != 6)
		return 64;
	attr.pathname = (uint64_t)(uintptr_t)argv[1];
	int program = syscall(__NR_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	if (program < 0) {
		perror(argv[1]);
		return 1;
	}
	memset(&attr, 0, sizeof(attr));
	packet[0] = atoi(argv[3]);
	attr.test.prog_fd = program;
	attr.test.data_in = (uint64_t)(uintptr_t)packet;
	attr.test.data_size_in = atoi(argv[2]) < LARGEST ? atoi(argv[2]) : LARGEST;
	attr.test.repeat = atoi(argv[4]);
	for (int burst = 0; burst < atoi(argv[5]); burst++) {
		double begun = now();

		if (syscall(__NR_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr))) {
			perror("BPF_PROG_RUN");
			return 1;
		}
		printf("%u %.3f\n", attr.test.retval, (now() - begun) / attr.test.repeat);
	}
	return 0;
}
