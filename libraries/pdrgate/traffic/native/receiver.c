// SPDX-License-Identifier: Apache-2.0
/* The end host's receivers: processes that read UDP sockets and count the packets of a trial by their numbers.
 *
 *   pdrgate-receiver FOLDER FAMILY PORT RECEIVERS BUFFER CALL BUSY BACKGROUND CPUS
 *
 * FAMILY is 4 or 6, BUFFER the bytes that are asked for each socket's buffer, CALL recvmsg or recvmmsg, BUSY the
 * microseconds of busy polling (0: none), BACKGROUND the number of further processes that want the CPU while a trial
 * lasts, CPUS a list such as 1,3 that all of them get in turn, or -. Several receivers share the port by SO_REUSEPORT.
 * FOLDER holds two pipes that have been made before: `control`, from which one line is read after the other, and
 * `answer`, into which each is answered by a line of JSON. The first answer, {"ready":[...]}, comes unasked and has the
 * receivers' process ids.
 *
 *   begin MARK COUNT DURATION    a trial of COUNT packets in DURATION ns
 *   end SENDING QUIET LIMIT      sending took SENDING ns: wait until nothing came for QUIET ns, at most LIMIT ns, and print
 *
 * A packet is one of the trial's when its payload begins with MARK; the number behind that says which, and when it was
 * to be sent. So the receivers know when sending began without a clock in common with the generator: when the packet
 * that was delayed least came, less what was to pass before it was sent. They count into slots of time, and look back
 * from there at what had been delivered when. The clock is read once for some packets, never for each; now and then the
 * call after such a look is timed too, and so the gaps between packets, or vectors of them, are known by sample.
 *
 * Receivers have the priority that ksoftirqd has on their CPU: so the kernel shares the CPU between taking packets
 * in and handing them over as it does for any program where nobody has touched either.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asked.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

#define MOST_RECEIVERS 8
#define MOST_BACKGROUND 64
#define MOST_PACKETS (1u << 31)
#define MOST_FLOWS 65536		/* by their source port */
#define SLOTS 4096
#define SLOTS_OF_SENDING 2048		/* as long as the trial; the rest is for what comes late */
#define LOOKS 16			/* as the generator's */
#define VECTOR 64			/* packets of one recvmmsg */
#define MAX_DATAGRAM 2048
#define SPAN 250000			/* ns between two looks at the clock, as far as packets come so often */
#define GAPS 16				/* classes of gaps between calls that bring packets: below 1, 2, 4 ... us, and longer */
#define LOOKS_A_GAP 4			/* looks at the clock for one gap, where it takes a look of its own */
#define NS 1000000000ll

/* What one receiver has counted since `begin`. */
struct receiver {
	uint64_t received;		/* of this trial, each once */
	uint64_t duplicates;
	uint64_t late;			/* behind a later one of their flow */
	uint64_t stray;			/* of no trial, or another one */
	int64_t earliest;		/* ns: the least time at which packet 0 may have come */
	uint64_t calls;			/* that brought packets */
	uint64_t fresh;			/* of the received, not in a slot yet */
	uint64_t gaps[GAPS];
	int64_t noted;			/* ns: when the call came that the next gap begins with; 0: none is wanted */
	uint64_t looks;			/* at the clock */
	uint64_t slots[SLOTS];
	uint32_t next[MOST_FLOWS];	/* by flow, one more than its last number */
};

struct shared {
	uint32_t mark;
	uint32_t count;
	uint64_t duration;		/* ns */
	uint32_t every;			/* packets between two looks at the clock, by recvmsg */
	int64_t slot;			/* ns */
	_Atomic int64_t first;		/* ns: when the first packet was noticed; 0: none yet */
	struct receiver of[MOST_RECEIVERS];
};

static struct shared *shared;
static _Atomic uint8_t *seen;		/* a bit for each number */
static int sockets[MOST_RECEIVERS];
static pid_t processes[MOST_RECEIVERS], background[MOST_BACKGROUND];
static int receivers, backgrounds;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* Note how long after the call before one came. */
static void note_gap(struct receiver *own, int64_t gap)
{
	int at = 0;

	while (at < GAPS - 1 && gap >= 1000ll << at)
		at++;
	own->gaps[at]++;
	own->noted = 0;
}

/* Note packets of this trial that a call brought, and when. */
static void note(struct receiver *own, uint32_t number, int64_t clock)
{
	int64_t none = 0, slot;
	int64_t due = (int64_t)((double)number / shared->count * shared->duration);

	if (atomic_load_explicit(&shared->first, memory_order_relaxed) == 0)
		atomic_compare_exchange_strong(&shared->first, &none, clock);
	slot = (clock - shared->first) / shared->slot;
	own->slots[slot < 0 ? 0 : slot < SLOTS ? slot : SLOTS - 1] += own->fresh;
	own->fresh = 0;
	if (clock - due < own->earliest)
		own->earliest = clock - due;
}

