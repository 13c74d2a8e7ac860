// SPDX-License-Identifier: Apache-2.0
/* The generator's worker: one process in the TG's namespace, held across trials.
 *
 *   pdrgate-traffic NETNS CPU OBJECT PORT [PORT]
 *
 * It reads one command per line on standard input, words of the form key=value, and answers each with one line of
 * JSON: {"ready":...}, a trial's counts, or {"error":"..."}. It ends when its input ends or its parent dies.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wire.h"

#define MAX_FRAME 1514
#define MAX_BATCH 64
#define LEFTOVER (HEADER_MAX - HEADER_V4)	/* most that any frame has behind its header, zeros apart */
#define NS 1000000000ull

struct port {
	const char *name;
	unsigned int ifindex;
	int socket;			/* packet engine only */
};

static struct port ports[2];
static int port_count;
static struct control *control;
static int send_fd, received_fd, cpu_count;
static uint8_t frames[MAX_BATCH][MAX_FRAME];

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

static struct counts received(void)
{
	struct counts per_cpu[cpu_count], sum = { 0 };
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(received_fd, &zero, per_cpu))
		fail("reading the receive counts");
	for (int i = 0; i < cpu_count; i++) {
		sum.own += per_cpu[i].own;
		sum.stray += per_cpu[i].stray;
	}
	return sum;
}

/* Transmit drops of our ports: frames that the SUT's end of the veth did not take (XDP engine). */
static uint64_t port_drops(void)
{
	FILE *file = fopen("/proc/self/net/dev", "r");
	char line[512], name[64];
	unsigned long long drop, sum = 0;

	if (!file)
		fail("/proc/self/net/dev");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", name, &drop) == 2)
			for (int i = 0; i < port_count; i++)
				if (!strcmp(name, ports[i].name))
					sum += drop;
	fclose(file);
	return sum;
}

static int send_live(uint64_t count, uint32_t batch)
{
	static uint8_t first[MAX_FRAME];
	struct xdp_md context = { .data_end = control->plain_len, .ingress_ifindex = ports[0].ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = first, .data_size_in = control->plain_len,
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = (int)count,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = batch);
	int error = bpf_prog_test_run_opts(send_fd, &options);

	/* The only signal is our own, at the deadline. */
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
	struct timespec until = { control->duration / NS, control->duration % NS }, pause = { .tv_nsec = 1000000 };

	nanosleep(&until, NULL);
	while (!control->over)
		nanosleep(&pause, NULL);
	pthread_kill(*(pthread_t *)sender, SIGUSR1);
	return NULL;
}

