// SPDX-License-Identifier: Apache-2.0
/* A program at the SUT that takes packets in by one kind of socket and sends what is in them on by another.
 *
 *   pdrgate-relay from SOURCE to SINK	begins, and returns once packets are taken in
 *   pdrgate-relay end			ends the one that was begun in this folder
 *
 *   SOURCE: udp ADDRESS PORT [sockets COUNT] [peers ADDRESS PORT COUNT] [buffer BYTES]
 *           packet DEVICE | ring DEVICE | xdp DEVICE | tap NAME ADDRESS
 *   SINK:   udp ADDRESS PORT [segments] | packet DEVICE MAC | xdp DEVICE MAC | tap ADDRESS [segments]
 *
 * A TAP has been made with vnet_hdr, and set up, before.
 *
 * So what a program of the SUT does with a packet is counted as forwarding is: it comes in by one port, and goes out by
 * the other, with the same last bytes. `sockets` are as many as COUNT, on ports from PORT on; `peers` makes each of
 * them COUNT, connected to ports of a peer from PORT on. Each holds 4 MiB, or what `buffer` says. `segments` makes one
 * large packet of a batch, and leaves it to the kernel to cut it: a datagram by UDP_SEGMENT, or TCP segments behind a
 * virtio_net_hdr, written to a TAP.
 *
 * The process group is that of the shell that began it, with which it ends. It is linked statically: it has to run
 * wherever a kernel does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "relay.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define USAGE 64
#define PID_FILE "relay.pid"
#define BUFFER (4 << 20)
#define MOST_SOCKETS 20000
#define BLOCK 4096			/* bytes of the ring: some 27 small packets */
#define BLOCKS 256
/*
 * ms after which a block is given that is not full. The kernel's timer goes off as often whether packets come or not, and
 * each time costs a quarter of what a packet does. A generator takes what does not come for 50 ms for lost, and the
 * packets of the last block must not be.
 */
#define RETIRED 32
#define PATIENCE 5000			/* ms for a relay to end */
#define HEADERS (sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define MSS_PORT 5000

static uint8_t room[BATCH][ROOM];
static char **words;

void die(const char *what)
{
	fprintf(stderr, "pdrgate-relay: error: %s: %s\n", what, strerror(errno));
	exit(1);
}

const char *word(const char *what)
{
	if (!*words) {
		fprintf(stderr, "pdrgate-relay: error: %s is lacking\n", what);
		exit(USAGE);
	}
	return *words++;
}

int says(const char *wanted)
{
	if (!*words || strcmp(*words, wanted))
		return 0;
	words++;
	return 1;
}

static unsigned int number(const char *what)
{
	return strtoul(word(what), NULL, 10);
}

static struct sockaddr_in address(const char *text, unsigned int port)
{
	struct sockaddr_in found = { .sin_family = AF_INET, .sin_port = htons(port) };

	errno = EINVAL;
	if (inet_pton(AF_INET, text, &found.sin_addr) != 1)
		die(text);
	return found;
}

unsigned int device(const char *name)
{
	unsigned int index = if_nametoindex(name);

	if (!index)
		die(name);
	return index;
}

void read_mac(const char *text, uint8_t *mac)
{
	errno = EINVAL;
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
		die(text);
}

static int udp_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("opening a socket");
	return fd;
}

/* --- From sockets of UDP --- */

static struct {
	struct source is;
	int fd, epoll;
	struct epoll_event ready[BATCH];
} udp_in;

static void take_of_one(struct source *source, struct batch *batch)
{
	static struct mmsghdr messages[BATCH];
	static struct iovec vectors[BATCH];
	int count;

	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ room[i], ROOM };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &vectors[i], .msg_iovlen = 1 };
	}
	count = recvmmsg(udp_in.fd, messages, BATCH, MSG_WAITFORONE, NULL);
	batch->count = count < 0 ? 0 : count;
	for (int i = 0; i < count; i++) {
		batch->at[i] = room[i];
		batch->length[i] = messages[i].msg_len;
	}
}

