// SPDX-License-Identifier: Apache-2.0
/* Counts packets that this machine's kernel drops: by its reason and the place in its code, at the tracepoint
 * skb:kfree_skb, and those of XDP that have no reason.
 *
 *   pdrgate-drops FOLDER [xdp]       with xdp: only the latter
 *
 * FOLDER has two named pipes: `control`, from which it reads lines, and `answer`, into which each is answered by a line
 * of JSON. The first answer, {"ready":PID}, comes unasked: from then on drops are counted. An {"error":...} is the
 * last.
 *
 *   read       prints {"drops":[[REASON,PLACE,PACKETS],...]}, so far
 *
 * A PLACE is an address. Beyond the kernel's reasons there are those of XDP: a REASON has their number (enum kind) times
 * 2^32. Of cpumaps a place is the id of one times 2^32 and, of a full queue, its CPU. Of the others it is the inode
 * number of a port's network namespace, and the port's name is a fourth value; in the lower half of their reason is what
 * an exception's program returned (enum xdp_action; 5: anything else), plus CPUMAP or DEVMAP of a program of such a map.
 *
 * The BPF programs that count end with this one, whatever becomes of it. They are put together here, by instructions: so
 * it takes no compiler and no bpftool, and little time of each dropped packet. Only ports and kinds of programs take the
 * kernel's types (BTF): where it has none their namespace is 0, they have no names, and all programs are ports'.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asked.h"

#define MOST_KEYS 1024
#define MOST_CPUS 4096
#define MOST_INSTRUCTIONS 128
#define SLOTS 256		/* a power of two */

/* Who asks knows these numbers, which are no reasons of a kernel's. */
enum kind { CPUMAP_FULL = 1, CPUMAP_PROGRAM, REDIRECT_FAILED, EXCEPTION, DEVMAP_UNSENT };
enum { NO_ACTION = XDP_REDIRECT + 1, CPUMAP = 256, DEVMAP = 512 };

struct drop {
	uint64_t reason;		/* of a kind its number << 32 */
	uint64_t place;
	char port[16];			/* IFNAMSIZ */
};

/* Nearly all drops find a slot of their own here, at which a CPU counts without a hash; the others are in the map. */
struct slot {
	uint64_t reason;		/* 0: nobody's yet */
	uint64_t place;
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
#define REASON (-32)			/* the key on the stack: struct drop */
#define PLACE (-24)
#define PORT (-16)
#define VALUE (-40)
#define NO_PORT SET(R2, 0), STORE(STACK, PORT, R2), STORE(STACK, PORT + 8, R2)
#define READ(to, from, at, size) COPY(R1, STACK), ADD(R1, to), SET(R2, size), COPY(R3, from), ADD(R3, at), \
	CALL(BPF_FUNC_probe_read_kernel)	/* what cannot be read is 0 */
#define UNLESS(what, number, skip) OP(BPF_JMP | BPF_JNE | BPF_K, what, 0, skip, number)
#define IF_AT_MOST(what, number, skip) OP(BPF_JMP | BPF_JLE | BPF_K, what, 0, skip, number)
#define LEAVE_UNLESS(what) IF_NOT(what, 2), SET(R0, 0), EXIT

enum { R0, R1, R2, R3, R4, R5, PACKETS, R7, R8, R9, STACK };

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
		STORE(STACK, VALUE, PACKETS),
		MAP(R1, map),
		COPY(R2, STACK),
		ADD(R2, REASON),
		COPY(R3, STACK),
		ADD(R3, VALUE),
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
		      SET(R1, 0), STORE(STACK, VALUE, R1), MAP(R1, slots), COPY(R2, STACK), ADD(R2, VALUE),
		      CALL(BPF_FUNC_map_lookup_elem),
		      IF_ZERO(R0, 19),	/* to what counts in the map */
		      COPY(R1, R7), RIGHT(R1, 4), XOR(R1, R8), MASK(R1, SLOTS - 1), TIMES(R1, sizeof(struct slot)), PLUS(R0, R1),
		      LOAD(R1, R0, offsetof(struct slot, reason)),
		      IF_NOT(R1, 2),
		      STORE(R0, offsetof(struct slot, reason), R8), STORE(R0, offsetof(struct slot, place), R7),
		      LOAD(R1, R0, offsetof(struct slot, reason)), IF_DIFFERENT(R1, R8, 7),
		      LOAD(R1, R0, offsetof(struct slot, place)), IF_DIFFERENT(R1, R7, 5),
		      LOAD(R1, R0, offsetof(struct slot, packets)), ADD(R1, 1), STORE(R0, offsetof(struct slot, packets), R1),
		      SET(R0, 0), EXIT,
		      NO_PORT))
		fail("counting by BPF at skb:kfree_skb");
}

/* What is read of the kernel's own, and where it has that, in bytes; -1: it is not known. */
enum { NAME, NAMESPACE, COMMON, INODE, PROGRAM_TYPE, MEMBERS };

