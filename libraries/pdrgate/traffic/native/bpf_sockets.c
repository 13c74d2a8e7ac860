// SPDX-License-Identifier: Apache-2.0
/* Places of programs that sockets call: a group of sockets that share a port, a table of sockets, and operations of the
 * kernel's that a program registers (struct_ops).
 *
 * Sockets belong to other processes, which are left as they are: their descriptors are duplicated (pidfd_getfd(2)).
 */
#include "bpf_sockets.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTACH_REUSEPORT 52	/* SO_ATTACH_REUSEPORT_EBPF */
#define MOST_SOCKETS 64
#define TRIES 100		/* tenths of a second until somebody listens */
#define MOST_OURS 16		/* sockets that our own program keeps in a table */
#define LONGEST_KEY 64

int goes_with(const struct bpf_program *each, const struct bpf_program *chosen)
{
	enum bpf_prog_type type = bpf_program__type(chosen), other = bpf_program__type(each);
	enum bpf_attach_type attach = bpf_program__expected_attach_type(chosen);

	if (each == chosen)
		return 0;
	if (type == BPF_PROG_TYPE_STRUCT_OPS)
		return other == type;
	if (type != BPF_PROG_TYPE_SK_MSG && type != BPF_PROG_TYPE_SK_SKB)
		return 0;
	if (other == BPF_PROG_TYPE_SOCK_OPS)
		return 1;
	/* A parser and a verdict of streams go together. */
	return type == BPF_PROG_TYPE_SK_SKB && other == type &&
	       ((attach == BPF_SK_SKB_STREAM_PARSER &&
		 bpf_program__expected_attach_type(each) == BPF_SK_SKB_STREAM_VERDICT) ||
		(attach != BPF_SK_SKB_STREAM_PARSER &&
		 bpf_program__expected_attach_type(each) == BPF_SK_SKB_STREAM_PARSER));
}

static struct bpf_map *table(struct bpf_object *object, enum bpf_map_type one, enum bpf_map_type other)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == one || bpf_map__type(map) == other)
			return map;
	return NULL;
}

/* The socket that a descriptor of a process is, where it shares the port; else -1. */
static int sharing(int process, int number, unsigned int port)
{
	struct sockaddr_storage own = { 0 };
	socklen_t size = sizeof(own), length = sizeof(int);
	int shares = 0, fd = syscall(SYS_pidfd_getfd, process, number, 0);

	if (fd < 0)
		return -1;
	if (!getsockname(fd, (struct sockaddr *)&own, &size) && (own.ss_family == AF_INET || own.ss_family == AF_INET6) &&
	    ntohs(((struct sockaddr_in *)&own)->sin_port) == port &&
	    !getsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &shares, &length) && shares)
		return fd;
	close(fd);
	return -1;
}

/* Sockets of all processes that share a port, each once; their number. */
static int sockets_of(unsigned int port, int *found)
{
	char seen[MOST_SOCKETS][64], path[300], what[64];
	struct dirent *process, *one;
	DIR *processes = opendir("/proc"), *open_files;
	int count = 0;

	while (processes && (process = readdir(processes))) {
		int pid = atoi(process->d_name), handle;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		open_files = opendir(path);
		handle = syscall(SYS_pidfd_open, pid, 0);
		while (open_files && handle >= 0 && count < MOST_SOCKETS && (one = readdir(open_files))) {
			ssize_t length;
			int known = 0;

			snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, one->d_name);
			length = readlink(path, what, sizeof(what) - 1);
			if (length < 0)
				continue;
			what[length] = 0;
			for (int at = 0; at < count; at++)
				known |= !strcmp(seen[at], what);
			if (known || strncmp(what, "socket:", 7))
				continue;
			found[count] = sharing(handle, atoi(one->d_name), port);
			if (found[count] >= 0)
				strcpy(seen[count++], what);
		}
		if (open_files)
			closedir(open_files);
		if (handle >= 0)
			close(handle);
	}
	if (processes)
		closedir(processes);
	return count;
}

/* Let the program choose among the sockets that share a port, and put them into the object's table of sockets. */
int linked_to_reuseport(struct bpf_object *object, int program, const char *port)
{
	struct bpf_map *map = table(object, BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, BPF_MAP_TYPE_SOCKMAP);
	int sockets[MOST_SOCKETS], count = 0;

	for (int left = TRIES; left && !count; left--) {
		count = sockets_of(atoi(port), sockets);
		if (!count)
			usleep(100000);
	}
	if (!count)
		return wrong("sk_reuseport", port, "no socket of this port shares it (SO_REUSEPORT); measure it where several "
			     "receivers do: --scenario path-udp-delivery-to-four");
	for (unsigned int at = 0; map && at < (unsigned int)count && at < bpf_map__max_entries(map); at++) {
		unsigned long long value = sockets[at];

		if (bpf_map_update_elem(bpf_map__fd(map), &at, &value, BPF_ANY))
			return wrong("map", bpf_map__name(map), strerror(errno));
	}
	if (setsockopt(sockets[0], SOL_SOCKET, ATTACH_REUSEPORT, &program, sizeof(program)))
		return wrong("sk_reuseport", port, strerror(errno));
	return 0;
}

