// SPDX-License-Identifier: Apache-2.0
/* Counts packets that this machine's kernel drops: by its reason and the place in its code, at the tracepoint
 * skb:kfree_skb, and those of XDP that no reason tells of.
 *
 *   pdrgate-drops FOLDER [xdp]       with xdp: only the latter
 *
 * FOLDER has two named pipes: `control`, from which it reads lines, and `answer`, into which each is answered by a line
 * of JSON. The first answer, {"ready":PID}, comes unasked: from then on drops are counted. An {"error":...} is the
 * last.
 *
 *   read       tells {"drops":[[REASON,PLACE,PACKETS],...]}, so far
 *
 * A PLACE is an address. Beyond the kernel's reasons there are those of XDP (enum kind): there a place is the id of a
 * cpumap times 2^32 and, of a full queue, its CPU; of an exception it is what the program returned (enum xdp_action).
 *
 * The BPF programs that count end with this one, whatever becomes of it. They are put together here, by instructions: so
 * it takes no compiler, no bpftool and no types of the kernel's (BTF), and little time of each dropped packet.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asked.h"

#define MOST_KEYS 1024
#define MOST_CPUS 4096
#define MOST_INSTRUCTIONS 64
#define SLOTS 256		/* a power of two */

/* Who asks knows these numbers, which are no reasons of a kernel's. */
enum kind { CPUMAP_FULL = 1, CPUMAP_PROGRAM, REDIRECT_FAILED, EXCEPTION };

struct drop {
	uint64_t reason;		/* of a kind its number << 32 */
	uint64_t place;
};

/* Nearly all drops find a slot of their own here, at which a CPU counts without a hash; the others are in the map. */
struct slot {
	struct drop drop;		/* no reason: nobody's yet */
	uint64_t packets;
};

/* One line of what BPF is made of; see linux/bpf.h. */
#define OP(what, to, from, at, number) \
	((struct bpf_insn){ .code = (what), .dst_reg = (to), .src_reg = (from), .off = (at), .imm = (number) })
#define SET(to, number) OP(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number)
#define COPY(to, from) OP(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define ADD(to, number) OP(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number)
#define LEFT(to, bits) OP(BPF_ALU64 | BPF_LSH | BPF_K, to, 0, 0, bits)
#define RIGHT(to, bits) OP(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, bits)
#define MASK(to, bits) OP(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, bits)
#define TIMES(to, number) OP(BPF_ALU64 | BPF_MUL | BPF_K, to, 0, 0, number)
#define XOR(to, from) OP(BPF_ALU64 | BPF_XOR | BPF_X, to, from, 0, 0)
#define PLUS(to, from) OP(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0)
#define LOAD(to, from, at) OP(BPF_LDX | BPF_MEM | BPF_DW, to, from, at, 0)
#define LOAD_WORD(to, from, at) OP(BPF_LDX | BPF_MEM | BPF_W, to, from, at, 0)
#define IF_DIFFERENT(one, other, skip) OP(BPF_JMP | BPF_JNE | BPF_X, one, other, skip, 0)
#define STORE(to, at, from) OP(BPF_STX | BPF_MEM | BPF_DW, to, from, at, 0)
#define MAP(to, fd) OP(BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_FD, 0, fd), OP(0, 0, 0, 0, 0)
#define CALL(function) OP(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define IF_ZERO(what, skip) OP(BPF_JMP | BPF_JEQ | BPF_K, what, 0, skip, 0)
#define IF_NOT(what, skip) OP(BPF_JMP | BPF_JNE | BPF_K, what, 0, skip, 0)
#define EXIT OP(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define ARGUMENT(number) (8 * (number))	/* of a tracepoint, in what R1 points to */
#define REASON (-16)			/* the key on the stack: struct drop */
#define PLACE (-8)
#define LEAVE_UNLESS(what) IF_NOT(what, 2), SET(R0, 0), EXIT

enum { R0, R1, R2, R3, R4, R5, PACKETS, R7, R8, STACK = 10 };

static int map, slots, cpus;

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Of a per-CPU map an element has a value for each CPU that there may ever be. Their list, such as 0-3,8, has gaps on
 * some machines, and the kernel writes as many values as there are CPUs in it. */
static int possible_cpus(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "r");
	int first, last, many = 0;

	if (!file)
		fail("reading which CPUs there may be");
	while (fscanf(file, "%d", &first) == 1) {
		if (fscanf(file, "-%d", &last) != 1)
			last = first;
		many += last - first + 1;
		if (getc(file) != ',')
			break;
	}
	fclose(file);
	if (!many)
		fail("reading which CPUs there may be");
	return many;
}

