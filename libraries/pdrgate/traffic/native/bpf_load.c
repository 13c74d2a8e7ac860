// SPDX-License-Identifier: Apache-2.0
/* Loads one program of an eBPF object, and pins it.
 *
 *   pdrgate-bpf-load OBJECT PROGRAM FOLDER KIND
 *
 * FOLDER is in a bpffs; the program is pinned there as `program`, and maps that the object wants pinned by name, too.
 * KIND is libbpf's name for what the program is loaded for, such as xdp/cpumap; empty: what its section says.
 *
 * The object's other programs are left out, for they need not load here. Where the chosen one does not load without
 * them, as with tail calls into a table that the object fills itself, all are loaded.
 *
 * One line of JSON tells what the kernel says of the program and its maps: {"program":{..},"maps":[..]}. Where it
 * cannot be loaded the exit code is 1, and standard error has what libbpf and the verifier say.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATISTICS 4	/* BPF_LOG_STATS */
#define MOST_MAPS 256

static unsigned int processed, states;
static int quiet;

static int told(enum libbpf_print_level level, const char *format, va_list args)
{
	static char text[1 << 16];
	const char *found;

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

/* The object with the program loaded; NULL where it does not load. */
static struct bpf_object *loaded(char **argv, int alone, int level)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .pin_root_path = argv[3]);
	struct bpf_object *object = bpf_object__open_file(argv[1], &options);
	struct bpf_program *program, *each;
	enum bpf_attach_type attach;
	enum bpf_prog_type type;

	if (!object)
		return NULL;
	program = chosen(object, argv[2]);
	if (!program)
		goto refused;
	bpf_object__for_each_program(each, object)
		if (alone)
			bpf_program__set_autoload(each, each == program);
	bpf_program__set_autoload(program, true);	/* a section that begins with ? is loaded when it is asked for */
	if (*argv[4]) {
		if (libbpf_prog_type_by_name(argv[4], &type, &attach)) {
			if (!quiet)
				fprintf(stderr, "libbpf: knows no kind of program %s\n", argv[4]);
			goto refused;
		}
		bpf_program__set_type(program, type);
		bpf_program__set_expected_attach_type(program, attach);
	}
	bpf_program__set_log_level(program, level);
	if (!bpf_object__load(object))
		return object;
refused:
	bpf_object__close(object);
	return NULL;
}

/* Bytes of memory that a map takes, as the kernel accounts for it. */
static unsigned long long memory(int map)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "memlock: %llu", &bytes);
	if (file)
		fclose(file);
	return bytes;
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
		printf("%s{\"id\":%u,\"name\":\"%s\",\"kind\":\"%s\",\"key\":%u,\"value\":%u,\"entries\":%u,\"memory\":%llu}",
		       at ? "," : "", map.id, map.name, kind ? kind : "", map.key_size, map.value_size, map.max_entries,
		       memory(fd));
		close(fd);
	}
}

static int tell(int fd)
{
	unsigned int ids[MOST_MAPS], size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info program = { .nr_map_ids = MOST_MAPS, .map_ids = (unsigned long)ids };

	if (bpf_obj_get_info_by_fd(fd, &program, &size)) {
		perror("bpf_obj_get_info_by_fd");
		return 1;
	}
	printf("{\"program\":{\"id\":%u,\"name\":\"%s\",\"jited\":%u,\"processed\":%u,\"states\":%u},\"maps\":[", program.id,
	       program.name, program.jited_prog_len, processed ? processed : program.verified_insns, states);
	tell_maps(ids, program.nr_map_ids < MOST_MAPS ? program.nr_map_ids : MOST_MAPS);
	printf("]}\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	char pin[4096];
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: pdrgate-bpf-load OBJECT PROGRAM FOLDER KIND\n");
		return 64;
	}
	libbpf_set_print(told);
	quiet = 1;
	object = loaded(argv, 1, STATISTICS);
	if (!object)
		object = loaded(argv, 0, STATISTICS);
	quiet = 0;
	if (!object)
		object = loaded(argv, 1, 0);	/* without statistics a kernel says why */
	if (!object)
		return 1;
	fd = bpf_program__fd(bpf_object__find_program_by_name(object, argv[2]));
	snprintf(pin, sizeof(pin), "%s/program", argv[3]);
	if (bpf_obj_pin(fd, pin)) {
		perror(pin);
		return 1;
	}
	return tell(fd);
}