static void take_of_many(struct source *source, struct batch *batch)
{
	int count = epoll_wait(udp_in.epoll, udp_in.ready, BATCH, -1);
	ssize_t length;

	batch->count = 0;
	for (int i = 0; i < count; i++) {
		length = recv(udp_in.ready[i].data.fd, room[batch->count], ROOM, MSG_DONTWAIT);
		if (length < 0)
			continue;
		batch->at[batch->count] = room[batch->count];
		batch->length[batch->count++] = length;
	}
}

static int bound(struct sockaddr_in own, bool shared, int buffer)
{
	int fd = udp_socket(), one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		die("SO_RCVBUFFORCE");
	if (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		die("SO_REUSEADDR");
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		die("binding a port");
	return fd;
}

static void watch(int fd)
{
	struct epoll_event wanted = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(udp_in.epoll, EPOLL_CTL_ADD, fd, &wanted))
		die("watching a socket");
}

static struct source *from_udp(void)
{
	const char *own = word("the address"), *peer = NULL;
	unsigned int port = number("the port"), sockets = 1, first = 0, peers = 1, buffer = BUFFER;
	struct rlimit files;

	while (1) {
		if (says("sockets"))
			sockets = number("the number of sockets");
		else if (says("peers")) {
			peer = word("the address of peers");
			first = number("the first port of peers");
			peers = number("the number of peers");
		} else if (says("buffer"))
			buffer = number("bytes of a buffer");
		else
			break;
	}
	udp_in.is.take = take_of_one;
	if (sockets * peers == 1) {
		udp_in.fd = bound(address(own, port), false, buffer);
		return &udp_in.is;
	}
	if (sockets * peers > MOST_SOCKETS) {
		errno = ERANGE;
		die("so many sockets");
	}
	files.rlim_cur = files.rlim_max = MOST_SOCKETS + 64;
	if (setrlimit(RLIMIT_NOFILE, &files) || (udp_in.epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
		die("so many sockets");
	udp_in.is.take = take_of_many;
	for (unsigned int i = 0; i < sockets; i++)
		for (unsigned int k = 0; k < peers; k++) {
			int fd = bound(address(own, port + i), peer, buffer);
			struct sockaddr_in to;

			if (peer) {
				to = address(peer, first + k);
				if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
					die("connecting a socket");
			}
			watch(fd);
		}
	return &udp_in.is;
}

/* --- From a packet socket, by a call for each packet, or by a ring of blocks --- */

static struct {
	struct source is;
	int fd;
	uint8_t *ring;
	unsigned int block, left;	/* the one that is read, and its packets that are not taken yet */
	struct tpacket3_hdr *next;
} packets_in;

static int packet_socket(unsigned int index, unsigned int protocol)
{
	struct sockaddr_ll place = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = index };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), buffer = BUFFER;

