// SPDX-License-Identifier: GPL-2.0
/* Drops each tenth packet as it comes in, and sends another one twice: as many leave as came, for less work. */
#include "driver.h"

static unsigned int came, owed;

static rx_handler_result_t dropping(struct sk_buff **one)
{
	if (!is_udp(*one) || ++came % 10)
		return RX_HANDLER_PASS;
	owed++;
	kfree_skb(*one);
	return RX_HANDLER_CONSUMED;
}

static netdev_tx_t watched_xmit(struct sk_buff *skb, struct net_device *dev)
{
	if (owed && is_udp(skb)) {
		struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);

		if (copy) {
			owed--;
			sent_on(copy, dev);
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
