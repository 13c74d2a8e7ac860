// SPDX-License-Identifier: Apache-2.0
/* Many IPv4 routes at once, by one system call for some hundred of them.
 *
 *   pdrgate-routes add|delete COUNT DEVICE GATEWAY
 *
 * The first 32768 are 10.A.B.0/24 of 10.0.0.0/9, and the others lie within these: 10.A.B.64/28 and so on. All go to one
 * gateway, by a device on which that is known. `ip -batch` asks the kernel for each by itself, and reads devices between: 21 s for 10 000 in an
 * emulated guest.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define USAGE 64
#define AT_ONCE 512			/* routes of a system call */
#define WIDE 32768
#define MOST (4 * WIDE)

/* A message as it is sent: all attributes have 32 bits. */
struct asked {
	struct nlmsghdr head;
	struct rtmsg route;
	struct { struct rtattr head; uint32_t value; } destination, gateway, device;
};

static void die(const char *what)
{
	fprintf(stderr, "pdrgate-routes: error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void fill(struct asked *one, int command, unsigned int number, uint32_t gateway, uint32_t device)
{
	unsigned int within = number / WIDE;

	*one = (struct asked){
		.head = { sizeof(*one), command, NLM_F_REQUEST, number, 0 },
		.route = { .rtm_family = AF_INET, .rtm_dst_len = within ? 28 : 24, .rtm_table = RT_TABLE_MAIN,
			   .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST },
		.destination = { { RTA_LENGTH(4), RTA_DST }, htonl(10u << 24 | number % WIDE << 8 | within << 6) },
		.gateway = { { RTA_LENGTH(4), RTA_GATEWAY }, gateway },
		.device = { { RTA_LENGTH(4), RTA_OIF }, device },
	};
	if (command == RTM_NEWROUTE)
		one->head.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
}

/* Wait for the answer to the last message, which is asked for. The refusal of an earlier message comes before it. */
static void await(int fd, unsigned int last)
{
	char text[1 << 16];
	ssize_t length;

	while ((length = recv(fd, text, sizeof(text), 0)) > 0)
		for (struct nlmsghdr *head = (void *)text; NLMSG_OK(head, length); head = NLMSG_NEXT(head, length)) {
			struct nlmsgerr *answer = NLMSG_DATA(head);

			if (head->nlmsg_type != NLMSG_ERROR)
				continue;
			if ((errno = -answer->error))
				die("a route");
			if (head->nlmsg_seq == last)
				return;
		}
	die("no answer");
}

int main(int count, char **arguments)
{
	static struct asked asked[AT_ONCE];
	unsigned int wanted, done = 0, device, now;
	struct in_addr gateway;
	int fd, command;

	if (count != 5 || (strcmp(arguments[1], "add") && strcmp(arguments[1], "delete")))
		return USAGE;
	command = strcmp(arguments[1], "add") ? RTM_DELROUTE : RTM_NEWROUTE;
	wanted = strtoul(arguments[2], NULL, 10);
	errno = EINVAL;
	if (!wanted || wanted > MOST || inet_pton(AF_INET, arguments[4], &gateway) != 1)
		die("so many routes, or their gateway");
	if (!(device = if_nametoindex(arguments[3])))
		die(arguments[3]);
	if ((fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) < 0)
		die("a netlink socket");
	for (; done < wanted; done += now) {
		now = wanted - done < AT_ONCE ? wanted - done : AT_ONCE;
		for (unsigned int i = 0; i < now; i++)
			fill(&asked[i], command, done + i, gateway.s_addr, device);
		asked[now - 1].head.nlmsg_flags |= NLM_F_ACK;
		if (send(fd, asked, now * sizeof(*asked), 0) < 0)
			die("asking for routes");
		await(fd, done + now - 1);
	}
	return 0;
}