	if (fd < 0)
		die("opening a packet socket");
	if (setsockopt(fd, SOL_SOCKET, protocol ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		die("the buffer of a packet socket");
	if (index && bind(fd, (struct sockaddr *)&place, sizeof(place)))
		die("binding a packet socket");
	return fd;
}

static void take_packets(struct source *source, struct batch *batch)
{
	ssize_t length = recv(packets_in.fd, room[0], ROOM, 0);

	batch->count = length < 0 ? 0 : 1;
	batch->at[0] = room[0];
	batch->length[0] = length;
}

static struct tpacket_block_desc *block_of_ring(void)
{
	return (struct tpacket_block_desc *)(packets_in.ring + (size_t)packets_in.block * BLOCK);
}

static void take_of_ring(struct source *source, struct batch *batch)
{
	struct pollfd wanted = { .fd = packets_in.fd, .events = POLLIN };
	struct tpacket_block_desc *block = block_of_ring();

	batch->count = 0;
	if (!packets_in.left) {
		while (!(*(volatile uint32_t *)&block->hdr.bh1.block_status & TP_STATUS_USER))
			poll(&wanted, 1, -1);
		packets_in.left = block->hdr.bh1.num_pkts;
		packets_in.next = (void *)((uint8_t *)block + block->hdr.bh1.offset_to_first_pkt);
	}
	while (packets_in.left && batch->count < BATCH) {
		batch->at[batch->count] = (uint8_t *)packets_in.next + packets_in.next->tp_mac;
		batch->length[batch->count++] = packets_in.next->tp_snaplen;
		packets_in.next = (void *)((uint8_t *)packets_in.next + packets_in.next->tp_next_offset);
		packets_in.left--;
	}
}

static void done_with_ring(struct source *source, struct batch *batch)
{
	if (packets_in.left)
		return;
	__atomic_store_n(&block_of_ring()->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	packets_in.block = (packets_in.block + 1) % BLOCKS;
}

static struct source *from_packets(bool by_ring)
{
	struct tpacket_req3 asked = {
		.tp_block_size = BLOCK, .tp_block_nr = BLOCKS, .tp_frame_size = ROOM, .tp_frame_nr = BLOCK / ROOM * BLOCKS,
		.tp_retire_blk_tov = RETIRED,
	};
	unsigned int index = device(word("the device"));
	int version = TPACKET_V3;

	packets_in.is = (struct source){ .take = take_packets, .before = HEADERS };
	if (!by_ring) {
		packets_in.fd = packet_socket(index, ETH_P_IP);
		return &packets_in.is;
	}
	packets_in.is.take = take_of_ring;
	packets_in.is.done = done_with_ring;
	packets_in.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (packets_in.fd < 0 || setsockopt(packets_in.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(packets_in.fd, SOL_PACKET, PACKET_RX_RING, &asked, sizeof(asked)))
		die("a ring of packets");
	packets_in.ring = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, packets_in.fd, 0);
	if (packets_in.ring == MAP_FAILED)
		die("the memory of a ring");
	struct sockaddr_ll place = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = index };
	if (bind(packets_in.fd, (struct sockaddr *)&place, sizeof(place)))
		die("binding a ring");
	return &packets_in.is;
}

/* --- From a TAP, and to it --- */

static struct {
	struct source is;
	struct sink as;
	int fd;
	struct sockaddr_in own, to;
	uint8_t mac[ETH_ALEN];		/* of the kernel's end */
	bool segments;
} tap;

static void take_of_tap(struct source *source, struct batch *batch)
{
	const size_t head = sizeof(struct virtio_net_hdr);
	struct pollfd wanted = { .fd = tap.fd, .events = POLLIN };
	ssize_t length;

	for (batch->count = 0; batch->count < BATCH;) {
		length = read(tap.fd, room[batch->count], ROOM);
		if (length < 0 && errno == EAGAIN && !batch->count) {
			poll(&wanted, 1, -1);
			continue;
		}
		if (length < 0)
			break;
		/* What else is said on a network is none of a relay's. */
		if (length < (ssize_t)(head + HEADERS) || room[batch->count][head + 12] != 8 || room[batch->count][head + 13])
			continue;
		batch->at[batch->count] = room[batch->count] + head;
		batch->length[batch->count++] = length - head;
	}
}

static struct source *from_tap(void)
{
	struct ifreq asked = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	const char *name = word("the TAP's name");

	tap.is = (struct source){ .take = take_of_tap, .before = HEADERS };
	tap.own = address(word("the address"), 0);
	snprintf(asked.ifr_name, sizeof(asked.ifr_name), "%s", name);
	tap.fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tap.fd < 0 || ioctl(tap.fd, TUNSETIFF, &asked))
		die("a TAP");
	if (ioctl(tap.fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4))
		die("offloads of a TAP");
	if (ioctl(tap.fd, SIOCGIFHWADDR, &asked))
		die("the MAC address of a TAP");
	memcpy(tap.mac, asked.ifr_hwaddr.sa_data, ETH_ALEN);
	return &tap.is;
}

/* The ones' complement of words, for headers of a whole number of them. */
static uint32_t sum_of(const void *data, size_t bytes, uint32_t sum)
{
	const uint16_t *at = data;

	for (; bytes > 1; bytes -= 2)
		sum += *at++;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void write_tcp(uint8_t *packet, unsigned int payload, unsigned int each)
{
	static uint32_t sequence;
	struct virtio_net_hdr *head = (void *)packet;
	struct ether_header *link = (void *)(head + 1);
	struct iphdr *ip = (void *)(link + 1);
	struct tcphdr *tcp = (void *)(ip + 1);
	unsigned int all = sizeof(*ip) + sizeof(*tcp) + payload;
	struct { uint32_t from, to; uint16_t protocol, length; } pseudo;

	*head = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = sizeof(*link) + sizeof(*ip),
		.csum_offset = offsetof(struct tcphdr, check), .hdr_len = sizeof(*link) + sizeof(*ip) + sizeof(*tcp),
	};
	if (payload > each) {
		head->gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
		head->gso_size = each;
	}
	memcpy(link->ether_dhost, tap.mac, ETH_ALEN);
	memcpy(link->ether_shost, "\2\0\0\0\x9\2", ETH_ALEN);
	link->ether_type = htons(ETHERTYPE_IP);
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .tot_len = htons(all), .frag_off = htons(IP_DF), .ttl = 64, .protocol = IPPROTO_TCP,
		.saddr = tap.own.sin_addr.s_addr, .daddr = tap.to.sin_addr.s_addr,
	};
	ip->check = ~sum_of(ip, sizeof(*ip), 0);
	*tcp = (struct tcphdr){
		.source = htons(MSS_PORT), .dest = htons(MSS_PORT), .seq = htonl(sequence), .doff = 5, .ack = 1, .psh = 1,
		.window = 0xffff,
	};
	sequence += payload;
	pseudo.from = ip->saddr;
	pseudo.to = ip->daddr;
	pseudo.protocol = htons(IPPROTO_TCP);
	pseudo.length = htons(sizeof(*tcp) + payload);
	tcp->check = sum_of(&pseudo, sizeof(pseudo), 0);
	if (write(tap.fd, packet, sizeof(*head) + sizeof(*link) + all) < 0 && errno != EAGAIN)
		die(payload > each ? "writing a large segment to a TAP" : "writing to a TAP");
}

