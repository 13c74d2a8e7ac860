"""Sources of eBPF programs of hooks, with a count of calls, and slowed ones that read a map more often."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

HEAD = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#ifndef READS
#define READS 1
#endif
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); }
	hits SEC(".maps");
static __always_inline void hit(void)
{
	__u32 at = 0;

	for (int read = 0; read < READS; read++) {
		__u64 *count = bpf_map_lookup_elem(&hits, &at);

		if (count)
			__sync_fetch_and_add(count, 1);
	}
}
char _license[] SEC("license") = "GPL";
"""
SOCKETS = """
struct { __uint(type, %s); __uint(max_entries, 8); __type(key, __u32); __type(value, %s); } sockets SEC(".maps");
"""
PLAIN = 'SEC("%s") int counting(struct %s *ctx) { hit(); return %d; }'
CHOOSING = """
SEC("sk_reuseport") int counting(struct sk_reuseport_md *ctx)
{
	__u32 first = 0;

	hit();
	return bpf_sk_select_reuseport(ctx, &sockets, &first, 0) ? SK_DROP : SK_PASS;
}
"""
PARSER = 'SEC("sk_skb/stream_parser") int parser(struct __sk_buff *ctx) { return ctx->len; }'
CONGESTION = """
struct sock { int none; } __attribute__((preserve_access_index));
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	char name[16];
} __attribute__((preserve_access_index));
SEC("struct_ops/half") __u32 BPF_PROG(half, struct sock *sk) { return 10; }
SEC("struct_ops/avoid") void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {}
SEC("struct_ops/undo") __u32 BPF_PROG(undo, struct sock *sk) { return 10; }
SEC("struct_ops/counting") void BPF_PROG(counting, struct sock *sk, __u32 flags) { hit(); }
SEC(".struct_ops.link") struct tcp_congestion_ops mine = {
	.ssthresh = (void *)half, .cong_avoid = (void *)avoid, .undo_cwnd = (void *)undo, .in_ack_event = (void *)counting,
	.name = "mine",
};
"""
SOURCES = {
    "cgroup_skb": PLAIN % ("cgroup_skb/ingress", "__sk_buff", 1),
    "sk_lookup": PLAIN % ("sk_lookup", "bpf_sk_lookup", 1),
    "sockops": PLAIN % ("sockops", "bpf_sock_ops", 1),
    "sk_reuseport": SOCKETS % ("BPF_MAP_TYPE_REUSEPORT_SOCKARRAY", "__u64") + CHOOSING,
    "sk_msg": SOCKETS % ("BPF_MAP_TYPE_SOCKMAP", "__u32") + PLAIN % ("sk_msg", "sk_msg_md", 1),
    "sk_skb": SOCKETS % ("BPF_MAP_TYPE_SOCKHASH", "__u32") + PARSER
    + PLAIN % ("sk_skb/stream_verdict", "__sk_buff", 1),
    "lwt_in": PLAIN % ("lwt_in", "__sk_buff", 0),
    "lwt_out": PLAIN % ("lwt_out", "__sk_buff", 0),
    "lwt_xmit": PLAIN % ("lwt_xmit", "__sk_buff", 0),
    "lwt_seg6local": PLAIN % ("lwt_seg6local", "__sk_buff", 0),
    "struct_ops": CONGESTION,
    "netkit": '#ifndef SIDE\n#define SIDE "netkit/primary"\n#endif\n'
    "SEC(SIDE) int counting(struct __sk_buff *ctx) { hit(); return 0; }",
}  # fmt: skip
"""Sources by kind. Each has a program `counting`."""


def hook_program(folder: Path, kind: str, name: str = "", defines: Sequence[str] = ()) -> Path:
    """The compiled program of a kind."""
    source, output = folder / f"{name or kind}.c", folder / f"{name or kind}.o"
    source.write_text(HEAD + SOURCES[kind])
    machine = subprocess.run(("uname", "-m"), capture_output=True, text=True, check=True).stdout.strip()
    target = {"x86_64": "x86", "aarch64": "arm64"}[machine]
    command = ("clang", "-O2", "-g", "-target", "bpf", f"-D__TARGET_ARCH_{target}", *(f"-D{one}" for one in defines))
    subprocess.run((*command, f"-I/usr/include/{machine}-linux-gnu", "-c", str(source), "-o", str(output)), check=True)
    return output