static struct {
	const char *of, *name;
	int at;
} members[MEMBERS] = {
	[NAME] = { "net_device", "name", -1 },
	[NAMESPACE] = { "net_device", "nd_net", -1 },
	[COMMON] = { "net", "ns", -1 },
	[INODE] = { "ns_common", "inum", -1 },
	[PROGRAM_TYPE] = { "bpf_prog", "expected_attach_type", -1 },
};

/* The types of the kernel, as a file has them (Documentation/bpf/btf.rst). */
struct types {
	const char *texts;
	const char *first, *end;
};

/* What follows a type, in bytes, by its kind (BTF_KIND_*) and how many members it has; -1: not known. */
static int rest_of(int kind, int many)
{
	switch (kind) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return many * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return many * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return many * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return many * sizeof(struct btf_var_secinfo);
	case BTF_KIND_ENUM64:
		return many * 12;
	default:
		return kind <= BTF_KIND_ENUM64 ? 0 : -1;
	}
}

static void find_in(const struct types *types, const struct btf_type *type)
{
	const struct btf_member *one = (const struct btf_member *)(type + 1);

	for (int i = 0; i < MEMBERS; i++) {
		if (strcmp(types->texts + type->name_off, members[i].of))
			continue;
		for (int at = 0; at < BTF_INFO_VLEN(type->info); at++)
			if (!strcmp(types->texts + one[at].name_off, members[i].name))
				members[i].at = (BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(one[at].offset) :
						 one[at].offset) / 8;
	}
}

static void find_in_types(const struct types *types)
{
	const char *at = types->first;

	while (at + sizeof(struct btf_type) <= types->end) {
		const struct btf_type *type = (const struct btf_type *)at;
		int rest = rest_of(BTF_INFO_KIND(type->info), BTF_INFO_VLEN(type->info));

		if (rest < 0)
			return;
		at += sizeof(*type) + rest;
		if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT && at <= types->end)
			find_in(types, type);
	}
}

/* All of them stay unknown where the kernel has no BTF. */
static void find_members(void)
{
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "r");
	const struct btf_header *head;
	struct stat about;
	char *all = NULL;

	if (file && !fstat(fileno(file), &about) && about.st_size > (long)sizeof(*head))
		all = malloc(about.st_size);
	if (all && fread(all, 1, about.st_size, file) == (size_t)about.st_size) {
		struct types types;

		head = (const struct btf_header *)all;
		types.texts = all + head->hdr_len + head->str_off;
		types.first = all + head->hdr_len + head->type_off;
		types.end = types.first + head->type_len;
		if (head->magic == BTF_MAGIC && types.end <= all + about.st_size)
			find_in_types(&types);
	}
	free(all);
	if (file)
		fclose(file);
}

/* A head for count_at, as it grows. */
struct head {
	struct bpf_insn lines[MOST_INSTRUCTIONS];
	int length;
};

static void append(struct head *head, const struct bpf_insn *lines, int many)
{
	memcpy(head->lines + head->length, lines, many * sizeof(*lines));
	head->length += many;
}

#define APPEND(head, ...) append(head, (struct bpf_insn[]){ __VA_ARGS__ }, \
	sizeof((struct bpf_insn[]){ __VA_ARGS__ }) / sizeof(struct bpf_insn))

/* Leaves which port an argument is on the stack; R7 has the arguments. */
static void append_port(struct head *head, int argument, bool typed)
{
	APPEND(head, SET(R2, 0), STORE(STACK, PLACE, R2), NO_PORT);
	if (!typed || members[NAME].at < 0 || members[NAMESPACE].at < 0 || members[COMMON].at < 0 || members[INODE].at < 0)
		return;
	APPEND(head,
	       LOAD(R8, R7, ARGUMENT(argument)),
	       READ(VALUE, R8, members[NAMESPACE].at, 8), LOAD(R3, STACK, VALUE),
	       READ(PLACE, R3, members[COMMON].at + members[INODE].at, 4),
	       READ(PORT, R8, members[NAME].at, 16));
}

/* Adds to R9 what kind of program the second argument is. */
static void append_program(struct head *head, bool typed)
{
	if (!typed || members[PROGRAM_TYPE].at < 0)
		return;
	APPEND(head,
	       LOAD(R3, R7, ARGUMENT(1)),
	       READ(VALUE, R3, members[PROGRAM_TYPE].at, 4), LOAD_WORD(R2, STACK, VALUE),
	       UNLESS(R2, BPF_XDP_CPUMAP, 1), ADD(R9, CPUMAP),
	       UNLESS(R2, BPF_XDP_DEVMAP, 1), ADD(R9, DEVMAP));
}