/* Whether a packet is this trial's, and the first with its number. */
static bool take(struct receiver *own, const uint8_t *payload, ssize_t length, uint16_t port, uint32_t *number)
{
	uint32_t mark[2], bit;

	if (length < (ssize_t)sizeof(mark)) {
		own->stray++;
		return false;
	}
	memcpy(mark, payload, sizeof(mark));
	*number = ntohl(mark[1]);
	if (ntohl(mark[0]) != shared->mark || *number >= shared->count) {
		own->stray++;
		return false;
	}
	bit = 1u << (*number & 7);
	if (atomic_fetch_or_explicit(&seen[*number >> 3], bit, memory_order_relaxed) & bit) {
		own->duplicates++;
		return false;
	}
	if (*number < own->next[port])
		own->late++;
	else
		own->next[port] = *number + 1;
	own->received++;
	own->fresh++;
	return true;
}

static uint16_t source_port(const struct sockaddr_storage *from)
{
	return ntohs(from->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)from)->sin6_port :
		     ((const struct sockaddr_in *)from)->sin_port);
}

static void receive(int socket, struct receiver *own, bool many)
{
	static uint8_t payloads[VECTOR][MAX_DATAGRAM];
	static struct sockaddr_storage from[VECTOR];
	static struct mmsghdr messages[VECTOR];
	static struct iovec vectors[VECTOR];
	uint32_t number = 0, last = 0;
	int64_t clock;
	bool look;
	int brought;

	for (int i = 0; i < VECTOR; i++) {
		vectors[i] = (struct iovec){ payloads[i], MAX_DATAGRAM };
		messages[i].msg_hdr = (struct msghdr){ .msg_name = &from[i], .msg_iov = &vectors[i], .msg_iovlen = 1 };
	}
	for (;;) {
		if (many) {
			for (int i = 0; i < VECTOR; i++)
				messages[i].msg_hdr.msg_namelen = sizeof(from[i]);
			brought = recvmmsg(socket, messages, VECTOR, MSG_WAITFORONE, NULL);
		} else {
			messages[0].msg_hdr.msg_namelen = sizeof(from[0]);
			messages[0].msg_len = recvmsg(socket, &messages[0].msg_hdr, 0);
			brought = (int)messages[0].msg_len < 0 ? -1 : 1;
		}
		if (brought < 0) {
			if (errno == EINTR)
				continue;
			_exit(1);
		}
		own->calls++;
		for (int i = 0; i < brought; i++)
			if (take(own, payloads[i], messages[i].msg_len, source_port(&from[i]), &number))
				last = number;
		look = own->fresh && (many || own->fresh >= shared->every);
		if (!look && !own->noted)
			continue;
		clock = now();
		if (own->noted)
			note_gap(own, clock - own->noted);
		if (!look)
			continue;
		note(own, last, clock);
		if (many || shared->every == 1 || own->looks++ % LOOKS_A_GAP == 0)
			own->noted = clock;
	}
}

/* The nice value of the kernel's thread that takes packets in on the first CPU of the list. */
static int nice_of_ksoftirqd(const char *cpus)
{
	char path[64], name[32], wanted[32];

	snprintf(wanted, sizeof(wanted), "ksoftirqd/%d\n", atoi(cpus));	/* "-": the first */
	for (int pid = 2; pid < 1 << 15; pid++) {
		FILE *file;
		bool found;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		if (!(file = fopen(path, "r")))
			continue;
		found = fgets(name, sizeof(name), file) && !strcmp(name, wanted);
		fclose(file);
		if (found)
			return getpriority(PRIO_PROCESS, pid);
	}
	return 0;
}

/* With autogroups a nice value counts only within the session, whose own weight is set apart. */
static void take_priority(int nice)
{
	FILE *group;

	setsid();
	setpriority(PRIO_PROCESS, 0, nice);
	if (nice && (group = fopen("/proc/self/autogroup", "w"))) {
		fprintf(group, "%d", nice);
		fclose(group);
	}
}

static void pin(const char *cpus, int receiver)
{
	int listed[1024], count = 0;
	cpu_set_t set;

	for (const char *at = cpus; *at && count < 1024; at += *at == ',') {
		char *end;

		listed[count++] = (int)strtol(at, &end, 10);
		if (end == at)
			return;		/* "-": none are listed */
		at = end;
	}
	CPU_ZERO(&set);
	CPU_SET(listed[receiver % count], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("pinning a receiver to its CPU");
}

static int open_socket(int family, int port, int buffer, int busy, bool shares)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, got = 0;
	socklen_t length = sizeof(got);

	if (fd < 0)
		fail("opening a socket");
	if (shares && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)))
		fail("SO_REUSEPORT");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		fail("SO_RCVBUFFORCE");
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length) || got != 2 * buffer) {
		errno = EINVAL;		/* the kernel doubles what it is asked for, see socket(7) */
		fail("the socket's buffer does not read back");
	}
	if (busy && setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &busy, sizeof(busy)))
		fail("SO_BUSY_POLL");
	if (family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)))
		fail("IPV6_V6ONLY");
	if (family == 6 ? bind(fd, (struct sockaddr *)&six, sizeof(six)) : bind(fd, (struct sockaddr *)&four, sizeof(four)))
		fail("binding the port");
	return fd;
}