static int make_map(int type, int key_size, int value_size, int entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key_size,
		.value_size = value_size,
		.max_entries = entries,
		.map_name = "pdrgate_drops",
	};
	int fd = bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		fail("making a BPF map");
	return fd;
}

static void make_maps(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all);	/* before Linux 5.11 maps are locked memory */
	map = make_map(BPF_MAP_TYPE_PERCPU_HASH, sizeof(struct drop), sizeof(uint64_t), MOST_KEYS);
	slots = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t), SLOTS * sizeof(struct slot), 1);
}

/* Have what `head` leaves on the stack and in PACKETS, and does not count itself, counted at a tracepoint; whether the
 * kernel takes that. */
static bool count_at(const char *tracepoint, const struct bpf_insn *head, int length)
{
	struct bpf_insn tail[] = {
		MAP(R1, map),
		COPY(R2, STACK),
		ADD(R2, REASON),
		CALL(BPF_FUNC_map_lookup_elem),
		IF_ZERO(R0, 5),
		LOAD(R1, R0, 0),
		PLUS(R1, PACKETS),
		STORE(R0, 0, R1),
		SET(R0, 0),
		EXIT,
		STORE(STACK, -24, PACKETS),
		MAP(R1, map),
		COPY(R2, STACK),
		ADD(R2, REASON),
		COPY(R3, STACK),
		ADD(R3, -24),
		SET(R4, BPF_ANY),
		CALL(BPF_FUNC_map_update_elem),
		SET(R0, 0),
		EXIT,
	}, program[MOST_INSTRUCTIONS];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (uintptr_t)program,
		.insn_cnt = length + sizeof(tail) / sizeof(*tail),
		.license = (uintptr_t)"GPL",
		.prog_name = "pdrgate_drops",
	}, at = { .raw_tracepoint = { .name = (uintptr_t)tracepoint } };
	int fd;

	memcpy(program, head, length * sizeof(*head));
	memcpy(program + length, tail, sizeof(tail));
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		return false;
	at.raw_tracepoint.prog_fd = fd;
	return bpf(BPF_RAW_TRACEPOINT_OPEN, &at) >= 0;
}

#define COUNT_AT(tracepoint, ...) count_at(tracepoint, (struct bpf_insn[]){ __VA_ARGS__ }, \
	sizeof((struct bpf_insn[]){ __VA_ARGS__ }) / sizeof(struct bpf_insn))

/* skb, location, reason */
static void count_reasons(void)
{
	if (!COUNT_AT("kfree_skb",
		      LOAD(R7, R1, ARGUMENT(1)), STORE(STACK, PLACE, R7),
		      LOAD(R8, R1, ARGUMENT(2)), STORE(STACK, REASON, R8),
		      SET(PACKETS, 1),
		      SET(R1, 0), STORE(STACK, -24, R1), MAP(R1, slots), COPY(R2, STACK), ADD(R2, -24),
		      CALL(BPF_FUNC_map_lookup_elem),
		      IF_ZERO(R0, 19),	/* to what counts in the map */
		      COPY(R1, R7), RIGHT(R1, 4), XOR(R1, R8), MASK(R1, SLOTS - 1), TIMES(R1, sizeof(struct slot)), PLUS(R0, R1),
		      LOAD(R1, R0, offsetof(struct slot, drop.reason)),
		      IF_NOT(R1, 2),
		      STORE(R0, offsetof(struct slot, drop.reason), R8), STORE(R0, offsetof(struct slot, drop.place), R7),
		      LOAD(R1, R0, offsetof(struct slot, drop.reason)), IF_DIFFERENT(R1, R8, 7),
		      LOAD(R1, R0, offsetof(struct slot, drop.place)), IF_DIFFERENT(R1, R7, 5),
		      LOAD(R1, R0, offsetof(struct slot, packets)), ADD(R1, 1), STORE(R0, offsetof(struct slot, packets), R1),
		      SET(R0, 0), EXIT))
		fail("counting by BPF at skb:kfree_skb");
}

