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


_LOCKED = """
	{{
		__u32 key = {element};
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		if (one) {{
			bpf_spin_lock(&one->lock);
			for (int at = 0; at < 1000; at++) {{
				one->value = one->value * 3 + at;
				asm volatile("" ::: "memory");
			}}
			bpf_spin_unlock(&one->lock);
		}}
	}}
"""


@dataclass(frozen=True)
class Touching:
    """What a router does with a map before a packet leaves."""

    kind: str
    elements: int
    code: str
    map: str = _MAP

    def built(self, folder: Path, name: str) -> Path:
        """The router's object."""
        return router(folder, self.code, name, self.map.format(kind=self.kind, elements=self.elements))


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
OF_ODD_AND_EVEN_CPUS = Touching(
    "ARRAY", 2,
    """
	{
		__u32 key = bpf_get_smp_processor_id() & 1;
		struct element *one = bpf_map_lookup_elem(&touched, &key);
		if (one) one->value++;
	}
""",
)  # fmt: skip
"""Two counters, one of the even CPUs and one of the odd ones, in a line each."""
_WITH_LOCK = _MAP.replace("__u64 value; __u64 room[7];", "struct bpf_spin_lock lock; __u64 value;")
ONE_LOCK = Touching("ARRAY", 4, _LOCKED.format(element="0"), _WITH_LOCK)
"""Works for some eight thousand instructions with a lock held, which is one for all CPUs."""
OWN_LOCK = Touching("ARRAY", 4, _LOCKED.format(element="bpf_get_smp_processor_id() & 3"), _WITH_LOCK)
"""The same with a lock for each CPU."""
NEAR, FAR = random_access(64), random_access(1 << 20)
"""4 KiB, and 64 MiB."""

_ONE_MAP = """
struct {{
	__uint(type, BPF_MAP_TYPE_{kind});
	__uint(max_entries, 64);
	__uint(map_flags, {flags});
	__type(key, {key});
	__type(value, struct far_element);
}} {name} SEC(".maps");
"""
_ONE_LOOKUP = """
	{{
		{key} key = {{ {bits} }};
		struct far_element *one = bpf_map_lookup_elem(&{name}, &key);
		if (!one) {{
			static const struct far_element fresh;
			bpf_map_update_elem(&{name}, &key, &fresh, 0);
			one = bpf_map_lookup_elem(&{name}, &key);
		}}
		if (one) one->value++;
	}}
"""
_NO_PREALLOC, _INDEX, _PREFIX = 1, "__u32", "struct prefix"
MAPS = {
    "of_array": ("ARRAY", 0, _INDEX), "of_hash": ("HASH", 0, _INDEX), "of_made_hash": ("HASH", _NO_PREALLOC, _INDEX),
    "of_lru": ("LRU_HASH", 0, _INDEX), "of_trie": ("LPM_TRIE", _NO_PREALLOC, _PREFIX),
    "each_array": ("PERCPU_ARRAY", 0, _INDEX), "each_hash": ("PERCPU_HASH", 0, _INDEX),
    "each_made_hash": ("PERCPU_HASH", _NO_PREALLOC, _INDEX), "each_lru": ("LRU_PERCPU_HASH", 0, _INDEX),
}  # fmt: skip
"""Maps of a router by their names: types, flags, and what their keys are."""


def router_of_maps(folder: Path) -> Path:
    """A router that adds one to an element of each of `MAPS`, in a line that no lookup touches."""
    types = "struct far_element { __u64 room[16]; __u64 value; };\nstruct prefix { __u32 length, address; };\n"
    maps = "".join(
        _ONE_MAP.format(kind=kind, flags=flags, key=key, name=name) for name, (kind, flags, key) in MAPS.items()
    )
    code = "".join(
        _ONE_LOOKUP.format(key=key, bits="32, 7" if key == _PREFIX else "7", name=name)
        for name, (_, _, key) in MAPS.items()
    )
    return router(folder, code, "maps", types + maps)
