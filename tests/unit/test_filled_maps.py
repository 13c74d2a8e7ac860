"""What a user writes of maps and variables, in the bytes that a program reads; what does not fit is told."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from pdrgate.bpf import filling
from pdrgate.bpf.filling import check_setup, orders
from pdrgate.bpf.values import expanded
from pdrgate.builds.bpf_build import BpfBuild, BpfBuildError, bpf_build
from pdrgate.builds.program_setup import ProgramSetup, filling_of_file, fillings, variables
from pdrgate.values.errors import PdrGateError, UsageError

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed: run ci/bootstrap")

SOURCE = r"""
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef u16 __be16; typedef u32 __be32;
#define __uint(name, val) int (*name)[val]
#define __type(name, val) val *name
#define SEC(name) __attribute__((section(name), used))
#define MAP SEC(".maps")
enum mode { NONE, FAST, SLOW };
struct in6 { union { u8 bytes[16]; __be32 words[4]; } in6_u; };
struct vip { union { __be32 vip; __be32 vipv6[4]; }; __be16 port; u8 proto; };
struct meta { u32 flags; u32 number; enum mode mode; u8 mac[6]; char label[8]; u32 low : 3; u32 high : 5; };
struct prefix { u32 length; u8 address[4]; };
struct place { u32 index; u32 program; };
struct { __uint(type, 1); __uint(max_entries, 8); __type(key, struct vip); __type(value, struct meta);
} vip_map MAP;
struct { __uint(type, 2); __uint(max_entries, 8); __type(key, u32); __type(value, u64); } ctl MAP;
struct { __uint(type, 11); __uint(max_entries, 8); __type(key, struct prefix); __type(value, u32); } routes MAP;
struct { __uint(type, 1); __uint(max_entries, 8); __type(key, struct in6); __type(value, __be16); } hosts MAP;
struct { __uint(type, 14); __uint(max_entries, 8);
__uint(key_size, 4); __uint(value_size, 8); } ports MAP;
struct { __uint(type, 3); __uint(max_entries, 8); __uint(key_size, 4); __uint(value_size, 4); } calls MAP;
struct { __uint(type, 17); __uint(max_entries, 8);
__uint(key_size, 4); __uint(value_size, 4); } sockets MAP;
volatile const u32 limit = 1; volatile const struct vip one = {}; u64 seen = 0;
SEC("xdp") int first(void *ctx) { seen += limit + one.proto; return 2; }
SEC("xdp") int second(void *ctx) { return 1; }
"""
NAMES = {"@in.ifindex": "7", "@in.mac": "02:00:00:00:00:0a"}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps")
    (folder / "some.c").write_text(SOURCE)
    subprocess.run(("clang", "-O2", "-g", "-target", "bpf", "-c", "some.c", "-o", "some.o"), cwd=folder, check=True)
    return folder / "some.o"


def build(compiled: Path, folder: Path, text: str, *told: str) -> BpfBuild:
    (folder / "maps.yaml").write_text(text)
    setup = ProgramSetup(maps=fillings(folder / "maps.yaml") if text else (), variables=variables(told))
    return bpf_build(f"{compiled}:first", setup=setup)


def ordered(compiled: Path, folder: Path, text: str, *told: str) -> list[list[str]]:
    return [line.split() for line in orders(build(compiled, folder, text, *told), NAMES).splitlines()]


def test_a_map_is_written_once_and_anew_where_the_sut_is_another(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build(compiled, tmp_path, "routes: {each /16 of 10.0.0.0/8: 1}\nhosts: {'::1': 5}\nctl: {1: '@in.ifindex'}")
    first, keys = orders(made, NAMES), []
    monkeypatch.setattr(filling, "expanded", lambda key, *, prefixes: keys.append(key) or expanded(key))
    assert orders(made, dict(NAMES)) == first
    assert keys == []
    moved = orders(made, {**NAMES, "@in.ifindex": "9"})
    assert set(keys) == {"1"}
    assert [
        (one, other) for one, other in zip(first.splitlines(), moved.splitlines(), strict=True) if one != other
    ] == [("element ctl 01000000 0700000000000000", "element ctl 01000000 0900000000000000")]
    assert len(first.splitlines()) == 256 + 2


def test_structs_are_written_by_the_names_of_their_fields(compiled: Path, tmp_path: Path) -> None:
    text = """
vip_map:
- key: {vip: 198.18.0.1, port: 53, proto: 17}
  value: {flags: 0x10, number: -1, mode: SLOW, mac: 02:00:00:00:00:01, label: web, low: 5, high: 17}