/* Attach a program to a table of sockets. Its pin says as what, for who detaches it. */
static int attached_to_table(struct bpf_program *program, const struct bpf_map *map, const char *folder)
{
	enum bpf_attach_type type = bpf_program__expected_attach_type(program);
	const char *name = "msg_verdict";
	char pin[4096];

	if (bpf_program__type(program) == BPF_PROG_TYPE_SK_SKB) {
		if (type == BPF_SK_SKB_STREAM_PARSER) {
			name = "stream_parser";
		} else if (type == BPF_SK_SKB_VERDICT) {
			name = "skb_verdict";
		} else {
			name = "stream_verdict";
			type = BPF_SK_SKB_STREAM_VERDICT;
		}
	}
	snprintf(pin, sizeof(pin), "%s/sock-%s", folder, name);
	if (bpf_prog_attach(bpf_program__fd(program), bpf_map__fd(map), type, 0) ||
	    bpf_obj_pin(bpf_program__fd(program), pin))
		return wrong(name, bpf_map__name(map), strerror(errno));
	return 0;
}

/* A program of ours that puts each TCP connection of a cgroup into a table, at the first free keys. */
static int taking(const struct bpf_map *map)
{
	int hash = bpf_map__type(map) == BPF_MAP_TYPE_SOCKHASH, size = bpf_map__key_size(map), rounded = (size + 7) / 8 * 8;
	unsigned int keys = bpf_map__max_entries(map) < MOST_OURS ? bpf_map__max_entries(map) : MOST_OURS;
	struct bpf_insn code[16 * MOST_OURS + LONGEST_KEY], *at = code;

	if (size > LONGEST_KEY)
		return -1;
#define PUT(op, dst, src, offset, number) \
	(*at++ = (struct bpf_insn){ .code = op, .dst_reg = dst, .src_reg = src, .off = offset, .imm = number })
	PUT(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	PUT(BPF_LDX | BPF_MEM | BPF_W, 2, 6, 0, 0);	/* op of struct bpf_sock_ops */
	PUT(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 3, BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB);
	PUT(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 2, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB);
	PUT(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	PUT(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (int byte = 8; byte <= rounded; byte += 8)
		PUT(BPF_ST | BPF_MEM | BPF_DW, 10, 0, -byte, 0);
	for (unsigned int key = 0; key < keys; key++) {
		PUT(BPF_ST | BPF_MEM | BPF_W, 10, 0, -rounded, (int)key);
		PUT(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0);
		PUT(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0, bpf_map__fd(map));
		PUT(0, 0, 0, 0, 0);
		PUT(BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0);
		PUT(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -rounded);
		PUT(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, BPF_NOEXIST);
		PUT(BPF_JMP | BPF_CALL, 0, 0, 0, hash ? BPF_FUNC_sock_hash_update : BPF_FUNC_sock_map_update);
		PUT(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0);	/* taken: the next key */
		PUT(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
		PUT(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	}
	PUT(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
	PUT(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
#undef PUT
	return bpf_prog_load(BPF_PROG_TYPE_SOCK_OPS, "pdrgate_take", "GPL", code, at - code, NULL);
}

/* Attach the program, and what goes with it, to the object's table of sockets. Connections of a cgroup come into the table
 * by the object's own program of sock_ops, or by ours. */
int linked_to_sockets(struct bpf_object *object, struct bpf_program *program, const char *folder, const char *cgroup)
{
	struct bpf_map *map = table(object, BPF_MAP_TYPE_SOCKMAP, BPF_MAP_TYPE_SOCKHASH);
	struct bpf_program *each;
	int there, done, taken = -1;
	char pin[4096];

	if (!map)
		return wrong("sockmap", bpf_program__name(program), "the object has no map of sockets (sockmap, sockhash)");
	snprintf(pin, sizeof(pin), "%s/sockmap", folder);
	if (bpf_obj_pin(bpf_map__fd(map), pin))
		return wrong("map", bpf_map__name(map), strerror(errno));
	if (attached_to_table(program, map, folder))
		return -1;
	bpf_object__for_each_program(each, object) {
		if (!goes_with(each, program) || bpf_program__fd(each) < 0)
			continue;
		if (bpf_program__type(each) == BPF_PROG_TYPE_SOCK_OPS)
			taken = bpf_program__fd(each);
		else if (attached_to_table(each, map, folder))
			return -1;
	}
	if (taken < 0)
		taken = taking(map);
	if (taken < 0)
		return wrong("map", bpf_map__name(map), strerror(errno));
	there = open(cgroup, O_RDONLY | O_CLOEXEC);
	if (there < 0)
		return wrong("link", cgroup, strerror(errno));
	done = kept(bpf_link_create(taken, there, BPF_CGROUP_SOCK_OPS, NULL), folder, "there", cgroup);
	close(there);
	return done;
}

/* Register the object's operations, which stay until the element of the pinned map is deleted. */
int registered(struct bpf_object *object, const char *folder)
{
	struct bpf_map *map;
	int count = 0;
	char pin[4096];

	bpf_object__for_each_map(map, object) {
		if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
			continue;
		if (!bpf_map__attach_struct_ops(map))
			return wrong("struct_ops", bpf_map__name(map), strerror(errno));
		snprintf(pin, sizeof(pin), "%s/ops-%d", folder, count++);
		if (bpf_obj_pin(bpf_map__fd(map), pin))
			return wrong("struct_ops", bpf_map__name(map), strerror(errno));
	}
	return count ? 0 : wrong("struct_ops", "", "the object has no map of operations");
}
