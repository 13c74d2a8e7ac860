/* SPDX-License-Identifier: Apache-2.0
 *
 * The maps of a loaded BPF program, as they were when they were kept, and what puts them back so.
 *
 * Maps are those of the program, of programs that it may call through its tables, and those inside of others. What a
 * program changes is found by reading all maps again: once a packet. What puts that back is a list of elements, which
 * is fast enough to be gone through after every run.
 *
 * Ring buffers are read to their end, queues and stacks emptied. Programs cannot change tables of programs, devices and
 * CPUs. The contents of other kinds stay, and those of arrays that a guest's memory does not hold several times: `unkept`
 * has their names.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_KEPT 1024
#define CHUNK 4096		/* elements that are read by one system call */
#define LARGEST_ARRAY (16UL << 20)	/* bytes of one that is kept: each packet has all of it read */
#define NO_BATCH 524		/* ENOTSUPP, which user space has no name for */

/* Elements, each a key and its value, as the kernel returns them. */
struct elements {
	unsigned char *all;
	size_t count, room;
};

struct kept_map {
	uint32_t id, type, flags, key, value;	/* value: of all CPUs */
	int fd;
	struct elements raw, sorted;
	volatile unsigned long *consumed;	/* of a ring buffer */
	const volatile unsigned long *produced;
};

struct change {
	const struct kept_map *map;
	unsigned char *key;
	const unsigned char *value;	/* NULL: there was no such element */
};

static struct kept_map kept[MOST_KEPT];
static int many_kept;
static char unkept[MOST_KEPT][16];
static int many_unkept;
static uint32_t programs_seen[MOST_KEPT];
static int many_programs;
static struct change *changes;
static size_t many_changes, room_for_changes;

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static void *roomy(void *found, size_t bytes)
{
	found = realloc(found, bytes ? bytes : 1);
	if (!found)
		fail("memory for a map");
	return found;
}

static int element(int command, int fd, const void *key, const void *value)
{
	union bpf_attr attr = { .map_fd = fd, .key = (uint64_t)(uintptr_t)key, .value = (uint64_t)(uintptr_t)value };

	return bpf(command, &attr);
}

static int by_id(int command, uint32_t id)
{
	union bpf_attr attr = { .map_id = id };

	return bpf(command, &attr);
}

static int filled_by(int fd, void *info, uint32_t size)
{
	union bpf_attr attr = { .info = { .bpf_fd = fd, .info_len = size, .info = (uint64_t)(uintptr_t)info } };

	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static int possible_cpus(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "r");
	int last = 0, next;

	while (file && fscanf(file, "%*[,-]") != EOF && fscanf(file, "%d", &next) == 1)
		last = next;
	if (file)
		fclose(file);
	return last + 1;
}

static size_t stride(const struct kept_map *map)
{
	return map->key + map->value;
}

static void take(const struct kept_map *map, struct elements *into, const void *key, const void *value)
{
	unsigned char *at;

	if (into->count == into->room) {
		into->room = into->room ? 2 * into->room : 16;
		into->all = roomy(into->all, into->room * stride(map));
	}
	at = into->all + into->count++ * stride(map);
	memcpy(at, key, map->key);
	memcpy(at + map->key, value, map->value);
}

static int read_batches(const struct kept_map *map, struct elements *into)
{
	size_t least = map->key > 4 ? map->key : 4;
	unsigned char *keys = roomy(NULL, (size_t)CHUNK * map->key), *values = roomy(NULL, (size_t)CHUNK * map->value);
	unsigned char *before = roomy(NULL, least), *after = roomy(NULL, least);
	int begun = 0, ended;

	do {
		union bpf_attr attr = { .batch = { .map_fd = map->fd, .count = CHUNK } };

		attr.batch.in_batch = begun ? (uint64_t)(uintptr_t)before : 0;
		attr.batch.out_batch = (uint64_t)(uintptr_t)after;
		attr.batch.keys = (uint64_t)(uintptr_t)keys;
		attr.batch.values = (uint64_t)(uintptr_t)values;
		ended = bpf(BPF_MAP_LOOKUP_BATCH, &attr) != 0;
		if (ended && errno != ENOENT)
			break;
		for (uint32_t at = 0; at < attr.batch.count; at++)
			take(map, into, keys + (size_t)at * map->key, values + (size_t)at * map->value);
		memcpy(before, after, least);
		begun = 1;
		errno = ENOENT;
	} while (!ended);
	free(keys);
	free(values);
	free(before);
	free(after);
	return errno == ENOENT ? 0 : -1;
}