/* The kernel's count of a socket's memory; 0 if it has none (before Linux 4.12). */
static uint32_t memory_of(int fd, int what)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(memory);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) ? 0 : memory[what];
}

/* Packets that found the socket's buffer full, since it was opened. */
static uint32_t dropped(int fd)
{
	return memory_of(fd, SK_MEMINFO_DROPS);
}

/* Whether a receiver has not read all yet: one that hardly gets the CPU may be silent for long. */
static bool anything_waits(void)
{
	for (int i = 0; i < receivers; i++)
		if (memory_of(sockets[i], SK_MEMINFO_RMEM_ALLOC))
			return true;
	return false;
}

/* CPU time that a process has had, ns. */
static uint64_t cpu_time(pid_t process)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec * NS + t.tv_nsec;
}

static uint32_t drops_before[MOST_RECEIVERS];
static uint64_t time_before[MOST_RECEIVERS];

static void begin(const char *line)
{
	unsigned long long duration;
	unsigned int mark, count;
	uint64_t every;

	if (sscanf(line, "begin %u %u %llu", &mark, &count, &duration) != 3 || !count || count > MOST_PACKETS || !duration) {
		answer("{\"error\":\"asked for a trial in words that are not understood\"}");
		return;
	}
	shared->mark = mark;
	shared->count = count;
	shared->duration = duration;
	every = (uint64_t)count * SPAN / duration;
	shared->every = every < 1 ? 1 : every > VECTOR ? VECTOR : every;
	shared->slot = duration / SLOTS_OF_SENDING + 1;
	shared->first = 0;
	memset((void *)seen, 0, count / 8 + 1);	/* and so it is there when packets come */
	for (int i = 0; i < receivers; i++) {
		memset(&shared->of[i], 0, sizeof(shared->of[i]));
		shared->of[i].earliest = INT64_MAX;
		drops_before[i] = dropped(sockets[i]);
		time_before[i] = cpu_time(processes[i]);
	}
	for (int i = 0; i < backgrounds; i++)
		kill(background[i], SIGCONT);
	answer("{\"begun\":%u}", mark);
}

static uint64_t received(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < receivers; i++)
		sum += *(volatile uint64_t *)&shared->of[i].received;
	return sum;
}

/* Packets that a receiver had `at` ns after packet 0 could first have come. */
static uint64_t delivered_to(int receiver, int64_t start, int64_t at)
{
	int64_t last = (start + at - shared->first) / shared->slot;
	uint64_t sum = 0;

	for (int64_t slot = 0; slot < last && slot < SLOTS; slot++)
		sum += shared->of[receiver].slots[slot];
	return sum;
}

static uint64_t delivered_by(int64_t start, int64_t at)
{
	uint64_t sum = 0;

	for (int i = 0; i < receivers; i++)
		sum += delivered_to(i, start, at);
	return sum;
}

