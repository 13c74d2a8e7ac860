// SPDX-License-Identifier: Apache-2.0
/* Small requests by TCP, and who answers them.
 *
 *   pdrgate-requests serve ADDRESS PORT SIZE
 *   pdrgate-requests ask OWN ADDRESS PORT SIZE COUNT LIMIT open|anew
 *
 * A request has SIZE bytes, and so has its answer; one is made after the other, COUNT in all, or as many as begin
 * in LIMIT ns. `open`: on one connection, which is there before the first. `anew`: on one of its own each, which is part
 * of its time. What came of it is a line of JSON: how many were answered, in which time, and the median and the 99th
 * percentile of what one took, ns.
 *
 * No end sets TCP_NODELAY: what a kernel holds back, it holds back of these. It is linked statically: it has to run
 * wherever a kernel does.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define USAGE 64
#define LARGEST 16384
#define MOST (1 << 20)			/* times that are kept */
#define NS 1000000000ll
#define PATIENCE 10			/* s for an answer */

static char data[LARGEST];
static int64_t took[MOST];

static void die(const char *what)
{
	fprintf(stderr, "pdrgate-requests: error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* An address of either IP version. */
static socklen_t place(const char *text, const char *port, struct sockaddr_storage *found)
{
	struct sockaddr_in *four = (void *)found;
	struct sockaddr_in6 *six = (void *)found;

	memset(found, 0, sizeof(*found));
	if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(atoi(port));
		return sizeof(*four);
	}
	errno = EINVAL;
	if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
		die(text);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(atoi(port));
	return sizeof(*six);
}

static int opened(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("opening a socket");
	return fd;
}

/* Whether all came; not where the other end has closed, or where a socket that has a time limit waits longer. One in a
 * table of sockets may say EAGAIN without a limit: the kernel woke its reader for what a program has yet to pass on. */
static bool got(int fd, size_t size, bool limited)
{
	ssize_t length;

	for (size_t have = 0; have < size;) {
		length = recv(fd, data + have, size - have, 0);
		if (length > 0)
			have += length;
		else if (!length || limited || (errno != EAGAIN && errno != EINTR))
			return false;
	}
	return true;
}

static int serve(const char *address, const char *port, size_t size)
{
	struct sockaddr_storage own;
	socklen_t length = place(address, port, &own);
	int fd = opened(own.ss_family), one = 1, with;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&own, length) || listen(fd, 64))
		die("listening");
	while ((with = accept(fd, NULL, NULL)) >= 0) {
		while (got(with, size, false) && send(with, data, size, MSG_NOSIGNAL) == (ssize_t)size)
			;
		close(with);
	}
	die("accepting");
	return 1;
}

static int connected(const char *own, const char *address, const char *port)
{
	struct sockaddr_storage from, to;
	socklen_t length = place(own, "0", &from);
	struct timeval patience = { PATIENCE };
	int fd = opened(from.ss_family), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&from, length))
		die("binding an address");
	length = place(address, port, &to);
	if (connect(fd, (struct sockaddr *)&to, length))
		die("connecting");
	return fd;
}

static int later(const void *one, const void *other)
{
	int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

	return (a > b) - (a < b);
}

static int ask(char **words)
{
	size_t size = atoi(words[3]);
	uint32_t answered = 0, count = atoi(words[4]);
	bool anew = !strcmp(words[6], "anew");
	int64_t limit = atoll(words[5]), begun, before, last;
	int fd;

	errno = ERANGE;
	if (!count || count > MOST)
		die("so many requests");
	fd = anew ? -1 : connected(words[0], words[1], words[2]);

	for (begun = last = now(); last - begun < limit && answered < count; took[answered++] = last - before) {
		before = last;
		if (anew)
			fd = connected(words[0], words[1], words[2]);
		if (send(fd, data, size, MSG_NOSIGNAL) != (ssize_t)size || !got(fd, size, true))
			die("a request");
		if (anew)
			close(fd);
		last = now();
	}
	qsort(took, answered, sizeof(*took), later);
	printf("{\"requests\":%u,\"ns\":%lld,\"median\":%lld,\"tail\":%lld}\n", answered, (long long)(last - begun),
	       (long long)took[answered / 2], (long long)took[answered - 1 - answered / 100]);
	return 0;
}

int main(int count, char **words)
{
	size_t size = count > 4 ? atoi(words[count == 5 ? 4 : 5]) : 0;

	if (size < 1 || size > LARGEST)
		return USAGE;
	if (count == 5 && !strcmp(words[1], "serve"))
		return serve(words[2], words[3], size);
	if (count == 9 && !strcmp(words[1], "ask"))
		return ask(words + 2);
	return USAGE;
}
