"""Our own XDP router with known accesses to memory, compiled for a test: instructions alike, other lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wrong_routers import router

_MAP = """
struct element {{ __u64 value; __u64 room[7]; }};
struct {{
	__uint(type, BPF_MAP_TYPE_{kind});
	__uint(max_entries, {elements});
	__type(key, __u32);
	__type(value, struct element);
}} touched SEC(".maps");
"""
_RANDOM = """
	{{
		__u32 key = bpf_get_prandom_u32() & ({elements} - 1);
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		if (one) one->value++;
	}}
"""
_COUNT = """
	{{
		__u32 key = 0;
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		if (one) {add};
	}}
"""
_WALK = """
	for (__u32 at = 0; at < {lines}; at++) {{
		__u32 key = at;
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		if (one) one->value++;
	}}
"""


@dataclass(frozen=True)
class Touching:
    """What a router does with a map before a packet leaves."""

    kind: str
    elements: int
    code: str

    def built(self, folder: Path, name: str) -> Path:
        """The router's object."""
        return router(folder, self.code, name, _MAP.format(kind=self.kind, elements=self.elements))


def random_access(elements: int) -> Touching:
    """Adds one to a random element of 64 bytes each."""
    return Touching("ARRAY", elements, _RANDOM.format(elements=elements))


def walk(lines: int) -> Touching:
    """Adds one to each of so many elements of 64 bytes."""
    return Touching("ARRAY", lines, _WALK.format(lines=lines))


SHARED = Touching("ARRAY", 1, _COUNT.format(add="__sync_fetch_and_add(&one->value, 1)"))
"""A counter of all CPUs, by an atomic instruction."""
OF_EACH_CPU = Touching("PERCPU_ARRAY", 1, _COUNT.format(add="one->value++"))
"""A counter of each CPU."""
FALSELY_SHARED = Touching(
    "ARRAY", 1,
    """
	{
		__u32 key = 0;
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		__u64 *word = one ? &one->room[bpf_get_smp_processor_id() & 3] : 0;
		if (word) *word += 1;
	}
""",
)  # fmt: skip
"""A counter of each CPU, all of them in one line."""
NEAR, FAR = random_access(64), random_access(1 << 20)
"""4 KiB, and 64 MiB."""
