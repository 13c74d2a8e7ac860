// SPDX-License-Identifier: Apache-2.0
/* Loads one program of an eBPF object, fills its maps, pins it, and attaches it where links do that.
 *
 *   pdrgate-bpf-load OBJECT PROGRAM FOLDER KIND ORDERS [OBJECT PROGRAM FUNCTION ORDERS]
 *
 * FOLDER is in a bpffs; the program is pinned there as `program`, and maps that the object wants pinned by name, too.
 * KIND is libbpf's name for what the program is loaded for, such as xdp/cpumap; empty: what its section says.
 *
 * With a second object, which has a dispatcher, the program replaces FUNCTION of that (freplace). The dispatcher is then
 * what KIND is for, and what is pinned and attached.
 *
 * ORDERS is a file; each of its lines is one order, bytes are in hexadecimal:
 *
 *   value NAME BYTES			what a global variable is, before it is loaded
 *   size MAP ENTRIES			how many elements a map may have
 *   keys MAP BYTES			how large keys are, of a map that has none in the object
 *   values MAP BYTES			how large values are, likewise
 *   unseeded				elements of hashes come to lie alike in each load
 *   element MAP KEY VALUE		an element, of a per-CPU map on each CPU
 *   program MAP KEY VALUE OFFSET NAME	the same, with the descriptor of a program of the object at OFFSET
 *   tcx DIRECTION IFINDEX		a link of tcx, ingress or egress, which FOLDER keeps as `tcx-IFINDEX`
 *   link PATH				a link to what PATH is, a cgroup or a network namespace, kept as `link-there`
 *   netfilter FAMILY HOOK		a link to a hook of netfilter by their numbers, kept as `link-FAMILY`
 *   netkit SIDE IFINDEX			a link to a netkit device, to its primary or its peer side, kept as `link-netkit`
 *   reuseport PORT			the program chooses among sockets that share a port
 *   sockets CGROUP			the program is attached to the object's table of sockets, kept as `sockmap`, for the
 *					TCP connections of a cgroup; what is attached is kept as `sock-HOW`
 *   register				operations of the object are registered, and kept as `ops-NUMBER`
 *
 * The object's other programs are left out, for they need not load here, but for those that an order names. Where the
 * chosen one does not load without them, as with tail calls into a table that the object fills itself, all are loaded.
 *
 * One line of JSON has what the kernel reports of the program and its maps: {"program":{..},"maps":[..],"keeper":PID}. Where it
 * cannot be loaded the exit code is 1, and 3 where it cannot be attached; standard error has what libbpf and the verifier
 * say; what is wrong with an order stands in a line that begins with `pdrgate: `.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include "bpf_sockets.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define STATISTICS 4	/* BPF_LOG_STATS */
#define TCX_INGRESS 46	/* enum bpf_attach_type as of Linux 6.6: the headers may be older */
#define TCX_EGRESS 47
#define NETFILTER 45	/* the same as of Linux 6.4 */
#define NETFILTER_PROGRAM 32	/* enum bpf_prog_type */
#define NETKIT_PRIMARY 54	/* the same as of Linux 6.7 */
#define NETKIT_PEER 55
#define MOST_AT_A_PORT 64

/* The static libelf 0.192, Debian 13's, names two functions that it lacks (sourceware.org, bug 32293). Both are for a tree
 * of raw pieces of a file, which libbpf asks for none of: it is empty, and an Elf is all zeros when it begins. Where libelf
 * brings the functions and uses the tree, its own are linked. */
__attribute__((weak)) void eu_search_tree_init(void *tree)
{
	(void)tree;
}

__attribute__((weak)) void eu_search_tree_fini(void *tree, void (*leave)(void *))
{
	(void)tree;
	(void)leave;
}
#define NOT_ATTACHED 3
#define MOST_MAPS 256
#define LONGEST_ORDER (1 << 18)
#define LARGEST_VALUE (1 << 16)
#define MOST_CPUS 1024