/* Kernels have more and fewer of these tracepoints; each tells of some packets at once, of none lost for the most part. */
static void count_xdp(void)
{
	/* map_id, processed, drops, to_cpu */
	COUNT_AT("xdp_cpumap_enqueue",
		 LOAD(PACKETS, R1, ARGUMENT(2)), LEAVE_UNLESS(PACKETS),
		 LOAD(R2, R1, ARGUMENT(0)), LEFT(R2, 32), LOAD(R3, R1, ARGUMENT(3)), PLUS(R2, R3), STORE(STACK, PLACE, R2),
		 SET(R2, CPUMAP_FULL), LEFT(R2, 32), STORE(STACK, REASON, R2));
	/* map_id, processed, drops, sched, and since Linux 5.9 what the cpumap's own program did: redirect, pass, drop */
	COUNT_AT("xdp_cpumap_kthread",
		 COPY(R7, R1),
		 SET(R2, 0), STORE(STACK, PLACE, R2), COPY(R1, STACK), ADD(R1, PLACE), SET(R2, 4),
		 LOAD(R3, R7, ARGUMENT(4)), ADD(R3, 8), CALL(BPF_FUNC_probe_read_kernel),
		 LOAD_WORD(PACKETS, STACK, PLACE), LOAD(R2, R7, ARGUMENT(2)), PLUS(PACKETS, R2), LEAVE_UNLESS(PACKETS),
		 LOAD(R2, R7, ARGUMENT(0)), LEFT(R2, 32), STORE(STACK, PLACE, R2),
		 SET(R2, CPUMAP_PROGRAM), LEFT(R2, 32), STORE(STACK, REASON, R2));
	COUNT_AT("xdp_redirect_err",
		 SET(R2, 0), STORE(STACK, PLACE, R2), SET(R2, REDIRECT_FAILED), LEFT(R2, 32), STORE(STACK, REASON, R2),
		 SET(PACKETS, 1));
	/* dev, xdp, act; of a redirect the tracepoint before has told */
	COUNT_AT("xdp_exception",
		 LOAD_WORD(R2, R1, ARGUMENT(2)), SET(R3, XDP_REDIRECT), IF_DIFFERENT(R2, R3, 2), SET(R0, 0), EXIT,
		 STORE(STACK, PLACE, R2), SET(R2, EXCEPTION), LEFT(R2, 32), STORE(STACK, REASON, R2),
		 SET(PACKETS, 1));
}

static struct slot sums[MOST_KEYS];
static int summed;

static void add(const struct drop *drop, uint64_t packets)
{
	int at = 0;

	while (at < summed && memcmp(&sums[at].drop, drop, sizeof(*drop)))
		at++;
	if (at == MOST_KEYS)
		return;
	if (at == summed)
		sums[summed++] = (struct slot){ .drop = *drop };
	sums[at].packets += packets;
}

static void sum_slots(void)
{
	struct slot *values = calloc(cpus, SLOTS * sizeof(*values));
	uint32_t key = 0;
	union bpf_attr attr = { .map_fd = slots, .key = (uintptr_t)&key, .value = (uintptr_t)values };

	if (values && !bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		for (int at = 0; at < cpus * SLOTS; at++)
			if (values[at].packets)
				add(&values[at].drop, values[at].packets);
	free(values);
}

/* The map only grows. */
static void sum_map(void)
{
	static uint64_t values[MOST_CPUS];
	struct drop key, next;
	union bpf_attr attr = { .map_fd = map, .next_key = (uintptr_t)&next };

	for (int found = 0; found < MOST_KEYS && !bpf(BPF_MAP_GET_NEXT_KEY, &attr); found++) {
		union bpf_attr one = { .map_fd = map, .key = (uintptr_t)&key, .value = (uintptr_t)values };

		key = next;
		attr.key = (uintptr_t)&key;
		if (bpf(BPF_MAP_LOOKUP_ELEM, &one))
			continue;
		for (int cpu = 0; cpu < cpus; cpu++)
			add(&key, values[cpu]);
	}
}

static void tell(void)
{
	static char text[MOST_KEYS * 72];
	int at = 0;

	summed = 0;
	sum_slots();
	sum_map();
	for (int i = 0; i < summed; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s[%llu,%llu,%llu]", i ? "," : "",
			       (unsigned long long)sums[i].drop.reason, (unsigned long long)sums[i].drop.place,
			       (unsigned long long)sums[i].packets);
	answer("{\"drops\":[%s]}", summed ? text : "");
}

int main(int argc, char **argv)
{
	char line[64];
	FILE *control;
	bool all;

	if (argc != 2 && (argc != 3 || strcmp(argv[2], "xdp"))) {
		fprintf(stderr, "usage: pdrgate-drops FOLDER [xdp]\n");
		return 64;
	}
	all = argc == 2;
	control = begin_to_be_asked(argv[1]);
	if (!control)
		return 1;
	cpus = possible_cpus();
	if (cpus > MOST_CPUS) {
		errno = E2BIG;
		fail("counting by CPU");
	}
	make_maps();
	if (all)
		count_reasons();
	count_xdp();
	answer("{\"ready\":%d}", getpid());
	while (fgets(line, sizeof(line), control)) {
		if (!strcmp(line, "read\n"))
			tell();
		else
			answer("{\"error\":\"asked for what is not understood\"}");
	}
	return 0;
}
