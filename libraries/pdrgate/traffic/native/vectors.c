// SPDX-License-Identifier: Apache-2.0
/* Runs a pinned BPF program on packets, by BPF_PROG_RUN: no port, no socket, nothing is sent.
 *
 *   pdrgate-vectors FOLDER PIN PACKETS
 *
 * FOLDER has the pipes by which it is asked, see asked.h. PACKETS is a file; of each packet it has three numbers of four
 * bytes, the lowest first: the length of its bytes, of the program's context, and whether it may be run without that;
 * then bytes and context.
 *
 *   maps			prints {"maps":N,"unkept":["NAME",..]}: those that are put back, and those that are not
 *   run NUMBER TIMES	runs packet NUMBER, counted from 0, TIMES + 2 times
 *
 * Each run gets the packet as the file has it and the maps as they were at the start: the kernel's own repetition would
 * give the program what its last run has left. What it did is printed as {"verdict":..,"output":"hex","others":..,
 * "again":"hex","changed":..,"unsteady":..,"ns":[..]}, or as {"errno":..} where the kernel refuses. `verdict` and `output`
 * are the first run's; `others` is how many runs returned another verdict, `again` the output of one run more, `changed`
 * the elements of maps that the first changed, `unsteady` whether a later one changed others. `ns` are nanoseconds by the
 * kernel's clock, of the TIMES runs, of which none copies its output.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include "asked.h"
#include "kept_maps.h"

#define LARGEST (1 << 16)
#define ROOM (LARGEST + 4096)	/* a program may make a packet longer */
#define LARGEST_CONTEXT 1024
#define MOST_TIMES 10000

struct packet {
	unsigned char *bytes, *context;
	uint32_t length, context_length, optional;
};

static unsigned char output[ROOM];
static struct packet *packets;
static long many_packets;
static int program;

static void read_packets(const char *path)
{
	FILE *file = fopen(path, "r");
	uint32_t head[3];

	if (!file)
		fail(path);
	while (fread(head, sizeof(head), 1, file) == 1) {
		struct packet *one;

		packets = roomy(packets, (many_packets + 1) * sizeof(*packets));
		one = &packets[many_packets];
		if (head[0] > LARGEST || head[1] > LARGEST_CONTEXT) {
			errno = EMSGSIZE;
			fail(path);
		}
		*one = (struct packet){ roomy(NULL, head[0]), roomy(NULL, head[1]), head[0], head[1], head[2] };
		if (fread(one->bytes, 1, one->length, file) != one->length ||
		    fread(one->context, 1, one->context_length, file) != one->context_length) {
			errno = EIO;
			fail(path);
		}
		many_packets++;
	}
	fclose(file);
}

/* One run; 0 when the kernel has carried it out. */
static int run_once(const struct packet *one, int with_output, union bpf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->test.prog_fd = program;
	attr->test.repeat = 1;
	attr->test.data_in = one->length ? (uint64_t)(uintptr_t)one->bytes : 0;
	attr->test.data_size_in = one->length;
	if (with_output && one->length) {
		attr->test.data_out = (uint64_t)(uintptr_t)output;
		attr->test.data_size_out = sizeof(output);
	}
	if (one->context_length) {
		attr->test.ctx_in = (uint64_t)(uintptr_t)one->context;
		attr->test.ctx_size_in = one->context_length;
	}
	return bpf(BPF_PROG_TEST_RUN, attr);
}

static void to_hex(char *into, const union bpf_attr *attr)
{
	uint32_t size = attr->test.data_size_out < sizeof(output) ? attr->test.data_size_out : sizeof(output);

	for (uint32_t at = 0; at < size; at++)
		sprintf(into + 2 * at, "%02x", output[at]);
	into[2 * size] = 0;
}

static void run(struct packet *one, long times)
{
	static uint32_t nanoseconds[MOST_TIMES];
	static char first[2 * ROOM + 1], again[2 * ROOM + 1], listed[MOST_TIMES * 11 + 1];
	union bpf_attr attr;
	size_t found, length = 0;
	uint32_t verdict;
	int unsteady, others = 0;

	if (run_once(one, 1, &attr)) {
		/* Not every port has queues that the kernel knows. */
		if (one->optional && one->context_length) {
			one->context_length = 0;
			run(one, times);
			return;
		}
		answer("{\"errno\":%d}", errno);
		return;
	}
	verdict = attr.test.retval;
	to_hex(first, &attr);
	found = find_changes();
	put_back();
	for (long at = 0; at < times; at++) {
		run_once(one, 0, &attr);
		others += attr.test.retval != verdict;
		nanoseconds[at] = attr.test.duration;
		put_back();
	}
	run_once(one, 1, &attr);
	others += attr.test.retval != verdict;
	to_hex(again, &attr);
	put_back();
	unsteady = find_changes() != 0;
	put_back();
	for (long at = 0; at < times; at++)
		length += sprintf(listed + length, "%s%u", at ? "," : "", nanoseconds[at]);
	listed[length] = 0;
	answer("{\"verdict\":%u,\"output\":\"%s\",\"others\":%d,\"again\":\"%s\",\"changed\":%zu,\"unsteady\":%d,\"ns\":[%s]}",
	       verdict, first, others, again, found, unsteady, listed);
}

static void tell_maps(void)
{
	static char listed[MOST_KEPT * (sizeof(unkept[0]) + 3) + 1];
	int length = 0;

	for (int at = 0; at < many_unkept; at++)
		length += sprintf(listed + length, "%s\"%s\"", at ? "," : "", unkept[at]);
	answer("{\"maps\":%d,\"unkept\":[%s]}", many_kept, listed);
}

int main(int argc, char **argv)
{
	long number, times;
	char line[64];
	FILE *control;

	if (argc != 4) {
		fprintf(stderr, "usage: pdrgate-vectors FOLDER PIN PACKETS\n");
		return 64;
	}
	control = begin_to_be_asked(argv[1]);
	if (!control)
		return 1;
	union bpf_attr attr = { .pathname = (uint64_t)(uintptr_t)argv[2] };
	program = bpf(BPF_OBJ_GET, &attr);
	if (program < 0)
		fail(argv[2]);
	read_packets(argv[3]);
	keep_programs(program);
	answer("{\"ready\":%d}", getpid());
	while (fgets(line, sizeof(line), control)) {
		if (!strcmp(line, "maps\n"))
			tell_maps();
		else if (sscanf(line, "run %ld %ld", &number, &times) == 2 && number >= 0 && number < many_packets &&
			 times >= 0 && times <= MOST_TIMES)
			run(&packets[number], times);
		else
			answer("{\"error\":\"asked for what is not understood\"}");
	}
	return 0;
}