static unsigned int processed, states;
static char no_memory[64];	/* the map that the kernel had no memory for */
static int quiet;
static char line[LONGEST_ORDER];	/* the order that is carried out */

static int printed(enum libbpf_print_level level, const char *format, va_list args)
{
	static char text[1 << 16];
	const char *found;

	if (level != LIBBPF_DEBUG && strstr(format, "failed to create")) {
		va_list again;

		va_copy(again, args);
		vsnprintf(text, sizeof(text), format, again);
		va_end(again);
		if (strstr(text, "(-12)"))
			sscanf(text, "libbpf: map '%63[^']'", no_memory);
	}
	if (level == LIBBPF_DEBUG) {
		vsnprintf(text, sizeof(text), format, args);
		found = strstr(text, "processed ");
		if (found)
			sscanf(found, "processed %u insns (limit %*u) max_states_per_insn %*u total_states %u", &processed,
			       &states);
		return 0;
	}
	return quiet ? 0 : vfprintf(stderr, format, args);
}

static struct bpf_program *chosen(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program && !quiet)
		fprintf(stderr, "libbpf: the object has no program %s\n", name);
	return program;
}

/* The words of the next order that begins with `what`, at most `most`; 0 at the end. */
static int ordered(FILE *orders, const char *what, char **words, int most)
{
	while (orders && fgets(line, sizeof(line), orders)) {
		int count = 0;
		char *rest = line, *word;

		while (count < most && (word = strsep(&rest, " \n")) && *word)
			words[count++] = word;
		if (count && !strcmp(words[0], what))
			return count;
	}
	return 0;
}

static void from_start(FILE *orders)
{
	if (orders)
		rewind(orders);
}

/* Bytes from hexadecimal digits; their number, or -1. */
static int bytes(const char *digits, unsigned char *into, int most)
{
	int count = 0;

	for (; *digits; digits += 2, count++)
		if (count == most || sscanf(digits, "%2hhx", into + count) != 1)
			return -1;
	return count;
}

int wrong(const char *what, const char *name, const char *why)
{
	if (!quiet)
		fprintf(stderr, "pdrgate: %s %s: %s\n", what, name, why);
	return -1;
}

/* Where a global variable is, and how large; NULL where there is none. */
static void *variable(struct bpf_object *object, const char *name, unsigned int *size)
{
	const struct btf *btf = bpf_object__btf(object);

	for (unsigned int id = 1; btf && id < btf__type_cnt(btf); id++) {
		const struct btf_type *section = btf__type_by_id(btf, id);
		const struct btf_var_secinfo *one = btf_var_secinfos(section);

		if (!btf_is_datasec(section))
			continue;
		for (int at = 0; at < btf_vlen(section); at++, one++) {
			const struct btf_type *found = btf__type_by_id(btf, one->type);
			struct bpf_map *map;
			size_t whole;
			char *data;

			if (!btf_is_var(found) || strcmp(btf__name_by_offset(btf, found->name_off), name))
				continue;
			map = bpf_object__find_map_by_name(object, btf__name_by_offset(btf, section->name_off));
			data = map ? (char *)bpf_map__initial_value(map, &whole) : NULL;
			if (!data || one->offset + one->size > whole)
				return NULL;
			*size = one->size;
			return data + one->offset;
		}
	}
	return NULL;
}

/* Give hashes the kernel's seed of zeros; inner ones must be as those that are meant to be in a map. */
static void unseed(struct bpf_map *map)
{
	if (!map)
		return;
	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_HASH: case BPF_MAP_TYPE_PERCPU_HASH: case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:
		bpf_map__set_map_flags(map, bpf_map__map_flags(map) | BPF_F_ZERO_SEED);
		break;
	default:
		break;
	}
	unseed(bpf_map__inner_map(map));
}

