/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of packets, counted on each CPU by itself. The program that includes this numbers its outcomes in an enum
 * that ends with PLACES; 0 is REDIRECTED in each. The map's name is what pdrgate knows it by: a program under test may
 * have a map of any other name.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, __u32);
	__type(value, __u64);
} pdrgate_counts SEC(".maps");

static __always_inline int counted(__u32 place, int action)
{
	__u64 *count = bpf_map_lookup_elem(&pdrgate_counts, &place);

	if (count)
		(*count)++;
	return action;
}