/* dev, xdp, and of an exception act */
static bool count_program(const char *tracepoint, enum kind kind, bool typed)
{
	struct head head = { .length = 0 };

	APPEND(&head, COPY(R7, R1), SET(R9, kind), LEFT(R9, 32));
	if (kind == EXCEPTION)	/* the other tracepoint has counted a redirect */
		APPEND(&head,
		       LOAD_WORD(R2, R7, ARGUMENT(2)), UNLESS(R2, XDP_REDIRECT, 2), SET(R0, 0), EXIT,
		       IF_AT_MOST(R2, XDP_REDIRECT, 1), SET(R2, NO_ACTION), PLUS(R9, R2));
	append_port(&head, 0, typed);
	append_program(&head, typed);
	APPEND(&head, STORE(STACK, REASON, R9), SET(PACKETS, 1));
	return count_at(tracepoint, head.lines, head.length);
}

/* from_dev, to_dev, sent, drops; what was redirected to a port and did not leave it */
static bool count_unsent(bool typed)
{
	struct head head = { .length = 0 };

	APPEND(&head, COPY(R7, R1), LOAD_WORD(PACKETS, R7, ARGUMENT(3)), LEAVE_UNLESS(PACKETS));
	append_port(&head, 1, typed);
	APPEND(&head, SET(R2, DEVMAP_UNSENT), LEFT(R2, 32), STORE(STACK, REASON, R2));
	return count_at("xdp_devmap_xmit", head.lines, head.length);
}

/* Kernels have more and fewer of these tracepoints; each counts some packets at once, most of which are not lost. */
static void count_xdp(void)
{
	/* map_id, processed, drops, to_cpu */
	COUNT_AT("xdp_cpumap_enqueue",
		 LOAD(PACKETS, R1, ARGUMENT(2)), LEAVE_UNLESS(PACKETS),
		 LOAD(R2, R1, ARGUMENT(0)), LEFT(R2, 32), LOAD(R3, R1, ARGUMENT(3)), PLUS(R2, R3), STORE(STACK, PLACE, R2),
		 SET(R2, CPUMAP_FULL), LEFT(R2, 32), STORE(STACK, REASON, R2), NO_PORT);
	/* map_id, processed, drops, sched, and since Linux 5.9 what the cpumap's own program did: redirect, pass, drop */
	COUNT_AT("xdp_cpumap_kthread",
		 COPY(R7, R1),
		 SET(R2, 0), STORE(STACK, PLACE, R2), LOAD(R3, R7, ARGUMENT(4)), READ(PLACE, R3, 8, 4),
		 LOAD_WORD(PACKETS, STACK, PLACE), LOAD(R2, R7, ARGUMENT(2)), PLUS(PACKETS, R2), LEAVE_UNLESS(PACKETS),
		 LOAD(R2, R7, ARGUMENT(0)), LEFT(R2, 32), STORE(STACK, PLACE, R2),
		 SET(R2, CPUMAP_PROGRAM), LEFT(R2, 32), STORE(STACK, REASON, R2), NO_PORT);
	find_members();
	if (!count_program("xdp_redirect_err", REDIRECT_FAILED, true))
		count_program("xdp_redirect_err", REDIRECT_FAILED, false);
	if (!count_program("xdp_exception", EXCEPTION, true))
		count_program("xdp_exception", EXCEPTION, false);
	if (!count_unsent(true))
		count_unsent(false);
}

static struct sum {
	struct drop drop;
	uint64_t packets;
} sums[MOST_KEYS];
static int summed;

static void add(const struct drop *drop, uint64_t packets)
{
	int at = 0;

	while (at < summed && memcmp(&sums[at].drop, drop, sizeof(*drop)))
		at++;
	if (at == MOST_KEYS)
		return;
	if (at == summed)
		sums[summed++] = (struct sum){ .drop = *drop };
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
				add(&(struct drop){ .reason = values[at].reason, .place = values[at].place }, values[at].packets);
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

/* A port's name as JSON has it: a kernel takes quotes and backslashes in one, and nobody writes them. */
static const char *quoted(const char *port)
{
	static char text[3 + sizeof(((struct drop *)0)->port) + 1];
	int at = 0;

	if (!*port)
		return "";
	at += sprintf(text, ",\"");
	for (; *port && at < (int)sizeof(text) - 2; port++)
		text[at++] = *port == '"' || *port == '\\' || (unsigned char)*port < ' ' ? '?' : *port;
	strcpy(text + at, "\"");
	return text;
}

static void report(void)
{
	static char text[MOST_KEYS * 96];
	int at = 0;

	summed = 0;
	sum_slots();
	sum_map();
	for (int i = 0; i < summed; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s[%llu,%llu,%llu%s]", i ? "," : "",
			       (unsigned long long)sums[i].drop.reason, (unsigned long long)sums[i].drop.place,
			       (unsigned long long)sums[i].packets, quoted(sums[i].drop.port));
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
			report();
		else
			answer("{\"error\":\"asked for what is not understood\"}");
	}
	return 0;
}