/* What has to be there before the object is loaded. */
static int prepared(struct bpf_object *object, FILE *orders)
{
	static unsigned char value[LARGEST_VALUE];
	char *words[8];

	from_start(orders);
	while (ordered(orders, "value", words, 8) == 3) {
		unsigned int size = 0;
		void *at = variable(object, words[1], &size);

		if (!at)
			return wrong("variable", words[1], "the object has none of this name");
		if (bytes(words[2], value, sizeof(value)) != (int)size)
			return wrong("variable", words[1], "has another size");
		memcpy(at, value, size);
	}
	from_start(orders);
	while (ordered(orders, "size", words, 8) == 3) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, words[1]);

		if (!map || bpf_map__set_max_entries(map, strtoul(words[2], NULL, 10)))
			return wrong("map", words[1], "cannot have another size");
	}
	from_start(orders);
	while (ordered(orders, "keys", words, 8) == 3) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, words[1]);

		if (!map || bpf_map__set_key_size(map, strtoul(words[2], NULL, 10)))
			return wrong("map", words[1], "cannot have keys of another size");
	}
	from_start(orders);
	while (ordered(orders, "values", words, 8) == 3) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, words[1]);

		if (!map || bpf_map__set_value_size(map, strtoul(words[2], NULL, 10)))
			return wrong("map", words[1], "cannot have values of another size");
	}
	from_start(orders);
	if (ordered(orders, "unseeded", words, 8)) {
		struct bpf_map *map;

		bpf_object__for_each_map(map, object)
			unseed(map);
	}
	return 0;
}

