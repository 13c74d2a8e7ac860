// SPDX-License-Identifier: Apache-2.0
/* The generator's worker: one process in the TG's namespace, held across trials.
 *
 *   pdrgate-traffic NETNS CPU OBJECT PORT [PORT]
 *
 * It reads one `struct request` after the other on standard input and answers each with one line of JSON: {"ready":...},
 * a trial's counts, or {"error":"..."}. It ends when its input ends, when it is spoken to in another version's words, or
 * when its parent dies.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wire.h"

#define LEFTOVER (HEADER_MAX - HEADER_V4)	/* most that any frame has behind its header, zeros apart */
#define NS 1000000000ull
#define WAKE 25000ull			/* ns before a packet is due to wake up: what virtual machines take for it */
#define NAP (2 * WAKE)			/* ns between batches that are worth a sleep */

struct port {
	const char *name;
	unsigned int ifindex;
	int socket;			/* packet engine only */
	bool tap;			/* else the frames go straight to the SUT's end of a veth */
};

/* What was counted before the SUT, where it takes packets in: at the queues of TAPs, which QEMU empties, or behind veths
 * in the backlogs of the CPUs. */
struct intake {
	uint64_t handed;		/* frames that QEMU has taken from a TAP */
	uint64_t refused;		/* by a veth: frames for which its ring had no room */
	uint64_t dropped;		/* behind a veth: frames for which a backlog had none */
	uint64_t waiting;		/* behind a veth: frames that no CPU has looked at yet */
};

static struct port ports[2];
static int port_count;
static struct control *control;
static struct counts *per_cpu;
static struct samples *kept;		/* per CPU, too */
static uint64_t *expected;		/* by place in the order of chosen frames */
static uint64_t *seen;			/* by a packet's number, modulo WINDOW */
static int send_fd = -1;
static const char *programs;		/* path of the BPF object */
static bool paced;			/* whether it can send: live frames are to be had */
static uint8_t frames[MAX_BATCH][MAX_FRAME];
static struct intake at_start;
static uint64_t waiting[LOOKS];		/* packets sent that the SUT had not taken in at each look */

/* The table of chosen frames, in maps, and the program that sends it. */
static struct {
	uint32_t chosen, ordered, room;
	uint8_t *frames;
	uint64_t *order;
	size_t frames_size, order_size;	/* bytes that are mapped */
	int frames_fd, order_fd;
	struct bpf_object *object;
	int replay_fd;
} table = { .frames_fd = -1, .order_fd = -1, .replay_fd = -1 };

