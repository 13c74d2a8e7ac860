// SPDX-License-Identifier: Apache-2.0
/* A relay's ends that are AF_XDP sockets, in copy mode: a driver without zero copy has no other. Both share memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "relay.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#define FRAMES 4096			/* as many as any ring has room for */
#define MAC 6

struct ring {
	uint32_t *producer, *consumer;
	void *entries;
};

static struct {
	struct source is;
	int fd;
	uint8_t *memory;
	struct ring fill, completed, received;
} in;

static struct {
	struct sink as;
	int fd;
	struct ring fill, completed, sent;
	uint8_t mac[MAC];
} out;

static void offer(struct ring *ring, uint32_t ahead)
{
	__atomic_store_n(ring->producer, *ring->producer + ahead, __ATOMIC_RELEASE);
}

static uint32_t there(const struct ring *ring)
{
	return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - *ring->consumer;
}

static void taken(struct ring *ring, uint32_t count)
{
	__atomic_store_n(ring->consumer, *ring->consumer + count, __ATOMIC_RELEASE);
}

static uint64_t *address_at(struct ring *ring, uint32_t at)
{
	return (uint64_t *)ring->entries + at % FRAMES;
}

static struct xdp_desc *packet_at(struct ring *ring, uint32_t at)
{
	return (struct xdp_desc *)ring->entries + at % FRAMES;
}

static struct ring mapped(int fd, const struct xdp_ring_offset *at, uint64_t page, size_t each)
{
	uint8_t *memory = mmap(NULL, at->desc + FRAMES * each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);

	if (memory == MAP_FAILED)
		die("a ring of an AF_XDP socket");
	return (struct ring){ (void *)(memory + at->producer), (void *)(memory + at->consumer), memory + at->desc };
}

static void ask(int fd, int option, const void *value, socklen_t length)
{
	if (setsockopt(fd, SOL_XDP, option, value, length))
		die("a setting of an AF_XDP socket");
}

static int opened(bool receives, struct ring *fill, struct ring *completed, struct ring *packets)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), size = FRAMES;
	struct xdp_mmap_offsets at;
	socklen_t length = sizeof(at);

	if (fd < 0)
		die("opening an AF_XDP socket");
	if (receives) {
		struct xdp_umem_reg memory = { .addr = (uintptr_t)in.memory, .len = (uint64_t)FRAMES * ROOM, .chunk_size = ROOM };

		ask(fd, XDP_UMEM_REG, &memory, sizeof(memory));
	}
	ask(fd, XDP_UMEM_FILL_RING, &size, sizeof(size));
	ask(fd, XDP_UMEM_COMPLETION_RING, &size, sizeof(size));
	ask(fd, receives ? XDP_RX_RING : XDP_TX_RING, &size, sizeof(size));
	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length))
		die("the rings of an AF_XDP socket");
	*fill = mapped(fd, &at.fr, XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t));
	*completed = mapped(fd, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t));
	*packets = receives ? mapped(fd, &at.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc)) :
			      mapped(fd, &at.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
	return fd;
}

static int bpf(int command, union bpf_attr *what)
{
	return syscall(SYS_bpf, command, what, sizeof(*what));
}

/* All that comes in by the device's first queue is the socket's. */
static void redirect(unsigned int index)
{
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1 }, set, program, link;
	int key = 0, fd = bpf(BPF_MAP_CREATE, &map), loaded;

	if (fd < 0)
		die("a map of AF_XDP sockets");
	const struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = fd }, { 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	memset(&set, 0, sizeof(set));
	set.map_fd = fd;
	set.key = (uintptr_t)&key;
	set.value = (uintptr_t)&in.fd;
	if (bpf(BPF_MAP_UPDATE_ELEM, &set))
		die("an AF_XDP socket in a map");
	memset(&program, 0, sizeof(program));
	program.prog_type = BPF_PROG_TYPE_XDP;
	program.insns = (uintptr_t)code;
	program.insn_cnt = sizeof(code) / sizeof(*code);
	program.license = (uintptr_t)"GPL";
	if ((loaded = bpf(BPF_PROG_LOAD, &program)) < 0)
		die("the program before an AF_XDP socket");
	memset(&link, 0, sizeof(link));
	link.link_create.prog_fd = loaded;
	link.link_create.target_ifindex = index;
	link.link_create.attach_type = BPF_XDP;
	if (bpf(BPF_LINK_CREATE, &link) < 0)	/* it lasts as long as this process */
		die("attaching the program before an AF_XDP socket");
}