static void end(const char *line)
{
	unsigned long long sending, quiet, limit;
	int64_t asked = now(), changed = asked, clock, start = INT64_MAX;
	uint64_t last = received(), current;
	struct timespec pause = { .tv_nsec = 1000000 };
	char text[8192];
	pid_t gone;
	int at = 0;

	if (sscanf(line, "end %llu %llu %llu", &sending, &quiet, &limit) != 3) {
		answer("{\"error\":\"asked for an end in words that are not understood\"}");
		return;
	}
	for (int i = 0; i < backgrounds; i++)
		kill(background[i], SIGSTOP);
	while (last < shared->count && (clock = now()) - asked < (int64_t)limit &&
	       (clock - changed < (int64_t)quiet || anything_waits())) {
		nanosleep(&pause, NULL);
		current = received();
		if (current != last)
			changed = now();
		last = current;
	}
	if ((gone = waitpid(-1, NULL, WNOHANG)) > 0) {
		answer("{\"error\":\"the receiver with process id %d has ended\"}", gone);
		return;
	}
	for (int i = 0; i < receivers; i++)
		if (shared->of[i].earliest < start)
			start = shared->of[i].earliest;
	at += snprintf(text + at, sizeof(text) - at, "{\"delivered\":[");
	for (int k = 1; k <= LOOKS; k++)
		at += snprintf(text + at, sizeof(text) - at, k > 1 ? ",%llu" : "%llu", !last ? 0ull : (unsigned long long)
			       delivered_by(start, k < LOOKS ? (int64_t)(shared->duration * k / LOOKS) : (int64_t)sending));
	at += snprintf(text + at, sizeof(text) - at, "],\"receivers\":[");
	for (int i = 0; i < receivers; i++) {
		struct receiver *one = &shared->of[i];

		at += snprintf(text + at, sizeof(text) - at,
			       "%s{\"received\":%llu,\"in_time\":%llu,\"duplicates\":%llu,\"late\":%llu,\"stray\":%llu,\"dropped\":%u,"
			       "\"calls\":%llu,\"cpu_us\":%llu", i ? "," : "", (unsigned long long)one->received,
			       last ? (unsigned long long)delivered_to(i, start, (int64_t)sending) : 0ull,
			       (unsigned long long)one->duplicates, (unsigned long long)one->late,
			       (unsigned long long)one->stray, dropped(sockets[i]) - drops_before[i],
			       (unsigned long long)one->calls,
			       (unsigned long long)(cpu_time(processes[i]) - time_before[i]) / 1000);
		for (int k = 0; k < GAPS; k++)
			if (one->gaps[k])
				at += snprintf(text + at, sizeof(text) - at, k < GAPS - 1 ? ",\"gap_%dus\":%llu" :
					       ",\"gap_longer_than_%dus\":%llu", 1 << (k < GAPS - 1 ? k : k - 1),
					       (unsigned long long)one->gaps[k]);
		at += snprintf(text + at, sizeof(text) - at, "}");
	}
	answer("%s]}", text);
}

static void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		fail("memory for what is counted");
	return memory;
}

/* A child that ends with us, on a CPU of its own choice or the one whose turn it is; 0 in the child. */
static pid_t start(int number, const char *cpus, const char *kind)
{
	char name[16];
	pid_t parent = getpid(), child;

	pin(cpus, number);	/* which the child inherits */
	child = fork();
	if (child < 0)
		fail("starting a process");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	snprintf(name, sizeof(name), "pdrgate-%s/%d", kind, number);
	prctl(PR_SET_NAME, name);
	return 0;
}

static void start_all(const char *cpus, bool many)
{
	for (int i = 0; i < receivers; i++) {
		processes[i] = start(i, cpus, "recv");
		if (!processes[i])
			receive(sockets[i], &shared->of[i], many);
	}
	for (int i = 0; i < backgrounds; i++) {
		background[i] = start(i, cpus, "back");
		if (!background[i]) {
			raise(SIGSTOP);
			for (volatile uint64_t work = 0;; work++)
				;
		}
	}
}

/* Nobody of ours is left when we have ended. */
static void leave(int signal)
{
	(void)signal;
	for (int i = 0; i < receivers; i++)
		if (processes[i] > 0)
			kill(processes[i], SIGKILL);
	for (int i = 0; i < backgrounds; i++)
		if (background[i] > 0)
			kill(background[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	char line[256], ids[MOST_RECEIVERS * 12];
	int family, port, buffer, busy, at = 0;
	FILE *control;
	bool many;

	if (argc != 10) {
		fprintf(stderr, "usage: pdrgate-receiver FOLDER FAMILY PORT RECEIVERS BUFFER CALL BUSY BACKGROUND CPUS\n");
		return 64;
	}
	family = atoi(argv[2]);
	port = atoi(argv[3]);
	receivers = atoi(argv[4]);
	buffer = atoi(argv[5]);
	many = !strcmp(argv[6], "recvmmsg");
	busy = atoi(argv[7]);
	backgrounds = atoi(argv[8]);
	if (receivers < 1 || receivers > MOST_RECEIVERS || backgrounds < 0 || backgrounds > MOST_BACKGROUND)
		return 64;
	control = begin_to_be_asked(argv[1]);
	if (!control)
		return 1;
	take_priority(nice_of_ksoftirqd(argv[9]));
	shared = share(sizeof(*shared));
	seen = share(MOST_PACKETS / 8);
	for (int i = 0; i < receivers; i++)
		sockets[i] = open_socket(family, port, buffer, busy, receivers > 1);
	start_all(argv[9], many);
	signal(SIGTERM, leave);
	for (int i = 0; i < receivers; i++)
		at += snprintf(ids + at, sizeof(ids) - at, i ? ",%d" : "%d", processes[i]);
	answer("{\"ready\":[%s]}", ids);
	while (fgets(line, sizeof(line), control)) {
		if (!strncmp(line, "begin ", 6))
			begin(line);
		else if (!strncmp(line, "end ", 4))
			end(line);
		else
			answer("{\"error\":\"asked for what is not understood\"}");
	}
	return 0;
}