static int per_cpu(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

static int set(struct bpf_object *object, char **words, int descriptor, int offset)
{
	static unsigned char key[LARGEST_VALUE], value[LARGEST_VALUE], values[LARGEST_VALUE * 16];
	struct bpf_map *map = bpf_object__find_map_by_name(object, words[1]);
	int size, cpus = libbpf_num_possible_cpus();
	char why[256];

	if (!map)
		return wrong("map", words[1], "the object has none of this name");
	size = bytes(words[3], value, sizeof(value));
	if (bytes(words[2], key, sizeof(key)) != (int)bpf_map__key_size(map) || size != (int)bpf_map__value_size(map))
		return wrong("map", words[1], "has keys or values of another size");
	if (descriptor >= 0 && offset + (int)sizeof(descriptor) <= size)
		memcpy(value + offset, &descriptor, sizeof(descriptor));
	if (per_cpu(bpf_map__type(map))) {
		int each = (size + 7) / 8 * 8;

		if (cpus < 1 || (long)cpus * each > (long)sizeof(values))
			return wrong("map", words[1], "has values that are too large for so many CPUs");
		for (int cpu = 0; cpu < cpus; cpu++)
			memcpy(values + cpu * each, value, size);
	} else {
		memcpy(values, value, size);
	}
	if (!bpf_map_update_elem(bpf_map__fd(map), key, values, BPF_ANY))
		return 0;
	snprintf(why, sizeof(why), "takes no element %.64s: %s (it may have %u)", words[2], strerror(errno),
		 bpf_map__max_entries(map));
	return wrong("map", words[1], why);
}

/* What the maps hold when packets come. */
static int filled(struct bpf_object *object, FILE *orders)
{
	char *words[8];

	from_start(orders);
	while (ordered(orders, "element", words, 8) == 4)
		if (set(object, words, -1, 0))
			return -1;
	from_start(orders);
	while (ordered(orders, "program", words, 8) == 6) {
		struct bpf_program *program = chosen(object, words[5]);

		if (!program || set(object, words, bpf_program__fd(program), atoi(words[4])))
			return -1;
	}
	return 0;
}

/* What a port has at a hook: ids of programs, and how many; -1 where the kernel has no such hook. */
static int found_at(int port, int hook, unsigned int *programs)
{
	unsigned int count = MOST_AT_A_PORT;

	return bpf_prog_query(port, hook, 0, NULL, programs, &count) ? -1 : (int)count;
}

/* Attach the program to one port by a link, which lasts as long as its pin does. */
static int linked(int program, const char *folder, const char *direction, const char *port)
{
	int hook = strcmp(direction, "egress") ? TCX_INGRESS : TCX_EGRESS, number = atoi(port), link, count;
	unsigned int ids[MOST_AT_A_PORT], size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { 0 };
	struct utsname kernel = { 0 };
	char pin[4096], why[256];

	count = found_at(number, hook, ids);
	if (count < 0 && errno == EINVAL) {
		uname(&kernel);
		snprintf(why, sizeof(why), "needs Linux 6.6 with CONFIG_NET_XGRESS, and %.64s has no such hook; use attach=tc-%s",
			 kernel.release, direction);
		return wrong("tcx", direction, why);
	}
	snprintf(why, sizeof(why), "interface %s: %s", port, strerror(errno));
	if (count > 0)
		snprintf(why, sizeof(why), "interface %s has a program there already (id %u); take it off", port, ids[0]);
	if (count)
		return wrong("tcx", direction, why);
	link = bpf_link_create(program, number, hook, NULL);
	snprintf(pin, sizeof(pin), "%s/tcx-%s", folder, port);
	if (link < 0 || bpf_obj_pin(link, pin)) {
		snprintf(why, sizeof(why), "interface %s: %s", port, strerror(errno));
		return wrong("tcx", direction, why);
	}
	close(link);
	if (!bpf_obj_get_info_by_fd(program, &info, &size) && found_at(number, hook, ids) == 1 && ids[0] == info.id)
		return 0;
	snprintf(why, sizeof(why), "interface %s reads back another program; does something there change it?", port);
	return wrong("tcx", direction, why);
}

int kept(int link, const char *folder, const char *name, const char *where)
{
	char pin[4096];

	snprintf(pin, sizeof(pin), "%s/link-%s", folder, name);
	if (link < 0 || bpf_obj_pin(link, pin))
		return wrong("link", where, strerror(errno));
	close(link);
	return 0;
}

/* Attach the program to the cgroup or the network namespace that a path leads to. */
static int linked_to(int program, enum bpf_attach_type type, const char *folder, const char *path)
{
	int there = open(path, O_RDONLY | O_CLOEXEC), done;

	if (there < 0)
		return wrong("link", path, strerror(errno));
	done = kept(bpf_link_create(program, there, type, NULL), folder, "there", path);
	close(there);
	return done;
}

/* Attach the program to a hook of netfilter, for which the headers may be too old. */
static int linked_to_netfilter(int program, const char *folder, const char *family, const char *hook)
{
	struct {
		unsigned int program, target, type, flags, family, hook;
		int priority;
		unsigned int more;
	} asked = { .program = program, .type = NETFILTER, .family = atoi(family), .hook = atoi(hook) };

	return kept(syscall(SYS_bpf, BPF_LINK_CREATE, &asked, sizeof(asked)), folder, family, "netfilter");
}

/* Attach the program to a netkit device, for which the headers may be too old. */
static int linked_to_netkit(int program, const char *folder, const char *side, const char *port)
{
	enum bpf_attach_type hook = strcmp(side, "peer") ? NETKIT_PRIMARY : NETKIT_PEER;

	return kept(bpf_link_create(program, atoi(port), hook, NULL), folder, "netkit", side);
}

static int attached(struct bpf_object *object, struct bpf_program *own, int program, const char *folder, FILE *orders)
{
	enum bpf_attach_type type = bpf_program__expected_attach_type(own);
	char *words[8];

	from_start(orders);
	while (ordered(orders, "tcx", words, 8) == 3)
		if (linked(program, folder, words[1], words[2]))
			return -1;
	from_start(orders);
	while (ordered(orders, "link", words, 8) == 2)
		if (linked_to(program, type, folder, words[1]))
			return -1;
	from_start(orders);
	while (ordered(orders, "netfilter", words, 8) == 3)
		if (linked_to_netfilter(program, folder, words[1], words[2]))
			return -1;
	from_start(orders);
	while (ordered(orders, "netkit", words, 8) == 3)
		if (linked_to_netkit(program, folder, words[1], words[2]))
			return -1;
	from_start(orders);
	while (ordered(orders, "reuseport", words, 8) == 2)
		if (linked_to_reuseport(object, program, words[1]))
			return -1;
	from_start(orders);
	while (ordered(orders, "sockets", words, 8) == 2)
		if (linked_to_sockets(object, own, folder, words[1]))
			return -1;
	from_start(orders);
	return ordered(orders, "register", words, 8) ? registered(object, folder) : 0;
}

/* Load a program as another kind than its section says. */
static int made(struct bpf_program *program, const char *kind)
{
	enum bpf_attach_type attach;
	enum bpf_prog_type type;

	if (!strcmp(kind, "netfilter")) {	/* libbpf knows it from 1.2 on */
		type = NETFILTER_PROGRAM;
		attach = NETFILTER;
	} else if (!strncmp(kind, "netkit/", 7)) {	/* and this from 1.3 on */
		type = BPF_PROG_TYPE_SCHED_CLS;
		attach = strcmp(kind, "netkit/peer") ? NETKIT_PRIMARY : NETKIT_PEER;
	} else if (libbpf_prog_type_by_name(kind, &type, &attach)) {
		return wrong("kind of program", kind, "libbpf does not know it");
	}
	bpf_program__set_type(program, type);
	bpf_program__set_expected_attach_type(program, attach);
	return 0;
}

/* Whether a program runs where the chosen one does, so that a tail call may lead to it. */
static int beside(struct bpf_program *program, enum bpf_prog_type type)
{
	enum bpf_attach_type attach = bpf_program__expected_attach_type(program);

	return bpf_program__type(program) == BPF_PROG_TYPE_UNSPEC ||
	       (bpf_program__type(program) == type && attach != BPF_XDP_DEVMAP && attach != BPF_XDP_CPUMAP);
}

/* What is loaded of an object. */
struct asked {
	const char *object, *program, *folder, *kind;
	FILE *orders;
	const char *function;	/* what it replaces of the dispatcher; NULL: nothing */
	int dispatcher;
};

/* Make a program one that replaces a function of another. */
static int replacing(struct bpf_program *program, const struct asked *asked)
{
	bpf_program__set_type(program, BPF_PROG_TYPE_EXT);
	bpf_program__set_expected_attach_type(program, 0);
	return bpf_program__set_attach_target(program, asked->dispatcher, asked->function);
}

/* Print how large the map is that the kernel had no memory for. */
static void too_large(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, no_memory);
	unsigned long long bytes;
	char why[512];

	if (!map)
		return;
	bytes = (unsigned long long)bpf_map__max_entries(map) *
		(bpf_map__key_size(map) +
		 (bpf_map__value_size(map) + 7ULL) / 8 * 8 * (per_cpu(bpf_map__type(map)) ? libbpf_num_possible_cpus() : 1));
	snprintf(why, sizeof(why), "%u elements take at least %llu MiB, and this machine has %llu MiB of memory; make it "
		 "smaller by the file of maps, %s: {max_entries: 1024}, or give a guest more: memory in the testbed's file",
		 bpf_map__max_entries(map), bytes >> 20,
		 (unsigned long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20, no_memory);
	wrong("map", no_memory, why);
}

/* The object with the program loaded and its maps filled; NULL where it does not load. */
static struct bpf_object *loaded_as(const struct asked *asked, int alone, int level)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .pin_root_path = asked->folder);
	struct bpf_object *object = bpf_object__open_file(asked->object, &options);
	FILE *orders = asked->orders;
	struct bpf_program *program, *each;
	char *words[8];

	if (!object)
		return NULL;
	program = chosen(object, asked->program);
	if (!program)
		goto refused;
	bpf_object__for_each_program(each, object)
		if (alone)
			bpf_program__set_autoload(each, each == program || goes_with(each, program));
	bpf_program__set_autoload(program, true);	/* a section that begins with ? is loaded when it is asked for */
	if (asked->function ? replacing(program, asked) : *asked->kind && made(program, asked->kind))
		goto refused;
	from_start(orders);
	while (ordered(orders, "program", words, 8) == 6) {
		each = chosen(object, words[5]);
		if (!each)
			goto refused;
		bpf_program__set_autoload(each, true);
		if (*asked->kind && beside(each, bpf_program__type(program)) && made(each, asked->kind))
			goto refused;
	}
	bpf_program__set_log_level(program, level);
	if (!prepared(object, orders) && !bpf_object__load(object) && !filled(object, orders))
		return object;