static void take(struct source *source, struct batch *batch)
{
	struct pollfd wanted = { .fd = in.fd, .events = POLLIN };
	uint32_t count;

	while (!(count = there(&in.received)))
		poll(&wanted, 1, -1);
	batch->count = count < BATCH ? count : BATCH;
	for (uint32_t i = 0; i < batch->count; i++) {
		struct xdp_desc *packet = packet_at(&in.received, *in.received.consumer + i);

		batch->token[i] = packet->addr;
		batch->at[i] = in.memory + packet->addr;
		batch->length[i] = packet->len;
	}
	taken(&in.received, batch->count);
}

struct source *from_xdp(void)
{
	unsigned int index = device(word("the device"));
	struct rlimit locked = { RLIM_INFINITY, RLIM_INFINITY };
	struct sockaddr_xdp place = { .sxdp_family = AF_XDP, .sxdp_ifindex = index, .sxdp_flags = XDP_COPY };

	setrlimit(RLIMIT_MEMLOCK, &locked);
	in.memory = mmap(NULL, (size_t)FRAMES * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (in.memory == MAP_FAILED)
		die("memory for packets");
	in.fd = opened(true, &in.fill, &in.completed, &in.received);
	for (uint32_t i = 0; i < FRAMES; i++)
		*address_at(&in.fill, i) = (uint64_t)i * ROOM;
	offer(&in.fill, FRAMES);
	if (bind(in.fd, (struct sockaddr *)&place, sizeof(place)))
		die("binding an AF_XDP socket");
	redirect(index);
	in.is.take = take;
	return &in.is;
}

/* What has left is room for what comes in. */
static void reuse(void)
{
	uint32_t count = there(&out.completed);

	for (uint32_t i = 0; i < count; i++)
		*address_at(&in.fill, *in.fill.producer + i) =
			*address_at(&out.completed, *out.completed.consumer + i) / ROOM * ROOM;
	offer(&in.fill, count);
	taken(&out.completed, count);
}

static void send_packets(struct sink *sink, struct batch *batch)
{
	struct timespec pause = { .tv_nsec = 100000 };

	for (unsigned int i = 0; i < batch->count; i++) {
		memcpy(batch->at[i], out.mac, MAC);
		*packet_at(&out.sent, *out.sent.producer + i) =
			(struct xdp_desc){ .addr = batch->token[i], .len = batch->length[i] };
	}
	offer(&out.sent, batch->count);
	while (there(&out.sent)) {
		if (sendto(out.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) {
			if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS)
				die("sending by an AF_XDP socket");
			nanosleep(&pause, NULL);	/* until the driver has sent what it has */
		}
	}
	reuse();
}

struct sink *to_xdp(void)
{
	struct sockaddr_xdp place = { .sxdp_family = AF_XDP, .sxdp_flags = XDP_SHARED_UMEM, .sxdp_shared_umem_fd = in.fd };
	int buffer = FRAMES * ROOM;	/* packets that a driver has sent are the socket's until it looks again */

	place.sxdp_ifindex = device(word("the device"));
	read_mac(word("the MAC address"), out.mac);
	out.fd = opened(false, &out.fill, &out.completed, &out.sent);
	if (setsockopt(out.fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		die("SO_SNDBUFFORCE");
	if (bind(out.fd, (struct sockaddr *)&place, sizeof(place)))
		die("binding an AF_XDP socket that sends");
	out.as.send = send_packets;
	return &out.as;
}