"""
    (one,) = ordered(compiled, tmp_path, text)
    key = bytes((198, 18, 0, 1)) + bytes(12) + struct.pack(">H", 53) + bytes((17, 0))
    value = struct.pack("<III", 16, 0xFFFFFFFF, 2) + bytes.fromhex("020000000001") + b"web".ljust(8, b"\0")
    assert one[:2] == ["element", "vip_map"]
    assert bytes.fromhex(one[2]) == key
    assert bytes.fromhex(one[3])[: len(value)] == value
    assert int.from_bytes(bytes.fromhex(one[3])[26:28], "little") == 5 | 17 << 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ctl: {0: 1}", [("00000000", "0100000000000000")]),
        ("ctl: {1: net 1}", [("01000000", "0000000000000001")]),
        ("ctl: {2: '@in.mac'}", [("02000000", "02000000000a0000")]),
        ("ctl: {0..2: '@n'}", [(f"0{n}000000", f"0{n}00000000000000") for n in range(3)]),
        ("ctl: {host 1.2.3.4: 010}", [("04030201", "0a00000000000000")]),
        ("ctl: {hex 00 11 22 33: true}", [("00112233", "0100000000000000")]),
        ("routes: {10.1.0.0/16: 1.2.3.4}", [("10000000" + "0a010000", "01020304")]),
        ("routes: {each /9 of 10.0.0.0/8: 1}", [("09000000" + net, "01000000") for net in ("0a000000", "0a800000")]),
        ("routes: [{key: {length: 8, address: [10]}, value: 2}]", [("08000000" + "0a000000", "02000000")]),
        ("hosts: {'2001:2::1': 53}", [("20010002" + "00" * 11 + "01", "0035")]),
        ("ports: {'@in.ifindex': '@in.ifindex'}", [("07000000", "0700000000000000")]),
    ],
)
def test_values_are_written_in_the_words_of_the_field(
    compiled: Path, tmp_path: Path, text: str, found: list[tuple[str, str]]
) -> None:
    assert [tuple(one[2:]) for one in ordered(compiled, tmp_path, text)] == found


def test_networks_and_ranges_of_a_hash_are_their_addresses(compiled: Path, tmp_path: Path) -> None:
    text = "vip_map: [{key: {vip: 10.0.0.0/30, port: 1..2}, value: {number: '@n'}}]"
    found = ordered(compiled, tmp_path, text)
    assert len({one[2] for one in found}) == 8
    assert [int.from_bytes(bytes.fromhex(one[3])[4:8], "little") for one in found] == list(range(8))


def test_programs_and_queues_are_named(compiled: Path, tmp_path: Path) -> None:
    text = (
        "calls: {3: second}\nports: {1: {ifindex: '@in.ifindex', program: second}}\nctl: {max_entries: 9, entries: {}}"
    )
    assert ordered(compiled, tmp_path, text) == [
        ["program", "calls", "03000000", "00000000", "0", "second"],
        ["program", "ports", "01000000", "0700000000000000", "4", "second"],
        ["size", "ctl", "9"],
    ]


def test_tables_are_read_by_their_columns(compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "vips.csv").write_text("key.vip, key.port, value.flags\n# one\n1.2.3.4, 80, 1\n\n5.6.7.8, 81, 2\n")
    found = ordered(compiled, tmp_path, "vip_map: vips.csv")
    assert [one[2][:8] + one[2][32:36] for one in found] == ["010203040050", "050607080051"]
    one = filling_of_file("vip_map", tmp_path / "vips.csv")
    assert [key for key, _ in one.entries] == [{"vip": "1.2.3.4", "port": "80"}, {"vip": "5.6.7.8", "port": "81"}]


def test_variables_are_set_before_the_program_is_loaded(compiled: Path, tmp_path: Path) -> None:
    assert ordered(compiled, tmp_path, "", "limit=0x20", "one={port: 1}") == [
        ["value", "limit", "20000000"],
        ["value", "one", "00" * 16 + "00010000"],
    ]


@pytest.mark.parametrize(
    ("text", "told", "message"),
    [
        ("vips: {1: 2}", (), r"maps\.yaml: some\.o:first has no map vips; it has vip_map, ctl, routes, hosts, ports"),
        ("vip_map: {1: 2}", (), r"map vip_map: key is a struct; write its fields by their names: vip, vipv6, port, "),
        (
            "vip_map: [{key: {ip: 1}, value: {}}]",
            (),
            r"map vip_map: key has no field ip; its fields are vip, vipv6, po",
        ),
        (
            "vip_map: [{key: {}, value: {mac: 1.2.3.4}}]",
            (),
            r"map vip_map: value\.mac has 6 bytes, and 1\.2\.3\.4 is 4",
        ),
        ("vip_map: [{key: {}, value: {low: 8}}]", (), r"value\.low has 3 bits, and 8 does not fit into them"),
        ("vip_map: [{key: {proto: 256}, value: {}}]", (), r"key\.proto has 1 bytes, and 256 does not fit into them"),
        (
            "vip_map: [{key: {}, value: {label: much too long}}]",
            (),
            r"value\.label has 8 elements, 8 bytes; write them",
        ),
        ("ctl: {a: 1}", (), r"map ctl: key is a number of 4 bytes, and 'a' is none"),
        ("ctl: {'@in.index': 1}", (), r"map ctl: key: there is no @in\.index; there are @in\.ifindex"),
        ("calls: {1: third}", (), r"map calls: value is a program of the object, and third is none; it has first, sec"),
        ("ports: {1: {index: 1}}", (), r"map ports: value has no field index; its fields are ifindex, program"),
        ("sockets: {1: 1}", (), r"map sockets: a xskmap takes no elements from a file; fill it by a loader"),
        ("routes: {'2001::/16': 1}", (), r"map routes: key 2001::/16 has 16 bytes, and the trie's addresses 4"),
        ("ctl: {0..9999999: 1}", (), r"map ctl: its ranges come to more than \d+ elements; make them smaller"),
        ("", ("limits=1",), r"some\.o: has no global variable limits; it has .*limit"),
        ("", ("limit=[1]",), r"variable limit is a number of 4 bytes; write one"),
    ],
)
def test_what_does_not_fit_is_told_by_map_key_and_field(
    compiled: Path, tmp_path: Path, text: str, told: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BpfBuildError, match=message) as error:
        check_setup(build(compiled, tmp_path, text, *told))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("maps.yaml", "[1]", r"maps\.yaml: has no maps by their names; write vip_map: "),
        ("maps.yaml", "a: {b: [", r"maps\.yaml: is no YAML: "),
        ("maps.yaml", "ctl: [1]", r"maps\.yaml: map ctl: entry 1 has no key and value; write - \{key: 1, value: 2\}"),
        ("maps.yaml", "ctl: {max_entries: many, entries: {}}", r"map ctl: max_entries is a number"),
        ("maps.yaml", "ctl: none.csv", r"none\.csv: No such file or directory; name a file of maps, such as "),
        ("maps.yaml", b"\xff\xfe\xff", r"maps\.yaml: is no text in UTF-8; write it as YAML or CSV"),
        ("maps.csv", "port,value\n1,2\n", r"maps\.csv: map ctl: column port is none of a key or a value; name columns"),
        ("maps.csv", "key,value\n1\n", r"maps\.csv: line 2 has 1 columns and the first one 2"),
    ],
)
def test_files_that_say_nothing_of_maps(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PdrGateError, match=message) as error:
        if file.suffix == ".csv":
            filling_of_file("ctl", file)
        else:
            fillings(file)
    assert "\n" not in str(error.value)


def test_what_a_program_is_set_up_with_makes_another_build(compiled: Path, tmp_path: Path) -> None:
    plain, one, two = (build(compiled, tmp_path, text) for text in ("", "ctl: {0: 1}", "ctl: {0: 2}"))
    assert len({plain.digest, one.digest, two.digest, build(compiled, tmp_path, "", "limit=1").digest}) == 4
    (other := tmp_path / "elsewhere").mkdir()
    assert build(compiled, other, "ctl: {0: 1}").digest == one.digest


def test_an_object_without_types_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "some.c").write_text(SOURCE)
    subprocess.run(("clang", "-O2", "-target", "bpf", "-c", "some.c", "-o", "some.o"), cwd=tmp_path, check=True)
    with pytest.raises(BpfBuildError, match=r"cannot fill its maps: it has no types .*; compile it with clang -g$"):
        check_setup(build(tmp_path / "some.o", tmp_path, "ctl: {0: 1}"))


def test_damaged_types_are_told_in_one_line(compiled: Path, tmp_path: Path) -> None:
    content = bytearray(compiled.read_bytes())
    at = content.index(struct.pack("<H", 0xEB9F))
    for place in range(at, at + 4000, 13):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        file = tmp_path / "bad.o"
        file.write_bytes(damaged)
        try:
            check_setup(build(file, tmp_path, "vip_map: [{key: {vip: 1.2.3.4}, value: {mac: 02:00:00:00:00:01}}]"))
        except BpfBuildError as error:
            assert "\n" not in str(error)


def test_the_only_program_of_an_old_section_is_meant_where_it_is_said_what_for(tmp_path: Path) -> None:
    text = '__attribute__((section("xdp_sock"), used)) int only(void *ctx) { return 2; }'
    (tmp_path / "old.c").write_text(text)
    subprocess.run(("clang", "-O2", "-target", "bpf", "-c", "old.c", "-o", "old.o"), cwd=tmp_path, check=True)
    with pytest.raises(BpfBuildError, match=r"are for \(only in xdp_sock\); say it with --set attach=xdp, or "):
        bpf_build(tmp_path / "old.o")
    found = bpf_build(tmp_path / "old.o", setup=ProgramSetup(attach="xdp-generic"))
    assert (found.program, found.kind) == ("only", "xdp")


def test_a_device_without_an_end_is_no_file_of_maps() -> None:
    with pytest.raises(UsageError, match=r"/dev/zero: is larger than 64 MiB; write ranges"):
        fillings(Path("/dev/zero"))