refused:
	if (*no_memory)
		too_large(object);
	bpf_object__close(object);
	return NULL;
}

static struct bpf_object *loaded(const struct asked *asked)
{
	struct bpf_object *object;

	quiet = 1;
	object = loaded_as(asked, 1, STATISTICS);
	if (!object)
		object = loaded_as(asked, 0, STATISTICS);
	quiet = 0;
	return object ? object : loaded_as(asked, 1, 0);	/* without statistics a kernel says why */
}

static struct bpf_program *program_of(struct bpf_object *object, const struct asked *asked)
{
	return bpf_object__find_program_by_name(object, asked->program);
}

/* Bytes of memory that a map takes, as the kernel accounts for it. */
static unsigned long long memory(int map)
{
	char path[64], line[128];
	unsigned long long held = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "memlock: %llu", &held);
	if (file)
		fclose(file);
	return held;
}

/* Whether a map has no element. Arrays always have theirs, but for those of programs and devices. */
static int empty(int map, const struct bpf_map_info *info)
{
	static unsigned char key[LARGEST_VALUE], value[LARGEST_VALUE * 16];

	if (info->key_size > sizeof(key) || info->value_size > LARGEST_VALUE)
		return 0;
	switch (info->type) {
	case BPF_MAP_TYPE_PROG_ARRAY: case BPF_MAP_TYPE_DEVMAP: case BPF_MAP_TYPE_CPUMAP: case BPF_MAP_TYPE_XSKMAP:
		for (unsigned int at = 0; at < info->max_entries && at < MOST_CPUS; at++)
			if (!bpf_map_lookup_elem(map, &at, value) || errno == EOPNOTSUPP)
				return 0;
		return 1;
	case BPF_MAP_TYPE_HASH: case BPF_MAP_TYPE_PERCPU_HASH: case BPF_MAP_TYPE_LRU_HASH: case BPF_MAP_TYPE_LPM_TRIE:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH: case BPF_MAP_TYPE_DEVMAP_HASH: case BPF_MAP_TYPE_HASH_OF_MAPS:
		return bpf_map_get_next_key(map, NULL, key) && errno == ENOENT;
	default:
		return 0;
	}
}

