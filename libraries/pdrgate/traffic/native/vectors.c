// SPDX-License-Identifier: Apache-2.0
/* Runs a pinned BPF program on packets, by BPF_PROG_RUN: no port, no socket, nothing is sent.
 *
 *   pdrgate-vectors PIN PACKETS FIRST COUNT TIMES PORT
 *
 * PACKETS holds each packet as four bytes of its length, the lowest first, and its bytes. COUNT of them from FIRST on,
 * counted from 0, are run TIMES times each. Each run gets the packet as the file has it: the kernel's own repetition
 * would give the program what its last run has left, which is another packet. A line of JSON tells of each packet what
 * its last run did: {"verdict":..,"output":"hex"}, or {"error":..} with the errno of the kernel's refusal.
 *
 * PORT is the number of the interface that the packets have come in at, where the kernel lets an XDP program be told of
 * one; 0: of none.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGEST (1 << 16)
#define ROOM (LARGEST + 4096)	/* a program may make a packet longer */

static unsigned char packet[LARGEST], output[ROOM];

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int opened(const char *pin)
{
	union bpf_attr attr = { .pathname = (uint64_t)(uintptr_t)pin };

	return bpf(BPF_OBJ_GET, &attr);
}

/* The length of the next packet; -1 at the end, and where the file is none of ours. */
static int next(FILE *file)
{
	unsigned char head[4];
	uint32_t length;

	if (fread(head, sizeof(head), 1, file) != 1)
		return -1;
	length = head[0] | head[1] << 8 | head[2] << 16 | (uint32_t)head[3] << 24;
	if (length > LARGEST || fread(packet, 1, length, file) != length)
		return -1;
	return length;
}

/* One run; 0 when the kernel has carried it out. */
static int run_once(int program, int length, unsigned int port, union bpf_attr *attr)
{
	struct xdp_md context = { .data_end = length, .ingress_ifindex = port };

	memset(attr, 0, sizeof(*attr));
	attr->test.prog_fd = program;
	attr->test.repeat = 1;
	attr->test.data_in = (uint64_t)(uintptr_t)packet;
	attr->test.data_size_in = length;
	attr->test.data_out = (uint64_t)(uintptr_t)output;
	attr->test.data_size_out = sizeof(output);
	if (port) {
		attr->test.ctx_in = (uint64_t)(uintptr_t)&context;
		attr->test.ctx_size_in = sizeof(context);
	}
	return bpf(BPF_PROG_TEST_RUN, attr);
}

static void run(int program, int length, long times, unsigned int port)
{
	union bpf_attr attr;

	do {
		/* Other kinds of programs have another context, and not every port has queues that the kernel knows. */
		if ((!port || run_once(program, length, port, &attr)) && run_once(program, length, 0, &attr)) {
			printf("{\"error\":%d}\n", errno);
			return;
		}
	} while (--times > 0);
	printf("{\"verdict\":%u,\"output\":\"", attr.test.retval);
	for (uint32_t at = 0; at < attr.test.data_size_out && at < sizeof(output); at++)
		printf("%02x", output[at]);
	printf("\"}\n");
}

int main(int argc, char **argv)
{
	long first, count, times;
	int program, length;
	FILE *file;

	if (argc != 7) {
		fprintf(stderr, "usage: pdrgate-vectors PIN PACKETS FIRST COUNT TIMES PORT\n");
		return 64;
	}
	first = atol(argv[3]);
	count = atol(argv[4]);
	times = atol(argv[5]);
	program = opened(argv[1]);
	if (program < 0) {
		perror(argv[1]);
		return 1;
	}
	file = fopen(argv[2], "r");
	if (!file) {
		perror(argv[2]);
		return 1;
	}
	for (long at = 0; at < first + count && (length = next(file)) >= 0; at++)
		if (at >= first)
			run(program, length, times, atol(argv[6]));
	return 0;
}