/* One call per trial: the kernel takes 10 to 30 ms to tear each down. */
static int run_live(void)
{
	pthread_t self = pthread_self(), watcher;
	int error = pthread_create(&watcher, NULL, watch, &self);

	if (error)
		return -error;
	error = send_live(control->count, control->batch);
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

/* The same frame that the BPF program writes, for the packet engine. */
static uint32_t fill(uint8_t *frame, uint64_t i)
{
	uint32_t header = control->v6 ? HEADER_V6 + control->routing : HEADER_V4, length;
	struct direction *d = &control->dir[control->directions > 1 ? i & 1 : 0];
	bool probe = control->probe_every && i % control->probe_every == 0;
	uint16_t word = d->first + (control->directions > 1 ? i >> 1 : i) % control->flows, wire;
	uint64_t sum = (probe ? d->probe_sum : d->csum_sum) + (uint64_t)word;

	length = probe ? control->probe_len : control->plain_len;
	memcpy(frame, probe ? d->probe : d->plain, header);
	/* The buffer may have held a probe or a longer header before: that is not in this frame's checksum. */
	memset(frame + header, 0, length - header < LEFTOVER ? length - header : LEFTOVER);
	if (control->vary_in_ip && !control->v6) {
		wire = htons(fold((uint64_t)d->ip_sum + word + (probe ? control->probe_len - control->plain_len : 0)));
		memcpy(frame + 24, &wire, 2);
	}
	wire = htons(word);
	memcpy(frame + control->vary_offset, &wire, 2);
	if (probe) {
		uint64_t stamp = now(), big = htobe64(stamp);

		memcpy(frame + header, &big, PROBE_PAYLOAD);
		sum += (stamp >> 48) + ((stamp >> 32) & 0xffff) + ((stamp >> 16) & 0xffff) + (stamp & 0xffff);
		control->probes++;
	}
	wire = fold(sum);
	wire = htons(wire ? wire : 0xffff);
	memcpy(frame + header - 2, &wire, 2);
	return length;
}

/* Open loop: a frame the path refuses (ENOBUFS) was offered and is lost; it is never sent again. */
static int send_batch(int socket, struct mmsghdr *messages, int count, uint64_t *refused)
{
	for (int done = 0; done < count;) {
		int sent = sendmmsg(socket, messages + done, count - done, 0);

		if (sent > 0) {
			done += sent;
			if (done < count) {	/* the frame after those failed too, which the call does not tell */
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

static int run_packets(uint64_t *refused)
{
	struct mmsghdr messages[2][MAX_BATCH];
	struct iovec vectors[2][MAX_BATCH];
	uint64_t span = (control->batch * control->period_q16) >> 16, clock, due;
	int error;

	memset(messages, 0, sizeof(messages));
	for (int p = 0; p < 2; p++)
		for (int i = 0; i < MAX_BATCH; i++) {
			messages[p][i].msg_hdr.msg_iov = &vectors[p][i];
			messages[p][i].msg_hdr.msg_iovlen = 1;
		}
	control->start = now();
	while (control->sent < control->count) {
		uint64_t left = control->count - control->sent;
		int batch = left < control->batch ? (int)left : (int)control->batch, filled[2] = { 0 };

		clock = now();
		if (clock > control->start + control->duration + control->duration / 1000)
			break;
		due = control->start + ((control->sent * control->period_q16) >> 16);
		if (due < control->last + span * 4 / 5)	/* see pace() in traffic.bpf.c */
			due = control->last + span * 4 / 5;
		while (clock < due)
			clock = now();
		control->last = clock;
		for (int i = 0; i < batch; i++) {
			uint64_t number = control->sent + i;
			int p = control->directions > 1 ? number & 1 : 0;
			struct iovec *vector = &vectors[p][filled[p]++];

			vector->iov_base = frames[i];
			vector->iov_len = fill(frames[i], number);
		}
		for (int p = 0; p < 2; p++)
			if (filled[p] && (error = send_batch(ports[p].socket, messages[p], filled[p], refused)))
				return error;
		control->sent += batch;
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Wait until all is back, or the receive count has stood still for `quiet` ns, at most `limit` ns. */
static struct counts drain(struct counts before, uint64_t expected, uint64_t quiet, uint64_t limit)
{
	uint64_t begin = now(), changed = begin, clock;
	struct counts last = received(), current;
	struct timespec pause = { .tv_nsec = 500000 };

	while (last.own - before.own < expected && (clock = now()) - begin < limit && clock - changed < quiet) {
		nanosleep(&pause, NULL);
		current = received();
		if (current.own != last.own || current.stray != last.stray)
			changed = now();
		last = current;
	}
	return last;
}

static bool parse_hex(const char *text, uint8_t *out, size_t size)
{
	size_t n = strlen(text) / 2;

	if (n > size)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sscanf(text + 2 * i, "%2hhx", &out[i]) != 1)
			return false;
	return true;
}

static void report(struct counts before, struct counts after, uint64_t refused, uint64_t sending, uint64_t draining)
{
	uint64_t back = control->probes_back < PROBE_SLOTS ? control->probes_back : PROBE_SLOTS;
	uint32_t *l = control->latency;

	printf("{\"sent\":%llu,\"refused\":%llu,\"forwarded\":%llu,\"stray\":%llu,\"sending_ns\":%llu,"
	       "\"drain_ns\":%llu,\"probes\":%llu,\"probes_back\":%llu",
	       (unsigned long long)control->sent, (unsigned long long)refused,
	       (unsigned long long)(after.own - before.own), (unsigned long long)(after.stray - before.stray),
	       (unsigned long long)sending, (unsigned long long)draining, (unsigned long long)control->probes,
	       (unsigned long long)control->probes_back);
	if (back) {
		/* nearest-rank percentiles: the smallest value that at least p of all do not exceed */
		qsort(l, back, sizeof(*l), by_value);
		printf(",\"p50_ns\":%u,\"p90_ns\":%u,\"p99_ns\":%u,\"max_ns\":%u", l[(back * 50 + 99) / 100 - 1],
		       l[(back * 90 + 99) / 100 - 1], l[(back * 99 + 99) / 100 - 1], l[back - 1]);
	}
	printf("}\n");
	fflush(stdout);
}

static void trial(bool live, uint64_t quiet, uint64_t limit)
{
	struct counts before, after;
	uint64_t refused = 0, drops, end, sending;
	int error;

	control->start = control->last = control->sent = control->probes = 0;
	control->over = control->probes_back = 0;
	before = received();
	drops = port_drops();
	error = live ? run_live() : run_packets(&refused);
	end = now();
	if (error) {
		answer("{\"error\":\"sending failed: %s\"}", strerror(-error));
		return;
	}
	/* Sending ends when the last packet's own slot does; a last batch that left late stretches the trial. */
	sending = control->sent ? control->last - control->start +
		  (((control->sent - 1) % control->batch + 1) * control->period_q16 >> 16) : 0;
	after = drain(before, control->sent, quiet, limit);
	if (live)
		refused = port_drops() - drops;
	if (refused > control->sent)
		refused = control->sent;
	report(before, after, refused, sending, now() - end);
}

/* Takes one command's words into `control`. Returns what the command is, or NULL with an answer given. */
static const char *take(char *line, bool *live, uint64_t *quiet, uint64_t *limit)
{
	const char *verb = strtok(line, " \n");

	for (char *word; verb && (word = strtok(NULL, " \n"));) {
		char *value = strchr(word, '=');
		unsigned long long number;
		int d = 0;

		if (!value) {
			answer("{\"error\":\"not key=value: %s\"}", word);
			return NULL;
		}
		*value++ = 0;
		if (*word && word[strlen(word) - 1] >= '0' && word[strlen(word) - 1] <= '1') {
			d = word[strlen(word) - 1] - '0';
			word[strlen(word) - 1] = 0;
		}
		number = strtoull(value, NULL, 0);
		if (!strcmp(word, "engine")) *live = !strcmp(value, "xdp");
		else if (!strcmp(word, "quiet_ns")) *quiet = number;
		else if (!strcmp(word, "limit_ns")) *limit = number;
		else if (!strcmp(word, "count")) control->count = number;
		else if (!strcmp(word, "period_q")) control->period_q16 = number;
		else if (!strcmp(word, "duration_ns")) control->duration = number;
		else if (!strcmp(word, "batch")) control->batch = number < 1 ? 1 : number > MAX_BATCH ? MAX_BATCH : number;
		else if (!strcmp(word, "flows")) control->flows = number ? number : 1;
		else if (!strcmp(word, "directions")) control->directions = number;
		else if (!strcmp(word, "v6")) control->v6 = number;
		else if (!strcmp(word, "vary_offset")) control->vary_offset = number & 255;
		else if (!strcmp(word, "routing")) control->routing = number > ROUTING_MAX ? ROUTING_MAX : number & ~7ull;
		else if (!strcmp(word, "vary_in_ip")) control->vary_in_ip = number;
		else if (!strcmp(word, "probe_every")) control->probe_every = number;
		else if (!strcmp(word, "plain_len")) control->plain_len = number > MAX_FRAME ? MAX_FRAME : number;
		else if (!strcmp(word, "probe_len")) control->probe_len = number > MAX_FRAME ? MAX_FRAME : number;
		else if (!strcmp(word, "cookie")) control->cookie = htons(number);
		else if (!strcmp(word, "tag")) control->tag = htons(number);
		else if (!strcmp(word, "probe_tag")) control->probe_tag = htons(number);
		else if (!strcmp(word, "first")) control->dir[d].first = number;
		else if (!strcmp(word, "csum_sum")) control->dir[d].csum_sum = number;
		else if (!strcmp(word, "probe_sum")) control->dir[d].probe_sum = number;
		else if (!strcmp(word, "ip_sum")) control->dir[d].ip_sum = number;
		else if (!strcmp(word, "plain") && parse_hex(value, control->dir[d].plain, HEADER_MAX)) ;
		else if (!strcmp(word, "probe") && parse_hex(value, control->dir[d].probe, HEADER_MAX)) ;
		else {
			answer("{\"error\":\"unknown or malformed word: %s\"}", word);
			return NULL;
		}
	}
	return verb;
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
	struct bpf_program *counter;
	char path[256], line[4096];
	cpu_set_t cpus;
	int netns, live_error;

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

	object = bpf_object__open_file(argv[3], NULL);
	if (!object || bpf_object__load(object))
		fail("loading the BPF programs");
	cpu_count = libbpf_num_possible_cpus();
	send_fd = bpf_program__fd(bpf_object__find_program_by_name(object, "send"));
	counter = bpf_object__find_program_by_name(object, "count");
	received_fd = bpf_object__find_map_fd_by_name(object, "received");
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_object__find_map_fd_by_name(object, "control"), 0);
	if (control == MAP_FAILED)
		fail("mapping the control map");
	for (int i = 4; i < argc; i++, port_count++) {
		open_port(&ports[port_count], argv[i], counter);
		control->dir[port_count].ifindex = ports[port_count].ifindex;
	}

	/* Live frames came with Linux 5.18: one frame with nothing to send tells whether they work here. */
	control->over = 1;
	control->plain_len = 64;
	live_error = send_live(1, 1);
	answer("{\"ready\":true,\"xdp\":%s,\"why\":\"%s\"}", live_error ? "false" : "true",
	       live_error ? strerror(-live_error) : "");

	while (fgets(line, sizeof(line), stdin)) {
		bool live = false;
		uint64_t quiet = 20000000, limit = NS;
		const char *verb = take(line, &live, &quiet, &limit);

		if (!verb)
			continue;
		if (!strcmp(verb, "trial"))
			trial(live, quiet, limit);
		else
			answer("{\"error\":\"unknown command\"}");
	}
	return 0;
}
