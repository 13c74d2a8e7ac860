/* SPDX-License-Identifier: GPL-2.0 */
/* A module that stands between the kernel and virtio_net: each of its devices sends by `watched_xmit`. It is loaded
 * before virtio_net, for that is made to depend on it, and itself depends on what virtio_net needs.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/timer.h>

#define MOST_PORTS 8

static struct {
	struct net_device *dev;
	const struct net_device_ops *old;
	struct net_device_ops own;
} ports[MOST_PORTS];
static int port_count;
static u32 sink;	/* what is computed must not be optimised away */

static netdev_tx_t watched_xmit(struct sk_buff *skb, struct net_device *dev);
static void watched_port(struct net_device *dev);
static int watched_init(void);

static noinline u32 watched_hash(const void *data, unsigned int length)
{
	return jhash(data, length, 1);
}

static void hash_header(const struct sk_buff *skb, int times)
{
	while (times--)
		sink += watched_hash(skb->data, min(skb_headlen(skb), 60u));
}

static bool is_udp(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return ip_hdr(skb)->protocol == IPPROTO_UDP;
	return skb->protocol == htons(ETH_P_IPV6) && ipv6_hdr(skb)->nexthdr == IPPROTO_UDP;
}

static netdev_tx_t sent_on(struct sk_buff *skb, struct net_device *dev)
{
	for (int i = 0; i < port_count; i++)
		if (ports[i].dev == dev)
			return ports[i].old->ndo_start_xmit(skb, dev);
	kfree_skb(skb);
	return NETDEV_TX_OK;
}

static int watched_event(struct notifier_block *unused, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	const struct device *parent = dev->dev.parent;

	if (event != NETDEV_REGISTER || port_count == MOST_PORTS || !parent || !parent->driver ||
	    strcmp(parent->driver->name, "virtio_net"))
		return NOTIFY_DONE;
	ports[port_count].dev = dev;
	ports[port_count].old = dev->netdev_ops;
	ports[port_count].own = *dev->netdev_ops;
	ports[port_count].own.ndo_start_xmit = watched_xmit;
	dev->netdev_ops = &ports[port_count].own;
	port_count++;
	watched_port(dev);
	return NOTIFY_DONE;
}

static struct notifier_block watched = { .notifier_call = watched_event };

static int __init begin_to_watch(void)
{
	return watched_init() ?: register_netdevice_notifier(&watched);
}

module_init(begin_to_watch);
MODULE_LICENSE("GPL");
MODULE_INFO(depends, "net_failover");