static void answer(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static void fail(const char *what)
{
	answer("{\"error\":\"%s: %s\"}", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* What all CPUs have counted by now. */
static struct counts received(void)
{
	struct counts sum = { 0 };

	for (uint32_t i = 0; i < control->cpus; i++) {
		const volatile struct counts *cpu = &per_cpu[i];

		sum.own += cpu->own;
		sum.stray += cpu->stray;
		sum.probes += cpu->probes;
		sum.returned += cpu->returned;
		sum.twice += cpu->twice;
		sum.numbered += cpu->numbered;
		sum.overtaken += cpu->overtaken;
		if (cpu->longest > sum.longest)
			sum.longest = cpu->longest;
	}
	return sum;
}

/* Frames that our ports have sent, and those that they dropped then: of a veth what its other end did not take (XDP
 * engine). */
static void port_counts(uint64_t *sent, uint64_t *dropped)
{
	FILE *file = fopen("/proc/self/net/dev", "r");
	char line[512], name[64];
	unsigned long long packets, drop;

	*sent = *dropped = 0;
	if (!file)
		fail("/proc/self/net/dev");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu %*u %llu", name, &packets, &drop) == 3)
			for (int i = 0; i < port_count; i++)
				if (!strcmp(name, ports[i].name)) {
					*sent += packets;
					*dropped += drop;
				}
	fclose(file);
}

static uint64_t port_drops(void)
{
	uint64_t sent, dropped;

	port_counts(&sent, &dropped);
	return dropped;
}

/* The backlogs of all CPUs: /proc/net/softnet_stat has their drops second and, since Linux 5.10, their length 12th. */
static struct intake counted_intake(void)
{
	struct intake found = { 0 };
	FILE *file;
	char line[512];
	unsigned int drop, length;
	int words;

	port_counts(&found.handed, &found.refused);
	if (ports[0].tap)
		return found;
	file = fopen("/proc/net/softnet_stat", "r");
	if (!file)
		fail("/proc/net/softnet_stat");
	while (fgets(line, sizeof(line), file)) {
		words = sscanf(line, "%*x %x %*x %*x %*x %*x %*x %*x %*x %*x %*x %x", &drop, &length);
		found.dropped += words > 0 ? drop : 0;
		found.waiting += words > 1 ? length : 0;
	}
	fclose(file);
	return found;
}

/* Packets sent by now that the SUT has not taken in: they wait before it, or there was no room for them. `in_ring`: what is
 * in a guest's ring waits as well. That is not counted anywhere; but QEMU leaves packets in a TAP's queue only while the
 * ring is full. */
static uint64_t not_taken(bool in_ring)
{
	uint64_t sent = ((const volatile struct control *)control)->sent;
	struct intake now = counted_intake();
	uint64_t taken = now.handed - at_start.handed;
	uint64_t refused = now.refused - at_start.refused, dropped = now.dropped - at_start.dropped;

	if (ports[0].tap) {
		uint64_t outside = sent > taken ? sent - taken : 0;

		if (in_ring && outside >= refused + MAX_BATCH)
			outside += (uint64_t)control->asked.ring * control->asked.directions;
		return outside < sent ? outside : sent;
	}
	/* A socket's frame that a backlog drops at once its veth counts as well (where it has no GRO). */
	if (control->asked.live || dropped < refused)
		dropped = control->asked.live ? dropped + refused : refused;
	return dropped + now.waiting < sent ? dropped + now.waiting : sent;
}

static void sleep_until(uint64_t due)
{
	struct timespec until = { due / NS, due % NS };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Takes the looks at what the SUT has not taken in. No BPF program could: they are at files. */
static void *look_outside(void *unused)
{
	const volatile struct control *c = control;
	int k = 0;

	(void)unused;
	while (!c->start && !c->over)
		sleep_until(now() + WAKE);
	for (; k < LOOKS - 1 && !c->over; k++) {
		sleep_until(c->start + (k + 1) * c->asked.duration / LOOKS);
		waiting[k] = not_taken(true);
	}
	while (!c->over)
		sleep_until(now() + 8 * WAKE);
	sleep_until(slot_end(control));
	for (uint64_t last = not_taken(true); k < LOOKS; k++)
		waiting[k] = last;
	return NULL;
}

static int send_live(uint64_t frames, uint32_t batch)
{
	static uint8_t first[MAX_FRAME];
	struct xdp_md context = { .data_end = control->asked.plain_len, .ingress_ifindex = ports[0].ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = first, .data_size_in = control->asked.plain_len,
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = (int)frames,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = batch);
	int error = bpf_prog_test_run_opts(control->asked.chosen ? table.replay_fd : send_fd, &options);

	/* The only signal is our own, once all is sent. */
	return error == -EINTR && control->over ? 0 : error;
}

static void interrupt(int signal)
{
	(void)signal;	/* its arrival is all: it ends the system call */
}

/* Ends the call once the program has nothing more to send: else the kernel would go through all the frames that remain
 * only to see each dropped. */
static void *watch(void *sender)
{
	struct timespec until = { control->asked.duration / NS, control->asked.duration % NS }, pause = { .tv_nsec = 1000000 };

	nanosleep(&until, NULL);
	while (!control->over)
		nanosleep(&pause, NULL);
	pthread_kill(*(pthread_t *)sender, SIGUSR1);
	return NULL;
}

/* One call per trial: the kernel takes 10 to 30 ms to tear each down. After the last batch comes one frame more, with
 * which the BPF program takes its last look. */
static int run_live(void)
{
	pthread_t self = pthread_self(), watcher;
	uint32_t batch = control->asked.batch;
	int error = pthread_create(&watcher, NULL, watch, &self);

	if (error)
		return -error;
	control->filler = (batch - control->asked.count % batch) % batch;
	error = send_live(control->asked.count + control->filler + 1, batch);
	control->over = 1;
	pthread_join(watcher, NULL);
	return error;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t header_bytes(const struct request *asked)
{
	return (asked->v6 ? HEADER_V6 + asked->routing : HEADER_V4) + asked->vlan;
}

/* The same frame that the BPF program writes, for the packet engine. */
static uint32_t fill(uint8_t *frame, uint64_t i)
{
	uint32_t header = header_bytes(&control->asked), length;
	struct direction *d = &control->asked.dir[control->asked.directions > 1 ? i & 1 : 0];
	bool probe = control->asked.probe_every && i % control->asked.probe_every == 0;
	uint16_t word = d->first + (control->asked.directions > 1 ? i >> 1 : i) % control->asked.flows, wire;
	uint64_t sum = (probe ? d->probe_sum : d->csum_sum) + (uint64_t)word;

	length = probe ? control->asked.probe_len : control->asked.plain_len;
	memcpy(frame, probe ? d->probe : d->plain, header);
	/* The buffer may have held a probe or a longer header before: that is not in this frame's checksum. */
	memset(frame + header, 0, length - header < LEFTOVER ? length - header : LEFTOVER);
	if (control->asked.vary_in_ip && !control->asked.v6) {
		wire = htons(fold((uint64_t)d->ip_sum + word + (probe ? control->asked.probe_len - control->asked.plain_len : 0)));
		memcpy(frame + 24 + control->asked.vlan, &wire, 2);
	}
	wire = htons(word);
	memcpy(frame + control->asked.vary_offset, &wire, 2);
	if (probe) {
		uint64_t stamp = now(), big = htobe64(stamp);

		memcpy(frame + header, &big, PROBE_PAYLOAD);
		sum += (stamp >> 48) + ((stamp >> 32) & 0xffff) + ((stamp >> 16) & 0xffff) + (stamp & 0xffff);
		control->probes++;
	} else {
		uint32_t number = (uint32_t)i, first = control->asked.marked ? control->asked.mark : number;
		uint32_t second = control->asked.marked ? number : 0, words[2] = { htonl(first), htonl(second) };

		memcpy(frame + header, words, control->asked.marked ? MARK_PAYLOAD : NUMBER_PAYLOAD);
		sum += (first >> 16) + (first & 0xffff) + (second >> 16) + (second & 0xffff);
	}
	wire = fold(sum);
	wire = htons(wire ? wire : 0xffff);
	memcpy(frame + header - 2, &wire, 2);
	return length;
}

static const struct chosen *chosen(uint64_t number)
{
	return (void *)(table.frames + table.order[number % table.ordered] * CHOSEN_SIZE(table.room));
}

/* The port that a packet leaves by. */
static int leaves_by(uint64_t number)
{
	if (control->asked.chosen)
		return chosen(number)->direction;
	return control->asked.directions > 1 ? number & 1 : 0;
}

/* The same frame that `replay` writes. */
static uint32_t fill_chosen(uint8_t *frame, uint64_t i)
{
	const struct chosen *one = chosen(i);
	bool probe = control->asked.probe_every && i % control->asked.probe_every == 0;
	uint16_t tag = control->asked.tag + (one->direction ? DIRECTION : 0) + (probe ? PROBE : 0);
	uint64_t number = probe ? now() : i;
	struct tail_mark mark = {
		.number = htobe64(number), .cookie = htonl(control->asked.cookie), .tag = htons(tag),
		.rest = htons(tail_rest(number, control->asked.cookie, tag)),
	};

	memcpy(frame, one->frame, one->length - TAIL_MARK);
	memcpy(frame + one->length - TAIL_MARK, &mark, TAIL_MARK);
	control->probes += probe;
	return one->length;
}

/* Open loop: a frame the path refuses (ENOBUFS) was offered and is lost; it is never sent again. */
static int send_batch(int socket, struct mmsghdr *messages, int count, uint64_t *refused)
{
	for (int done = 0; done < count;) {
		int sent = sendmmsg(socket, messages + done, count - done, 0);

		if (sent > 0) {
			done += sent;
			if (done < count) {	/* the frame after those failed too, which the call does not report */
				(*refused)++;
				done++;
			}
		} else if (errno == ENOBUFS) {
			(*refused)++;
			done++;
		} else if (errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
	}
	return 0;
}

/* Whoever sleeps leaves its CPU to others, and must have it back when the next packet is due: only real-time classes
 * go before all others then. None that sleeps between packets is throttled. */
static void run_as(int policy)
{
	struct sched_param priority = { .sched_priority = policy == SCHED_FIFO };

	sched_setscheduler(0, policy, &priority);	/* where it may not be, it is best effort */
}

static int run_packets(uint64_t *refused)
{
	struct mmsghdr messages[2][MAX_BATCH];
	struct iovec vectors[2][MAX_BATCH];
	uint64_t span = (control->asked.batch * control->asked.period_q16) >> 16, clock, due;
	bool asleep = control->asked.asleep && span >= NAP;
	int error = 0;

	memset(messages, 0, sizeof(messages));
	for (int p = 0; p < 2; p++)
		for (int i = 0; i < MAX_BATCH; i++) {
			messages[p][i].msg_hdr.msg_iov = &vectors[p][i];
			messages[p][i].msg_hdr.msg_iovlen = 1;
		}
	if (asleep)
		run_as(SCHED_FIFO);
	control->start = now();
	while (!error && control->sent < control->asked.count) {
		uint64_t left = control->asked.count - control->sent;
		int batch = left < control->asked.batch ? (int)left : (int)control->asked.batch, filled[2] = { 0 };

		clock = now();
		if (clock > control->start + control->asked.duration + control->asked.duration / 1000)
			break;
		due = control->start + ((control->sent * control->asked.period_q16) >> 16);
		if (due < control->last + span * 4 / 5)	/* see pace() in traffic.bpf.c */
			due = control->last + span * 4 / 5;
		if (asleep && clock + WAKE < due)
			sleep_until(due - WAKE);
		while (clock < due)
			clock = now();
		control->last = clock;
		if (looks_due(control, clock) > control->looks)
			look(control, looks_due(control, clock), received().own);
		for (int i = 0; i < batch; i++) {
			uint64_t number = control->sent + i;
			int p = leaves_by(number);
			struct iovec *vector = &vectors[p][filled[p]++];

			vector->iov_base = frames[i];
			vector->iov_len = control->asked.chosen ? fill_chosen(frames[i], number) : fill(frames[i], number);
		}
		for (int p = 0; p < 2 && !error; p++)
			if (filled[p])
				error = send_batch(ports[p].socket, messages[p], filled[p], refused);
		control->sent += error ? 0 : batch;
	}
	control->over = 1;
	if (asleep)
		run_as(SCHED_OTHER);
	if (error)
		return error;
	do
		control->end = now();
	while (control->end < slot_end(control));
	look(control, LOOKS, received().own);
	return 0;
}

/* Wait until all is back, or no count has changed for `quiet` ns, at most `limit` ns. */
static struct counts drain(struct counts before, uint64_t expected, uint64_t quiet, uint64_t limit)
{
	uint64_t begin = now(), changed = begin, clock, outside = 0, left;
	struct counts last = received(), current;
	struct timespec pause = { .tv_nsec = 500000 };

	while (last.own - before.own < expected && (clock = now()) - begin < limit && clock - changed < quiet) {
		nanosleep(&pause, NULL);
		current = received();
		left = control->asked.taken ? not_taken(false) : 0;
		if (current.own != last.own || current.stray != last.stray || current.returned != last.returned ||
		    current.twice != last.twice || left != outside)
			changed = now();
		last = current;
		outside = left;
	}
	return last;
}

enum { BURST_LIMIT = 1000000000 /* ns in which a burst is sent, whoever else has the CPU */ };

/*
 * Each burst is sent at the word 'g'; any other word is the last. It is answered when it is sent, and when it is back, or
 * nothing more comes: with the packets that are left to send, and with those of it that did not come. Marked packets end
 * at the SUT, so that nobody waits for them here.
 */
static int run_bursts(struct counts before, uint64_t *refused)
{
	uint64_t count = control->asked.count, begin = now();
	int error = 0;

	control->asked.period_q16 = 0;
	control->asked.duration = BURST_LIMIT;
	while (!error && control->sent < count && getchar() == 'g') {
		uint64_t sent = control->sent + control->asked.burst, back, missing = 0;

		control->asked.count = sent < count ? sent : count;
		error = run_packets(refused);
		answer("{}");
		if (!control->asked.marked) {
			sent = control->sent - *refused;
			back = drain(before, sent, control->asked.quiet, control->asked.limit).own - before.own;
			missing = back < sent ? sent - back : 0;
		}
		answer("{\"left\":%llu,\"missing\":%llu}", error ? 0ull : (unsigned long long)(count - control->sent),
		       (unsigned long long)missing);
	}
	control->asked.count = count;
	control->start = begin;
	control->end = now();
	return error;
}

static unsigned long long percentile(uint64_t percent, struct counts back)
{
	return latency_percentile(control->latency, back.probes, back.longest, percent);
}

/* Each as [direction, whether it is a probe, whether it returned, its bytes in hex]. */
static void print_samples(void)
{
	bool first = true;

	for (uint32_t cpu = 0; cpu < control->cpus; cpu++)
		for (uint32_t i = 0; i < kept[cpu].taken && i < SAMPLES; i++) {
			const struct sample *one = &kept[cpu].of[i];

			printf("%s[%d,%d,%d,\"", first ? "" : ",", one->kind & DIRECTION ? 1 : 0, one->kind & PROBE ? 1 : 0,
			       one->returned ? 1 : 0);
			for (uint32_t at = 0; at < one->length && at < SAMPLE_ROOM; at++)
				printf("%02x", one->frame[at]);
			printf("\"]");
			first = false;
		}
}

static void report(struct counts back, uint64_t refused, uint64_t draining, uint64_t outside)
{
	const uint64_t *under_way = control->asked.taken ? waiting : (const uint64_t *)control->under_way;

	printf("{\"sent\":%llu,\"refused\":%llu,\"forwarded\":%llu,\"drained\":%llu,\"returned\":%llu,\"stray\":%llu,"
	       "\"sending_ns\":%llu,\"drain_ns\":%llu,\"probes\":%llu,\"probes_back\":%llu,\"outside\":%llu,"
	       "\"twice\":%llu,\"numbered\":%llu,\"overtaken\":%llu,\"under_way\":[",
	       (unsigned long long)control->sent, (unsigned long long)refused, (unsigned long long)back.own,
	       (unsigned long long)(back.own - control->back), (unsigned long long)back.returned,
	       (unsigned long long)back.stray,
	       (unsigned long long)(control->end - control->start), (unsigned long long)draining,
	       (unsigned long long)control->probes, (unsigned long long)back.probes, (unsigned long long)outside,
	       (unsigned long long)back.twice, (unsigned long long)back.numbered, (unsigned long long)back.overtaken);
	for (int k = 0; k < LOOKS; k++)
		printf(k ? ",%llu" : "%llu", (unsigned long long)under_way[k]);
	printf("],\"frames\":[");
	print_samples();
	printf("]");
	if (back.probes)
		printf(",\"p50_ns\":%llu,\"p90_ns\":%llu,\"p99_ns\":%llu,\"max_ns\":%llu",
		       percentile(50, back), percentile(90, back), percentile(99, back), (unsigned long long)back.longest);
	printf("}\n");
	fflush(stdout);
}

/* Packets until the first one is kept whole, drawn: `every` of them on average. */
static uint64_t until_sample(uint64_t every)
{
	uint32_t drawn = 0;

	if (!every)
		return 0;
	while (getrandom(&drawn, sizeof(drawn), 0) < 0 && errno == EINTR)
		;
	return 1 + drawn % (2 * every - 1);
}

static void trial(const struct request *asked)
{
	struct counts before, after;
	uint64_t refused = 0, drops, end;
	pthread_t looker;
	int error;

	control->asked = *asked;
	control->start = control->last = control->end = control->sent = control->probes = 0;
	control->over = control->looks = control->back = 0;
	memset(control->latency, 0, sizeof(control->latency));
	for (uint32_t i = 0; i < control->cpus; i++) {
		per_cpu[i].longest = 0;
		per_cpu[i].until_sample = until_sample(asked->sample_every);
		kept[i].taken = 0;
	}
	if (asked->chosen)
		memset(expected, 0, sizeof(*expected) * (asked->ordered < STREAMS_MAX ? asked->ordered : STREAMS_MAX));
	memset(seen, 0, sizeof(*seen) * (asked->count < WINDOW ? asked->count : WINDOW));
	before = received();
	control->before = before.own;
	drops = port_drops();
	if (asked->taken) {
		at_start = counted_intake();
		at_start.waiting = 0;
		error = pthread_create(&looker, NULL, look_outside, NULL);
		if (error) {
			answer("{\"error\":\"looking at what the SUT takes in failed: %s\"}", strerror(error));
			return;
		}
	}
	error = asked->live ? run_live() : asked->burst ? run_bursts(before, &refused) : run_packets(&refused);
	end = now();
	if (asked->taken) {
		control->over = 1;
		pthread_join(looker, NULL);
	}
	if (error) {
		answer("{\"error\":\"sending failed: %s\"}", strerror(-error));
		return;
	}
	answer("{}"); /* sending has ended, and what is queued may come as fast as it can */
	/* Only frames that the kernel itself sends are counted as refused later on. */
	after = drain(before, control->sent - (asked->live ? 0 : refused), asked->quiet, asked->limit);
	after.own -= before.own;
	after.stray -= before.stray;
	after.probes -= before.probes;
	after.returned -= before.returned;
	after.twice -= before.twice;
	after.numbered -= before.numbered;
	after.overtaken -= before.overtaken;
	if (asked->live)
		refused = port_drops() - drops;
	if (refused > control->sent)
		refused = control->sent;
	report(after, refused, now() - end, asked->taken ? not_taken(false) : 0);
}

static void *mapped(int fd, size_t size)
{
	void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (found == MAP_FAILED)
		fail("mapping the chosen frames");
	return found;
}

static size_t in_pages(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

static void forget_table(void)
{
	if (table.object)
		bpf_object__close(table.object);
	if (table.frames_fd >= 0) {
		munmap(table.frames, table.frames_size);
		close(table.frames_fd);
	}
	if (table.order_fd >= 0) {
		munmap(table.order, table.order_size);
		close(table.order_fd);
	}
	memset(&table, 0, sizeof(table));
	table.frames_fd = table.order_fd = table.replay_fd = -1;
}

/* Shares the maps that there are already with the program that sends the table. */
static void load_replay(struct bpf_object *first)
{
	static const char *const shared[] = { "control", "received", "samples", "expected", "seen" };
	struct bpf_program *program;
	struct bpf_map *constants;
	uint32_t *room;
	size_t size = 0;

	table.object = bpf_object__open_file(programs, NULL);
	if (!table.object)
		fail("opening the BPF programs");
	bpf_object__for_each_program(program, table.object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), "replay"));
	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (bpf_map__reuse_fd(bpf_object__find_map_by_name(table.object, shared[i]),
				      bpf_object__find_map_fd_by_name(first, shared[i])))
			fail(shared[i]);
	constants = bpf_object__find_map_by_name(table.object, ".rodata");
	room = constants ? (uint32_t *)bpf_map__initial_value(constants, &size) : NULL;
	if (!room || size < sizeof(*room))
		fail("the room of chosen frames");
	*room = table.room;
	if (bpf_map__reuse_fd(bpf_object__find_map_by_name(table.object, "table"), table.frames_fd) ||
	    bpf_map__reuse_fd(bpf_object__find_map_by_name(table.object, "order"), table.order_fd) ||
	    bpf_object__load(table.object))
		fail("loading the program that sends chosen frames");
	table.replay_fd = bpf_program__fd(bpf_object__find_program_by_name(table.object, "replay"));
}

/* Reads the table that follows a request, in place of the one before. Returns false, with an answer given, when it is
 * none: what follows could not be understood. */
static bool take_table(const struct request *asked, struct bpf_object *object)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	size_t each = CHOSEN_SIZE(asked->room), frames_bytes = each * asked->chosen, order_bytes = 8ull * asked->ordered;

	if (!asked->chosen || asked->chosen > CHOSEN_MAX || !asked->ordered || asked->ordered > ORDER_MAX ||
	    asked->room < TAIL_MARK || asked->room > MAX_FRAME || asked->table != frames_bytes + order_bytes) {
		answer("{\"error\":\"the table of chosen frames is out of range\"}");
		return false;
	}
	forget_table();
	table.chosen = asked->chosen;
	table.ordered = asked->ordered;
	table.room = asked->room;
	table.frames_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "table", 4, each, asked->chosen, &options);
	if (table.frames_fd < 0)
		fail("making room for chosen frames");
	table.frames_size = in_pages(frames_bytes);
	table.frames = mapped(table.frames_fd, table.frames_size);
	table.order_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "order", 4, 8, asked->ordered, &options);
	if (table.order_fd < 0)
		fail("making room for the order of chosen frames");
	table.order_size = in_pages(order_bytes);
	table.order = mapped(table.order_fd, table.order_size);
	if (fread(table.frames, frames_bytes, 1, stdin) != 1 || fread(table.order, order_bytes, 1, stdin) != 1)
		return false;
	for (uint64_t i = 0; i < asked->chosen; i++) {
		const struct chosen *one = (void *)(table.frames + i * each);

		if (one->length < TAIL_MARK || one->length > asked->room || one->direction >= (uint32_t)port_count) {
			answer("{\"error\":\"a chosen frame is out of range\"}");
			return false;
		}
	}
	for (uint64_t i = 0; i < asked->ordered; i++)
		if (table.order[i] >= asked->chosen) {
			answer("{\"error\":\"the order of chosen frames is out of range\"}");
			return false;
		}
	if (paced)
		load_replay(object);
	return true;
}

/* Reads a request. Returns false at the end of the input, and, with an answer given, when nothing that follows could be
 * understood. */
static bool take(struct request *asked, struct bpf_object *object)
{
	size_t head = offsetof(struct request, count);

	if (fread(asked, head, 1, stdin) != 1)
		return false;
	if (asked->version != WIRE_VERSION || asked->size != sizeof(*asked)) {
		answer("{\"error\":\"it was asked in version %u, %u bytes, and understands version %u, %zu bytes; "
		       "install pdrgate again\"}", asked->version, asked->size, WIRE_VERSION, sizeof(*asked));
		return false;
	}
	return fread((char *)asked + head, sizeof(*asked) - head, 1, stdin) == 1 &&
	       (!asked->table || take_table(asked, object));
}

/* What would lead out of a buffer or into a division by nothing; NULL where all is well. */
static const char *out_of_range(const struct request *asked)
{
	uint32_t header = asked->chosen ? TAIL_MARK : header_bytes(asked);

	if (asked->chosen && (asked->chosen != table.chosen || asked->ordered != table.ordered || asked->room != table.room))
		return "table";
	if (!asked->count || asked->count > INT32_MAX)
		return "count";
	if (!asked->duration)
		return "duration";
	if (!asked->batch || asked->batch > MAX_BATCH)
		return "batch";
	if (!asked->flows)
		return "flows";
	if (asked->directions < 1 || asked->directions > (uint32_t)port_count)
		return "directions";
	if (asked->routing > ROUTING_MAX || asked->routing % 8)
		return "routing";
	if (asked->vlan && asked->vlan != VLAN)
		return "vlan";
	if (asked->plain_len < header + (asked->chosen ? 0 : NUMBER_PAYLOAD) || asked->plain_len > MAX_FRAME)
		return "plain_len";
	if (asked->probe_every && (asked->probe_len < header + PROBE_PAYLOAD || asked->probe_len > MAX_FRAME))
		return "probe_len";
	if (asked->marked && (asked->probe_every || asked->plain_len < header + MARK_PAYLOAD))
		return "marked";
	if (asked->vary_offset > header - 2)
		return "vary_offset";
	return NULL;
}

static bool is_tap(const struct port *port)
{
	struct ethtool_drvinfo about = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq asked = { .ifr_data = (void *)&about };

	strncpy(asked.ifr_name, port->name, IFNAMSIZ - 1);
	return !ioctl(port->socket, SIOCETHTOOL, &asked) && !strcmp(about.driver, "tun");
}

static void open_port(struct port *port, const char *name, struct bpf_program *program)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET };
	int one = 1, buffer = 64 << 20;

	port->name = name;
	port->ifindex = if_nametoindex(name);
	if (!port->ifindex)
		fail(name);
	if (!bpf_program__attach_xdp(program, port->ifindex))	/* ends with this process */
		fail("attaching the receive counter");
	port->socket = socket(AF_PACKET, SOCK_RAW, 0);	/* protocol 0: sends only */
	port->tap = is_tap(port);
	address.sll_ifindex = port->ifindex;
	if (port->socket < 0 || bind(port->socket, (struct sockaddr *)&address, sizeof(address)))
		fail(name);
	/* With the default send buffer the socket blocks before the SUT's backlog overflows, and hides all loss. */
	if (setsockopt(port->socket, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) ||
	    setsockopt(port->socket, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("setting up the sending socket");
}

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* Run before all ordinary processes of this CPU, best effort. Real-time classes would be throttled: a hole of 50 ms
 * each second. With autogroups a nice value counts only within the session, whose own weight is set apart. */
static void go_first(void)
{
	int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	setpriority(PRIO_PROCESS, 0, -20);
	if (group >= 0) {
		if (write(group, "-20", 3) != 3)
			fprintf(stderr, "autogroup: %s\n", strerror(errno));
		close(group);
	}
}

int main(int argc, char **argv)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct sigaction action = { .sa_handler = interrupt };	/* no SA_RESTART */
	struct bpf_object *object;
	struct bpf_program *counter, *sender, *replayer;
	struct bpf_map *counters, *samples;
	struct request asked;
	size_t page = sysconf(_SC_PAGESIZE), counters_size, samples_size;
	char path[256];
	cpu_set_t cpus;
	int netns, cpu_count, live_error;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: pdrgate-traffic NETNS CPU OBJECT PORT [PORT]\n");
		return 64;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);	/* Ctrl-C is the parent's to handle: it ends us by closing our input */
	sigaction(SIGUSR1, &action, NULL);
	if (strcmp(argv[1], "-")) {	/* "-": the ports are in this process's own namespace */
		snprintf(path, sizeof(path), "/run/netns/%s", argv[1]);
		netns = open(path, O_RDONLY | O_CLOEXEC);
		if (netns < 0 || setns(netns, CLONE_NEWNET))
			fail(path);
	}
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[2]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("pinning the generator to its CPU");
	go_first();
	setrlimit(RLIMIT_MEMLOCK, &unlimited);	/* kernels before 5.11 charge maps to it */
	libbpf_set_print(print_warnings);

	cpu_count = libbpf_num_possible_cpus();
	counters_size = (cpu_count * sizeof(struct counts) + page - 1) / page * page;
	samples_size = (cpu_count * sizeof(struct samples) + page - 1) / page * page;
	programs = argv[3];
	object = bpf_object__open_file(programs, NULL);
	if (!object)
		fail("opening the BPF programs");
	counters = bpf_object__find_map_by_name(object, "received");
	samples = bpf_object__find_map_by_name(object, "samples");
	sender = bpf_object__find_program_by_name(object, "send");
	replayer = bpf_object__find_program_by_name(object, "replay");	/* when there is something to replay */
	/* It came with Linux 5.17. Without it there is only the other engine. */
	paced = libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_loop, NULL) == 1;
	if (bpf_map__set_max_entries(counters, cpu_count) || bpf_map__set_max_entries(samples, cpu_count) ||
	    bpf_program__set_autoload(sender, paced) || bpf_program__set_autoload(replayer, false) ||
	    bpf_object__load(object))
		fail("loading the BPF programs");
	if (paced)
		send_fd = bpf_program__fd(sender);
	counter = bpf_object__find_program_by_name(object, "count");
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_object__find_map_fd_by_name(object, "control"), 0);
	per_cpu = mmap(NULL, counters_size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(counters), 0);
	kept = mmap(NULL, samples_size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(samples), 0);
	expected = mmap(NULL, sizeof(*expected) * STREAMS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_object__find_map_fd_by_name(object, "expected"), 0);
	seen = mmap(NULL, sizeof(*seen) * WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED,
		    bpf_object__find_map_fd_by_name(object, "seen"), 0);
	if (control == MAP_FAILED || per_cpu == MAP_FAILED || kept == MAP_FAILED || expected == MAP_FAILED ||
	    seen == MAP_FAILED)
		fail("mapping what is shared with the BPF programs");
	control->cpus = cpu_count;
	for (int i = 4; i < argc; i++, port_count++) {
		open_port(&ports[port_count], argv[i], counter);
		control->ifindex[port_count] = ports[port_count].ifindex;
	}

	/* Live frames came with Linux 5.18: one frame with nothing to send shows whether they work here. */
	control->over = 1;
	control->asked.plain_len = 64;
	live_error = paced ? send_live(1, 1) : -EOPNOTSUPP;
	answer("{\"ready\":true,\"xdp\":%s,\"why\":\"%s\"}", live_error ? "false" : "true",
	       live_error ? strerror(-live_error) : "");

	while (take(&asked, object)) {
		const char *wrong = out_of_range(&asked);

		if (wrong)
			answer("{\"error\":\"asked for a trial whose %s is out of range\"}", wrong);
		else
			trial(&asked);
	}
	return 0;
}