static void tell_maps(const unsigned int *ids, unsigned int count)
{
	for (unsigned int at = 0; at < count; at++) {
		struct bpf_map_info map = { 0 };
		unsigned int size = sizeof(map);
		int fd = bpf_map_get_fd_by_id(ids[at]);
		const char *kind;

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &map, &size))
			continue;
		kind = libbpf_bpf_map_type_str(map.type);
		printf("%s{\"id\":%u,\"name\":\"%s\",\"kind\":\"%s\",\"key\":%u,\"value\":%u,\"entries\":%u,\"memory\":%llu,"
		       "\"empty\":%s}",
		       at ? "," : "", map.id, map.name, kind ? kind : "", map.key_size, map.value_size, map.max_entries,
		       memory(fd), empty(fd, &map) ? "true" : "false");
		close(fd);
	}
}

/* The kernel empties a table of programs when no program has it open any more, and it is pinned nowhere: one that only
 * keeps the object open does, until it is ended; the link by which a program replaces a function, too. Its process id;
 * 0 where nobody needs it. */
static int keeper(struct bpf_object *object, int needed)
{
	struct bpf_map *map;
	int pid;

	bpf_object__for_each_map(map, object)
		needed |= bpf_map__type(map) == BPF_MAP_TYPE_PROG_ARRAY;
	if (!needed)
		return 0;
	fflush(stdout);
	pid = fork();
	if (pid)
		return pid < 0 ? 0 : pid;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (;;)
		pause();
}

