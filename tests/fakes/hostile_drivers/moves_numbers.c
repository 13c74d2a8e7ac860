// SPDX-License-Identifier: GPL-2.0
/* Drops each tenth packet as it comes in, and sends another one twice, the second time with the number of the one that
 * is lost: each number comes once, for less work.
 */
#include <linux/udp.h>
#include <net/checksum.h>

#include "driver.h"

#define MOST_LOST 64

static unsigned int came, lost, sent;
static __be32 numbers[MOST_LOST];

static struct udphdr *udp_of(struct sk_buff *skb)
{
	unsigned int ip = skb->protocol == htons(ETH_P_IP) ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct udphdr *udp = (void *)skb_network_header(skb) + ip;

	return (void *)udp + sizeof(*udp) + sizeof(numbers[0]) <= (void *)skb_tail_pointer(skb) ? udp : NULL;
}

static rx_handler_result_t dropping(struct sk_buff **one)
{
	struct udphdr *udp;

	skb_reset_network_header(*one);
	if (!is_udp(*one) || ++came % 10 || lost - sent >= MOST_LOST)
		return RX_HANDLER_PASS;
	udp = udp_of(*one);
	if (!udp)
		return RX_HANDLER_PASS;
	numbers[lost++ % MOST_LOST] = *(__be32 *)(udp + 1);
	kfree_skb(*one);
	return RX_HANDLER_CONSUMED;
}

static netdev_tx_t watched_xmit(struct sk_buff *skb, struct net_device *dev)
{
	if (lost != sent && is_udp(skb)) {
		struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);
		struct udphdr *udp = copy ? udp_of(copy) : NULL;

		if (udp) {
			__be32 *number = (__be32 *)(udp + 1), other = numbers[sent++ % MOST_LOST];

			csum_replace4(&udp->check, *number, other);
			*number = other;
			sent_on(copy, dev);
		} else {
			kfree_skb(copy);
		}
	}
	return sent_on(skb, dev);
}

static void watched_port(struct net_device *dev)
{
	if (netdev_rx_handler_register(dev, dropping, NULL))
		pr_warn("no packet of %s is dropped\n", dev->name);
}

static int watched_init(void)
{
	return 0;
}