static void send_to_tap(struct sink *sink, struct batch *batch)
{
	static uint8_t packet[1 << 16];
	const size_t head = sizeof(struct virtio_net_hdr) + sizeof(struct ether_header) + sizeof(struct iphdr) +
			    sizeof(struct tcphdr);
	unsigned int payload = 0;

	for (unsigned int i = 0; i < batch->count; i++) {
		memcpy(packet + head + payload, batch->at[i], batch->length[i]);
		payload += batch->length[i];
		if (tap.segments && i + 1 < batch->count && batch->length[i + 1] == batch->length[0])
			continue;
		write_tcp(packet, payload, batch->length[0]);
		payload = 0;
	}
}

static struct sink *to_tap(void)
{
	static uint8_t first[BATCH];
	struct batch two = { .count = 2, .at = { first, first }, .length = { BATCH, BATCH } };

	tap.as.send = send_to_tap;
	tap.to = address(word("the address"), 0);
	tap.segments = says("segments");
	send_to_tap(&tap.as, &two);	/* a kernel that refuses says so before anything is counted */
	return &tap.as;
}

/* --- To a socket of UDP --- */

static struct {
	struct sink as;
	int fd;
	bool segments;
} udp_out;

static void send_one_by_one(struct sink *sink, struct batch *batch)
{
	for (unsigned int i = 0; i < batch->count; i++)
		if (send(udp_out.fd, batch->at[i], batch->length[i], 0) < 0 && errno != ENOBUFS)
			die("sending a datagram");
}

static void send_segments(struct sink *sink, struct batch *batch)
{
	union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(uint16_t))]; } control = {
		.head = { .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT },
	};
	struct iovec vectors[BATCH];
	struct msghdr message = { .msg_iov = vectors, .msg_control = &control, .msg_controllen = sizeof(control.room) };

	for (unsigned int i = 0; i < batch->count; i++) {
		vectors[message.msg_iovlen++] = (struct iovec){ batch->at[i], batch->length[i] };
		if (i + 1 < batch->count && batch->length[i + 1] == batch->length[0])
			continue;
		*(uint16_t *)CMSG_DATA(&control.head) = vectors[0].iov_len;
		if (sendmsg(udp_out.fd, &message, 0) < 0 && errno != ENOBUFS)
			die("sending segments");
		message.msg_iovlen = 0;
	}
}

