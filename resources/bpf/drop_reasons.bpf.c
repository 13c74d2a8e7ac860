// SPDX-License-Identifier: Apache-2.0
/* Counts packets that the kernel drops, by reason, by the place in its code and by network namespace.
 *
 * Runs for dropped packets only. A generator on the same machine drops all that comes back to it, which is not counted:
 * it would make the way of each packet that is forwarded longer.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MOST_KEYS 4096

/* As far as it is read here, whatever else a kernel has in them. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
} __attribute__((preserve_access_index));

/* What reads the map knows this layout. */
struct drop {
	__u64 location;
	__u32 reason;
	__u32 netns;	/* inode number; 0 where the packet has no device */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, MOST_KEYS);
	__type(key, struct drop);
	__type(value, __u64);
} drops SEC(".maps");

/* Of the namespace where a generator counts what comes back, and drops it: for each packet that was forwarded. */
struct received {
	__u32 netns;
	__u32 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct received);
} received SEC(".maps");

/* With the kernel's types known, its data is read by plain loads. */
SEC("tp_btf/kfree_skb")
int drop_reasons(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct drop key = { .location = ctx[1], .reason = (__u32)ctx[2] };
	struct net_device *dev = skb->dev;
	struct received *back;
	__u64 one = 1, *count;
	__u32 first = 0;

	if (dev)
		key.netns = dev->nd_net.net->ns.inum;
	back = bpf_map_lookup_elem(&received, &first);
	if (back && dev && key.netns == back->netns && key.reason == back->reason)
		return 0;
	count = bpf_map_lookup_elem(&drops, &key);
	if (count)
		(*count)++;
	else
		bpf_map_update_elem(&drops, &key, &one, BPF_ANY);
	return 0;
}

char _license[] SEC("license") = "GPL";
