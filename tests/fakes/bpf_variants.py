"""An eBPF object with programs of several kinds, compiled in variants: slower, wrong, refused."""

from __future__ import annotations

import platform
import struct
import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

SOURCE = r"""
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#ifndef LOOKUPS
#define LOOKUPS 1
#endif
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096); __type(key, __u32); __type(value, __u32); }
known SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16); __type(key, __u32); __type(value, __u32); }
blocked SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); }
counted SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 4096); __type(key, __u32); __type(value, __u32); }
recent SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 4); __type(value, __u32); } queued SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } told SEC(".maps");
volatile const __u32 all_blocked = 0;
__u64 runs;

static int source(void *data, void *end, __u32 *into)
{
	if (data + 34 > end)
		return -1;
	__builtin_memcpy(into, data + 26, 4);
	return 0;
}
static __u32 *looked_up(__u32 *key)
{
	__u32 *found = 0;

#pragma clang loop unroll(full)
	for (int at = 0; at < LOOKUPS; at++)
		found = bpf_map_lookup_elem(&blocked, key);
	return found;
}
SEC("xdp") int balance(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	__u32 key, zero = 0, one = 1;
	__u64 *count;

	if (source(data, (void *)(long)ctx->data_end, &key))
		return XDP_ABORTED;
	count = bpf_map_lookup_elem(&counted, &zero);
	if (count)
		*count += 1;
	runs++;
	bpf_map_push_elem(&queued, &key, 0);
	bpf_ringbuf_output(&told, &key, sizeof(key), 0);
	bpf_map_update_elem(&recent, &key, &one, 0);
	if (looked_up(&key) || all_blocked)
		return XDP_DROP;
#ifdef WRONG
	if (data[23] == 17)
		return XDP_DROP;
#endif
#ifdef SHORTER_LIFE
	data[22]--;
#endif
	if (bpf_map_lookup_elem(&known, &key))
		return XDP_PASS;
	bpf_map_update_elem(&known, &key, &one, 0);
	return XDP_TX;
}
SEC("tc") int police(struct __sk_buff *skb)
{
	__u32 key;

	if (source((void *)(long)skb->data, (void *)(long)skb->data_end, &key))
		return TC_ACT_OK;
	return looked_up(&key) ? TC_ACT_SHOT : TC_ACT_OK;
}
SEC("socket") int sample(struct __sk_buff *skb)
{
	__u32 key;

	if (bpf_skb_load_bytes(skb, 12, &key, sizeof(key)))
		return 0;
	return looked_up(&key) ? 0 : skb->len;
}
SEC("cgroup_skb/ingress") int four(struct __sk_buff *skb) { return skb->protocol == __builtin_bswap16(0x800); }
SEC("sk_lookup") int to_dns(struct bpf_sk_lookup *ctx) { return ctx->local_port == 53 ? SK_DROP : SK_PASS; }
SEC("flow_dissector") int keys(struct __sk_buff *skb)
{
	skb->flow_keys->n_proto = __builtin_bswap16(0x800);
	return BPF_OK;
}
SEC("xdp") int by_chance(struct xdp_md *ctx) { return bpf_get_prandom_u32() & 1 ? XDP_PASS : XDP_DROP; }
SEC("?sockops") int connections(void *ctx) { return 1; }
#ifdef REFUSED
SEC("?xdp") int unsafe(struct xdp_md *ctx) { return *(int *)(long)ctx->data; }
#else
SEC("?xdp") int unsafe(struct xdp_md *ctx) { return XDP_PASS; }
#endif
char _license[] SEC("license") = "GPL";
"""


def bpf_variant(folder: Path, name: str, defines: Sequence[str] = ()) -> Path:
    """The object, compiled with macros such as ``LOOKUPS=2``."""
    source, made = folder / "variants.bpf.c", folder / f"{name}.o"
    source.write_text(SOURCE)
    command = ("clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I/usr/include/{platform.machine()}-linux-gnu")
    subprocess.run((*command, *(f"-D{one}" for one in defines), "-c", str(source), "-o", str(made)), check=True)
    return made


def udp_packet(source: str, destination: str, source_port: int, destination_port: int) -> bytes:
    """A datagram in an Ethernet frame of 60 bytes; programs here look at no checksum."""
    payload = bytes(18)
    ends = ip_address(source).packed + ip_address(destination).packed
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0) + ends
    datagram = struct.pack("!HHHH", source_port, destination_port, 8 + len(payload), 0) + payload
    return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + header + datagram


def written_capture(path: Path, packets: Sequence[bytes]) -> Path:
    """A pcap file of these packets."""
    records = [struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in packets]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    return path