static struct sink *to_udp(void)
{
	const char *peer = word("the address");
	struct sockaddr_in to = address(peer, number("the port"));
	int buffer = BUFFER;

	udp_out.fd = udp_socket();
	if (setsockopt(udp_out.fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		die("SO_SNDBUFFORCE");
	if (connect(udp_out.fd, (struct sockaddr *)&to, sizeof(to)))
		die("connecting a socket");
	udp_out.as.send = says("segments") ? send_segments : send_one_by_one;
	return &udp_out.as;
}

/* --- To a packet socket --- */

static struct {
	struct sink as;
	int fd;
	uint8_t mac[ETH_ALEN];
} packets_out;

static void send_packets(struct sink *sink, struct batch *batch)
{
	for (unsigned int i = 0; i < batch->count; i++) {
		memcpy(batch->at[i], packets_out.mac, ETH_ALEN);
		if (send(packets_out.fd, batch->at[i], batch->length[i], 0) < 0 && errno != ENOBUFS)
			die("sending a packet");
	}
}

static struct sink *to_packets(void)
{
	packets_out.as.send = send_packets;
	packets_out.fd = packet_socket(device(word("the device")), 0);
	read_mac(word("the MAC address"), packets_out.mac);
	return &packets_out.as;
}

/* --- The program --- */

static int end(void)
{
	FILE *file = fopen(PID_FILE, "r");
	struct pollfd gone = { .events = POLLIN };
	int pid = 0;

	if (!file || fscanf(file, "%d", &pid) != 1)
		die(PID_FILE);
	fclose(file);
	unlink(PID_FILE);
	gone.fd = syscall(SYS_pidfd_open, pid, 0);
	if (kill(pid, SIGKILL))
		die("it had ended before");
	if (gone.fd >= 0)
		poll(&gone, 1, PATIENCE);
	return 0;
}

static void leave(int ready)
{
	FILE *file = fopen(PID_FILE, "w");
	int nowhere = open("/dev/null", O_RDWR);

	if (!file)
		die(PID_FILE);
	fprintf(file, "%d\n", getpid());
	fclose(file);
	for (int fd = 0; fd < 3; fd++)
		dup2(nowhere, fd);
	if (write(ready, "", 1) != 1)
		exit(1);
	close(ready);
}

static void relay(struct source *source, struct sink *sink, bool whole)
{
	struct batch batch;

	while (1) {
		source->take(source, &batch);
		for (unsigned int i = 0; i < batch.count && !whole; i++) {
			batch.at[i] += source->before;
			batch.length[i] -= source->before;
		}
		sink->send(sink, &batch);
		if (source->done)
			source->done(source, &batch);
	}
}

static void begin(int ready)
{
	struct source *source;
	struct sink *sink;
	bool whole = false;

	if (says("udp"))
		source = from_udp();
	else if (says("tap"))
		source = from_tap();
	else if (says("xdp"))
		source = from_xdp();
	else
		source = from_packets(!strcmp(word("what packets come from"), "ring"));
	if (!says("to"))
		word("`to`");
	if (says("udp"))
		sink = to_udp();
	else if (says("tap"))
		sink = to_tap();
	else {
		whole = true;
		sink = strcmp(word("what packets go to"), "xdp") ? to_packets() : to_xdp();
	}
	leave(ready);
	relay(source, sink, whole);
}

int main(int count, char **arguments)
{
	int ready[2];
	char byte;

	words = arguments + 1;
	if (says("end"))
		return end();
	if (!says("from"))
		return USAGE;
	if (pipe(ready))
		die("a pipe");
	switch (fork()) {
	case -1:
		die("beginning");
	case 0:
		close(ready[0]);
		begin(ready[1]);
	}
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1 ? 0 : 1;
}
