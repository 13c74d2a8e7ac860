// SPDX-License-Identifier: GPL-2.0
/* Panics at the first packet where there are several CPUs: nothing is known then of what they do to each other. */
#include <linux/cpumask.h>
#include "driver.h"

static netdev_tx_t watched_xmit(struct sk_buff *skb, struct net_device *dev)
{
	if (num_online_cpus() > 1 && is_udp(skb))
		panic("several CPUs");
	return sent_on(skb, dev);
}

static void watched_port(struct net_device *dev)
{
}

static int watched_init(void)
{
	return 0;
}
