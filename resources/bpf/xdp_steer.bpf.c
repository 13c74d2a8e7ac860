// SPDX-License-Identifier: Apache-2.0
/* Hands every packet to one of some CPUs, where the cpumap's own program is run on it.
 *
 * Native XDP on a veth runs in the softirq of whoever sends, and receive packet steering comes too late for it: without
 * this step the SUT's program would run on the generator's CPU. The cpumap's queue is the SUT's receive buffer.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MOST_CPUS 64			/* a cpumap's keys are CPU numbers */

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, MOST_CPUS);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} cpus SEC(".maps");

/* The CPUs to choose from; the first `count` of `cpu` mean something. */
struct choice {
	__u32 count;
	__u32 cpu[MOST_CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct choice);
} choice SEC(".maps");

/* Flows stay on their CPU: the test traffic tells them apart by the low word of the source address or the UDP source
 * port, which stand at fixed places in its frames. */
static __always_inline __u32 flow(void *data, void *end)
{
	__u16 type;

	if (data + 56 > end)
		return 0;
	type = *(__u16 *)(data + 12);
	if (type == bpf_htons(ETH_P_IPV6))
		return bpf_ntohs(*(__u16 *)(data + 36)) + bpf_ntohs(*(__u16 *)(data + 54));
	return bpf_ntohs(*(__u16 *)(data + 28)) + bpf_ntohs(*(__u16 *)(data + 34));
}

#ifdef FRAGS
SEC("xdp.frags")
#else
SEC("xdp")
#endif
int xdp_steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct choice *from;
	__u32 zero = 0, at = 0;

	from = bpf_map_lookup_elem(&choice, &zero);
	if (!from)
		return XDP_ABORTED;
	if (from->count > 1)
		at = flow(data, end) % from->count;
	/* A mask, where a comparison would do: clang 19 compares 32 bits and adds 64, which no verifier follows. */
	return bpf_redirect_map(&cpus, from->cpu[at & (MOST_CPUS - 1)], 0);
}

char _license[] SEC("license") = "Dual MIT/GPL";
