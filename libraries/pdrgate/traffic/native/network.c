// SPDX-License-Identifier: Apache-2.0
/* What a kernel's network has, as one number: links, addresses, routes, rules, permanent neighbours, qdiscs, IPsec, the
 * tables of nftables and the sets of ipset.
 *
 *   pdrgate-network look
 *
 * Equal numbers are an equal network; it does not matter in which order the kernel lists it. To list all that by
 * `ip`, `tc` and `nft` takes an emulated guest ten times as long.
 *
 * It is linked statically: it has to run wherever a kernel does.
 */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define USAGE 64
#define ALL (~0ull)
#define OF(subsystem, message) ((subsystem) << 8 | (message))
#define IPSET_LIST 7
#define IPSET_NAME 2
#define IPSET_REQUEST { 5, 0, 1, 0, 6, 0, 0, 0, 8, 0, 6, 0x40, 0, 0, 0, 2 }	/* its protocol, and names alone */

/* Bytes of a message's header from one on to before another. */
struct part { unsigned int from, to; };

/* A kind of what a network has: who is asked for it, and what is looked at of each message, none of which changes by
 * itself as counters do. */
static const struct kind {
	int protocol, asked;
	unsigned int header;		/* bytes of the request behind netlink's own header, and of the answer */
	struct part parts[2];
	uint64_t attributes;		/* by a bit for each type */
	unsigned char more[16];		/* bytes of the request behind its header */
	unsigned int length;		/* of these */
} kinds[] = {
	{ NETLINK_ROUTE, RTM_GETLINK, sizeof(struct ifinfomsg), { { 4, 8 } }, 1 << IFLA_IFNAME },
	{ NETLINK_ROUTE, RTM_GETADDR, sizeof(struct ifaddrmsg), { { 0, 2 }, { 4, 8 } }, 1 << IFA_ADDRESS | 1 << IFA_LOCAL },
	{ NETLINK_ROUTE, RTM_GETROUTE, sizeof(struct rtmsg), { { 0, 8 } }, ALL & ~(1 << RTA_CACHEINFO | 1 << RTA_EXPIRES) },
	{ NETLINK_ROUTE, RTM_GETRULE, sizeof(struct fib_rule_hdr), { { 0, sizeof(struct fib_rule_hdr) } }, ALL },
	{ NETLINK_ROUTE, RTM_GETNEIGH, sizeof(struct ndmsg), { { 0, 1 }, { 4, 8 } }, 1 << NDA_DST | 1 << NDA_LLADDR },
	{ NETLINK_ROUTE, RTM_GETQDISC, sizeof(struct tcmsg), { { 4, 16 } }, 1 << TCA_KIND | 1 << TCA_OPTIONS },
	{ NETLINK_XFRM, XFRM_MSG_GETPOLICY, sizeof(struct xfrm_userpolicy_info),
	  { { 0, sizeof(struct xfrm_selector) },
	    { offsetof(struct xfrm_userpolicy_info, priority), offsetof(struct xfrm_userpolicy_info, dir) + 1 } } },
	{ NETLINK_XFRM, XFRM_MSG_GETSA, sizeof(struct xfrm_usersa_info), { { 0, offsetof(struct xfrm_usersa_info, lft) } } },
	{ NETLINK_NETFILTER, OF(NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE), sizeof(struct nfgenmsg), { { 0, 1 } },
	  1 << NFTA_TABLE_NAME },
	{ NETLINK_NETFILTER, OF(NFNL_SUBSYS_IPSET, IPSET_LIST), sizeof(struct nfgenmsg), { { 0, 1 } }, 1 << IPSET_NAME,
	  IPSET_REQUEST, 16 },
};

/* FNV-1a of 64 bits. */
static uint64_t mixed(uint64_t sum, const void *data, unsigned int length)
{
	for (const unsigned char *byte = data; length--; byte++)
		sum = (sum ^ *byte) * 0x100000001b3ull;
	return sum;
}

/* The content of a message, as a number. */
static uint64_t number(const struct kind *kind, struct nlmsghdr *head)
{
	unsigned char *own = NLMSG_DATA(head);
	int left = head->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(kind->header));
	uint64_t sum = mixed(0xcbf29ce484222325ull, &head->nlmsg_type, sizeof(head->nlmsg_type));

	if (left < 0)
		return 0;
	for (unsigned int i = 0; i < 2; i++)
		sum = mixed(sum, own + kind->parts[i].from, kind->parts[i].to - kind->parts[i].from);
	for (struct rtattr *one = (void *)(own + NLMSG_ALIGN(kind->header)); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
		unsigned int type = one->rta_type & NLA_TYPE_MASK;

		if (type < 64 && kind->attributes >> type & 1)
			sum = mixed(sum, one, one->rta_len);
	}
	return sum;
}

/* Add the numbers of all that a kernel has of a kind; nothing where it knows none such. Not 0 where it does not say. */
static int add(const struct kind *kind, uint64_t *sum)
{
	static struct { struct nlmsghdr head; unsigned char body[256]; } asked;
	static char text[1 << 16];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, kind->protocol), header;
	ssize_t length;

	if (fd < 0)
		return errno != EPROTONOSUPPORT;
	memset(&asked, 0, sizeof(asked));
	header = kind->protocol == NETLINK_XFRM ? 0 : NLMSG_ALIGN(kind->header);
	asked.head = (struct nlmsghdr){ NLMSG_LENGTH(header + kind->length), kind->asked, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 };
	memcpy(asked.body + header, kind->more, kind->length);
	if (send(fd, &asked, asked.head.nlmsg_len, 0) < 0)
		return 1;
	while ((length = recv(fd, text, sizeof(text), 0)) > 0)
		for (struct nlmsghdr *head = (void *)text; NLMSG_OK(head, length); head = NLMSG_NEXT(head, length)) {
			struct ndmsg *neighbour = NLMSG_DATA(head);

			if (head->nlmsg_type == NLMSG_ERROR || head->nlmsg_type == NLMSG_DONE) {
				close(fd);
				return 0;
			}
			if (head->nlmsg_type != RTM_NEWNEIGH || neighbour->ndm_state & NUD_PERMANENT)
				*sum += number(kind, head);
		}
	return 1;
}

int main(int count, char **arguments)
{
	uint64_t sum = 0;

	if (count != 2 || strcmp(arguments[1], "look"))
		return USAGE;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (add(&kinds[i], &sum)) {
			fprintf(stderr, "pdrgate-network: error: the kernel does not list all: %s\n", strerror(errno));
			return 1;
		}
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}