static void read_one_by_one(const struct kept_map *map, struct elements *into)
{
	unsigned char *key = roomy(NULL, map->key), *following = roomy(NULL, map->key), *value = roomy(NULL, map->value);
	int begun = 0;

	while (!element(BPF_MAP_GET_NEXT_KEY, map->fd, begun ? key : NULL, following)) {
		if (!element(BPF_MAP_LOOKUP_ELEM, map->fd, following, value))
			take(map, into, following, value);
		memcpy(key, following, map->key);
		begun = 1;
	}
	free(key);
	free(following);
	free(value);
}

static struct elements read_map(const struct kept_map *map)
{
	struct elements found = { 0 };

	if (read_batches(map, &found)) {
		found.count = 0;
		read_one_by_one(map, &found);
	}
	return found;
}

static size_t sorted_key;

static int in_order(const void *one, const void *other)
{
	return memcmp(one, other, sorted_key);
}

static struct elements in_sorted(const struct kept_map *map, const struct elements *found)
{
	struct elements made = { roomy(NULL, found->count * stride(map)), found->count, found->count };

	if (found->count)
		memcpy(made.all, found->all, found->count * stride(map));
	sorted_key = map->key;
	qsort(made.all, made.count, stride(map), in_order);
	return made;
}

static int is_queue(uint32_t type)
{
	return type == BPF_MAP_TYPE_QUEUE || type == BPF_MAP_TYPE_STACK;
}

/* Of the program's kind, elements that it can change and that anybody can read and write. */
static int has_elements(uint32_t type)
{
	switch (type) {
	case BPF_MAP_TYPE_HASH: case BPF_MAP_TYPE_ARRAY: case BPF_MAP_TYPE_PERCPU_HASH: case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_LRU_HASH: case BPF_MAP_TYPE_LRU_PERCPU_HASH: case BPF_MAP_TYPE_LPM_TRIE:
		return 1;
	default:
		return 0;
	}
}

/* Whether it is an array that is too large to be kept. Only the elements that a hash has are read. */
static int is_too_large(const struct kept_map *map, uint32_t entries)
{
	return (map->type == BPF_MAP_TYPE_ARRAY || map->type == BPF_MAP_TYPE_PERCPU_ARRAY) &&
	       (size_t)entries * stride(map) > LARGEST_ARRAY;
}

static int is_out_of_reach(uint32_t type)
{
	switch (type) {
	case BPF_MAP_TYPE_PROG_ARRAY: case BPF_MAP_TYPE_PERF_EVENT_ARRAY: case BPF_MAP_TYPE_CGROUP_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS: case BPF_MAP_TYPE_HASH_OF_MAPS: case BPF_MAP_TYPE_DEVMAP:
	case BPF_MAP_TYPE_DEVMAP_HASH: case BPF_MAP_TYPE_CPUMAP: case BPF_MAP_TYPE_XSKMAP: case BPF_MAP_TYPE_SK_STORAGE:
	case BPF_MAP_TYPE_REUSEPORT_SOCKARRAY:
		return 1;
	default:
		return 0;
	}
}

static void keep_programs(int fd);
static void keep_map(uint32_t id);

static void map_ring(struct kept_map *map)
{
	long page = sysconf(_SC_PAGESIZE);
	void *consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
	void *produced = mmap(NULL, page, PROT_READ, MAP_SHARED, map->fd, page);

	if (consumed == MAP_FAILED || produced == MAP_FAILED)
		return;
	map->consumed = consumed;
	map->produced = produced;
}

/* What is inside of it: maps, or programs. */
static void keep_inner(const struct kept_map *map)
{
	struct elements found = { 0 };

	read_one_by_one(map, &found);
	for (size_t at = 0; at < found.count; at++) {
		uint32_t id;
		int fd;

		memcpy(&id, found.all + at * stride(map) + map->key, sizeof(id));
		if (map->type != BPF_MAP_TYPE_PROG_ARRAY) {
			keep_map(id);
			continue;
		}
		fd = by_id(BPF_PROG_GET_FD_BY_ID, id);
		if (fd >= 0)
			keep_programs(fd);
	}
	free(found.all);
}