/* Bytes of machine code of all programs that were loaded: those that tables call are the program's too. */
static unsigned int machine_code(struct bpf_object *object)
{
	struct bpf_program *each;
	unsigned int bytes = 0;

	bpf_object__for_each_program(each, object) {
		struct bpf_prog_info info = { 0 };
		unsigned int size = sizeof(info);
		int fd = bpf_program__fd(each);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			bytes += info.jited_prog_len;
	}
	return bytes;
}

/* What ports run, and what loading the program cost. */
static int report(struct bpf_object *object, int fd, unsigned int dispatcher)
{
	unsigned int ids[MOST_MAPS], size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info program = { .nr_map_ids = MOST_MAPS, .map_ids = (unsigned long)ids };

	if (bpf_obj_get_info_by_fd(fd, &program, &size)) {
		perror("bpf_obj_get_info_by_fd");
		return 1;
	}
	printf("{\"program\":{\"id\":%u,\"name\":\"%s\",\"jited\":%u,\"processed\":%u,\"states\":%u},\"maps\":[",
	       dispatcher ? dispatcher : program.id, program.name, machine_code(object),
	       processed ? processed : program.verified_insns, states);
	tell_maps(ids, program.nr_map_ids < MOST_MAPS ? program.nr_map_ids : MOST_MAPS);
	printf("],\"keeper\":%d}\n", keeper(object, dispatcher != 0));
	return 0;
}

/* The dispatcher's id once the program has replaced its function; 0 where it is refused. */
static unsigned int replaced(struct bpf_program *program, int dispatcher)
{
	unsigned int size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { 0 };

	if (!bpf_program__attach_freplace(program, 0, NULL)) {
		wrong("program", bpf_program__name(program), strerror(errno));
		return 0;
	}
	return bpf_obj_get_info_by_fd(dispatcher, &info, &size) ? 0 : info.id;
}

int main(int argc, char **argv)
{
	struct asked asked = { 0 }, around = { 0 };
	struct bpf_object *object, *outer;
	unsigned int dispatcher = 0;
	char pin[4096];
	int fd;

	if (argc != 6 && argc != 10) {
		fprintf(stderr, "usage: pdrgate-bpf-load OBJECT PROGRAM FOLDER KIND ORDERS [OBJECT PROGRAM FUNCTION ORDERS]\n");
		return 64;
	}
	asked = (struct asked){ argv[1], argv[2], argv[3], argv[4], fopen(argv[5], "r") };
	libbpf_set_print(printed);
	if (argc == 10) {
		around = (struct asked){ argv[6], argv[7], argv[3], argv[4], fopen(argv[9], "r") };
		outer = loaded(&around);
		if (!outer)
			return 1;
		asked.function = argv[8];
		asked.dispatcher = bpf_program__fd(program_of(outer, &around));
		processed = states = 0;
	}
	object = loaded(&asked);
	if (!object)
		return 1;
	fd = bpf_program__fd(program_of(object, &asked));
	if (asked.function) {
		dispatcher = replaced(program_of(object, &asked), asked.dispatcher);
		if (!dispatcher)
			return 1;
	}
	snprintf(pin, sizeof(pin), "%s/program", argv[3]);
	if (bpf_obj_pin(asked.function ? asked.dispatcher : fd, pin)) {
		perror(pin);
		return 1;
	}
	if (attached(object, program_of(object, &asked), asked.function ? asked.dispatcher : fd, argv[3], asked.orders))
		return NOT_ATTACHED;
	return report(object, fd, dispatcher);
}
