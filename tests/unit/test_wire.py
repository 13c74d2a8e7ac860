"""wire.py and wire.h tell of the same bytes, and the buckets of latencies are as narrow as is said."""

from __future__ import annotations

import ctypes
import math
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from pdrgate.record.trial import LOOKS
from pdrgate.traffic import native
from pdrgate.traffic.native import wire

HEADERS = Path(native.__file__).parent


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory):
    """Runs the body of a C ``main`` that sees wire.h; returns what it prints, line by line."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("c")

    def run(body: str) -> list[str]:
        source, program = folder / "program.c", folder / "program"
        source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "wire.h"\nint main(void) {{ {body} }}\n')
        subprocess.run(("gcc", "-Wall", "-Werror", f"-I{HEADERS}", str(source), "-o", str(program)), check=True)
        return subprocess.run((program,), check=True, capture_output=True, text=True).stdout.splitlines()

    return run


@pytest.mark.parametrize(("name", "kind"), [("request", wire.Request), ("direction", wire.WireDirection)])
def test_every_field_lies_where_the_compiler_puts_it(compiled, name: str, kind: type[ctypes.Structure]) -> None:
    names = [field[0] for field in kind._fields_]
    told = compiled(
        f'printf("%zu\\n", sizeof(struct {name}));'
        + "".join(
            f'printf("{field} %zu %zu\\n", offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}));'
            for field in names
        )
    )
    own = [f"{field} {getattr(kind, field).offset} {getattr(kind, field).size}" for field in names]
    assert told == [str(ctypes.sizeof(kind)), *own]


def test_numbers_are_the_same_on_both_sides(compiled) -> None:
    told = compiled('printf("%d %d %d\\n", WIRE_VERSION, HEADER_MAX, LOOKS);')
    assert told == [f"{wire.VERSION} {wire.HEADER_MAX} {LOOKS}"]


def test_a_request_has_its_version_and_size_and_no_field_that_is_not_there() -> None:
    request = wire.Request.of([wire.WireDirection(first=7)], count=3)
    assert (request.version, request.size, request.count) == (wire.VERSION, len(bytes(request)), 3)
    assert (request.dir[0].first, request.dir[1].first) == (7, 0)
    with pytest.raises(AttributeError):
        wire.Request.of([], cuont=3)


def test_a_latency_is_in_a_bucket_that_ends_at_most_1_128_above_it(compiled) -> None:
    """Of all below 2^18 ns, and of more and more widely spread ones up to the last bucket, which has no end."""
    told = compiled(
        "__u64 step = 1; __u32 last = 0;"
        "for (__u64 ns = 0; ns < 255ull << (LATENCY_TOP - 8); ns += step) {"
        "  __u32 bucket = latency_bucket(ns); __u64 end = latency_bucket_end(bucket);"
        "  if (bucket < last || bucket >= LATENCY_BUCKETS || end < ns || (end - ns) * 128 > ns ||"
        "      latency_bucket(end) != bucket || latency_bucket(end + 1) == bucket)"
        '    printf("%llu ns: bucket %u to %llu\\n", ns, bucket, end);'
        "  last = bucket; if (ns >> 18) step = ns / 10007;"
        "}"
        'printf("%d\\n", latency_bucket(~0ull) == LATENCY_BUCKETS - 1);'
    )
    assert told == ["1"]


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 5000])
def test_percentiles_are_nearest_ranks_and_at_most_a_bucket_too_high(compiled, count: int) -> None:
    chance = random.Random(count)
    values = sorted(round(chance.lognormvariate(11, 2)) for _ in range(count))
    told = compiled(
        f"static __u32 buckets[LATENCY_BUCKETS]; static const __u64 values[] = {{ {', '.join(map(str, values))} }};"
        f"for (int i = 0; i < {count}; i++) buckets[latency_bucket(values[i])]++;"
        "for (int percent = 1; percent <= 100; percent++)"
        f'  printf("%llu\\n", latency_percentile(buckets, {count}, values[{count - 1}], percent));'
    )
    for percent, found in enumerate(map(int, told), start=1):
        exact = values[math.ceil(count * percent / 100) - 1]
        assert exact <= found <= min(exact * (1 + 1 / 128), values[-1])