static void keep_map(uint32_t id)
{
	struct kept_map *map = &kept[many_kept];
	struct bpf_map_info info = { 0 };

	for (int at = 0; at < many_kept; at++)
		if (kept[at].id == id)
			return;
	if (many_kept == MOST_KEPT)
		return;
	map->fd = by_id(BPF_MAP_GET_FD_BY_ID, id);
	if (map->fd < 0 || filled_by(map->fd, &info, sizeof(info)))
		return;
	map->id = id;
	map->type = info.type;
	map->flags = info.map_flags;
	map->key = info.key_size;
	map->value = info.value_size;
	if (info.type == BPF_MAP_TYPE_PERCPU_HASH || info.type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	    info.type == BPF_MAP_TYPE_LRU_PERCPU_HASH)
		map->value = (info.value_size + 7) / 8 * 8 * possible_cpus();
	many_kept++;
	if (info.type == BPF_MAP_TYPE_PROG_ARRAY || info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
	    info.type == BPF_MAP_TYPE_HASH_OF_MAPS) {
		keep_inner(map);
	} else if (info.type == BPF_MAP_TYPE_RINGBUF) {
		map_ring(map);
	} else if (has_elements(info.type) && !is_too_large(map, info.max_entries)) {
		map->raw = read_map(map);
		map->sorted = in_sorted(map, &map->raw);
	} else if (is_queue(info.type) ? !element(BPF_MAP_LOOKUP_ELEM, map->fd, NULL, roomy(NULL, map->value)) :
					 !is_out_of_reach(info.type)) {
		memcpy(unkept[many_unkept++], info.name, sizeof(unkept[0]) - 1);
		map->type = BPF_MAP_TYPE_UNSPEC;
	}
}

/* Keep the maps of a program, and of those that it calls. */
static void keep_programs(int fd)
{
	static uint32_t ids[8][MOST_KEPT];
	static int depth;
	struct bpf_prog_info info = { .nr_map_ids = MOST_KEPT, .map_ids = (uint64_t)(uintptr_t)ids[depth] };

	if (depth == 7 || filled_by(fd, &info, sizeof(info)) || many_programs == MOST_KEPT)
		return;
	for (int at = 0; at < many_programs; at++)
		if (programs_seen[at] == info.id)
			return;
	programs_seen[many_programs++] = info.id;
	depth++;
	for (uint32_t at = 0; at < info.nr_map_ids && at < MOST_KEPT; at++)
		keep_map(ids[depth - 1][at]);
	depth--;
}

static void changed(const struct kept_map *map, const unsigned char *key, const unsigned char *value)
{
	struct change *one;

	if (many_changes == room_for_changes) {
		room_for_changes = room_for_changes ? 2 * room_for_changes : 64;
		changes = roomy(changes, room_for_changes * sizeof(*changes));
	}
	one = &changes[many_changes++];
	one->map = map;
	one->key = roomy(NULL, map->key);
	memcpy(one->key, key, map->key);
	one->value = value;
}

static void find_changes_of(const struct kept_map *map)
{
	struct elements now = read_map(map), sorted;
	const struct elements *then = &map->sorted;
	size_t size = stride(map), old = 0, new = 0;

	if (now.count == map->raw.count && (!now.count || !memcmp(now.all, map->raw.all, now.count * size))) {
		free(now.all);
		return;
	}
	sorted = in_sorted(map, &now);
	while (old < then->count || new < sorted.count) {
		const unsigned char *was = then->all + old * size, *is = sorted.all + new * size;
		int order = old == then->count ? 1 : new == sorted.count ? -1 : memcmp(was, is, map->key);

		if (order > 0)
			changed(map, is, NULL);
		else if (order < 0 || memcmp(was, is, size))
			changed(map, was, was + map->key);
		old += order <= 0;
		new += order >= 0;
	}
	free(now.all);
	free(sorted.all);
}

/* List what is not as it was kept. */
static size_t find_changes(void)
{
	while (many_changes)
		free(changes[--many_changes].key);
	for (int at = 0; at < many_kept; at++)
		if (has_elements(kept[at].type))
			find_changes_of(&kept[at]);
	return many_changes;
}

/* Put back what is listed, and empty what only fills up. */
static void put_back(void)
{
	static unsigned char value[1 << 16];

	for (size_t at = 0; at < many_changes; at++)	/* there must be room before elements come back */
		if (!changes[at].value)
			element(BPF_MAP_DELETE_ELEM, changes[at].map->fd, changes[at].key, NULL);
	for (size_t at = 0; at < many_changes; at++)
		if (changes[at].value)
			element(BPF_MAP_UPDATE_ELEM, changes[at].map->fd, changes[at].key, changes[at].value);
	for (int at = 0; at < many_kept; at++) {
		if (kept[at].consumed)
			*kept[at].consumed = *kept[at].produced;
		while (is_queue(kept[at].type) && kept[at].value <= sizeof(value) &&
		       !element(BPF_MAP_LOOKUP_AND_DELETE_ELEM, kept[at].fd, NULL, value))
			;
	}
}
