"""Traffic by words and captures: frames that are right at every layer, and words that mean one thing or are refused."""

from __future__ import annotations

import struct
from collections import Counter
from ipaddress import IPv6Address, ip_address
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_frames import layers, reassembled

from pdrgate.cli import main
from pdrgate.data_paths.contract import Hop, Port, directions
from pdrgate.data_paths.forwarded_frames import routed
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.run.scenario_file import scenario_of
from pdrgate.hosts.host import local_host
from pdrgate.keywords.describing import ScenarioKeywords
from pdrgate.keywords.state import State
from pdrgate.traffic.chosen.frame_table import FrameTable, frame_table
from pdrgate.traffic.chosen.tail_mark import MARK_ROOM, TailMark, marked
from pdrgate.traffic.chosen.traffic_words import chosen_traffic, from_anywhere
from pdrgate.traffic.frame_fields import frame_differences
from pdrgate.traffic.frames import Path
from pdrgate.traffic.headers import complete_ipv4
from pdrgate.values.errors import EXIT_USAGE, DataError, PdrGateError, UsageError

IN_MAC, SUT_MAC, OUT_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
V4 = (
    Path("in", IN_MAC, SUT_MAC, ip_address("198.19.0.1"), ip_address("198.18.0.0")),
    Path("out", OUT_MAC, "02:00:00:00:00:0d", ip_address("198.18.0.1"), ip_address("198.19.0.0")),
)
V6 = (
    Path("in", IN_MAC, SUT_MAC, ip_address("2001:2:0:2::1"), ip_address("2001:2:0:1::"), (IPv6Address("fd00::1"),)),
    Path("out", OUT_MAC, "02:00:00:00:00:0d", ip_address("2001:2:0:1::1"), ip_address("2001:2:0:2::")),
)
PACKETS = (
    "udp", "tcp flags=S", "tcp flags=FRPAUEC", "tcp flags=A options=0x0101080a0000000100000002", "icmp", "icmpv6",
    "ip proto=99", "udp payload=0x0102030405",
)  # fmt: skip
AROUND = ("ipip", "ipip src=fd00::1 dst=fd00::2", "gre", "gre key=7", "vxlan vni=9", "srv6 via=fd00::9,fd00::8")


def table(*texts: str, paths: tuple[Path, Path] = V4, size: int = 64) -> FrameTable:
    return frame_table(chosen_traffic(texts), paths, size)


def with_addresses(words: str, version: int) -> str:
    """The same with addresses of its own, so that any testbed can send it."""
    known = version if not words.startswith("icmp") else 6 if words.startswith("icmpv6") else 4
    addresses = {4: "src=10.1.0.1 dst=10.2.0.1", 6: "src=fd00:1::1 dst=fd00:2::1"}[known]
    return f"{words} {addresses}"


def plain(words: str) -> str:
    if "src=" in words:
        return words
    if words.startswith("srv6"):
        return f"{words} src=fd00:7::1 dst=fd00:7::2"
    return f"{words} src=192.0.2.1 dst=192.0.2.2"


MARKS = st.builds(
    TailMark,
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 0xFFFF),
)


@settings(max_examples=150, deadline=None)
@given(
    packet=st.sampled_from(PACKETS),
    version=st.sampled_from([4, 6]),
    around=st.lists(st.sampled_from(AROUND), max_size=3),
    size=st.integers(64, 1518),
    vlan=st.sampled_from(["", " vlan=7"]),
    mark=MARKS,
)
def test_every_checksum_is_right_whatever_the_mark(
    packet: str, version: int, around: list[str], size: int, vlan: str, mark: TailMark
) -> None:
    parts = [with_addresses(packet, version), *map(plain, around)]
    parts[-1] += vlan
    made = table(" in ".join(parts) + " flows=1", size=size)
    (frame,) = made.frames
    assert len(frame) == size - 4 or 60 <= size - 4 < len(frame) == len(
        table(" in ".join(parts) + " flows=1").frames[0]
    )
    zeros = layers(frame)
    assert frame[-MARK_ROOM:] == bytes(MARK_ROOM)
    sent = marked(frame, bytes(mark))
    assert layers(sent) == zeros
    assert TailMark.of(sent) == mark
    assert frame[:6].hex(":") == SUT_MAC
    assert ("vlan" in zeros) == bool(vlan)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["udp", "tcp flags=S", "icmp"]),
    st.integers(2, 6),
    st.integers(64, 1518),
    st.binary(max_size=40),
    st.lists(MARKS, min_size=6, max_size=6),
)
def test_fragments_come_to_a_right_packet_whatever_their_marks(
    words: str, count: int, size: int, payload: bytes, marks: list[TailMark]
) -> None:
    made = table(f"{words} fragments={count} size={max(size, 120)} flows=1 payload=0x{payload.hex()}" if payload else
                 f"{words} fragments={count} size={max(size, 120)} flows=1")  # fmt: skip
    assert len(made.frames) == count
    fragments = [marked(frame, bytes(mark)) for frame, mark in zip(made.frames, marks, strict=False)]
    assert all(layers(one) == ["ethernet", "ipv4", "fragment"] for one in fragments)
    assert layers(reassembled(fragments))[:2] == ["ethernet", "ipv4"]


def test_ipv6_fragments_are_of_one_packet() -> None:
    made = table("udp fragments=2 flows=3", paths=V6)
    assert len(made.frames) == 6
    assert list(made.order) == list(range(6))
    assert [layers(frame) for frame in made.frames] == [["ethernet", "ipv6", "fragment"]] * 6
    first, second = made.frames[:2]
    assert first[58:62] == second[58:62] != made.frames[2][58:62]
    assert int.from_bytes(second[56:58]) == len(first) - 62


def test_what_is_not_said_comes_from_the_testbed() -> None:
    (frame,) = table("udp flows=1").frames
    assert (frame[:6].hex(":"), frame[6:12].hex(":")) == (SUT_MAC, IN_MAC)
    assert (ip_address(frame[26:30]), ip_address(frame[30:34])) == (ip_address("198.19.0.1"), ip_address("198.18.0.1"))
    assert len(frame) == 60
    (back,) = table("udp flows=1 from=out dmac=@in dst=@in+7").frames
    assert ip_address(back[30:34]) == ip_address("198.19.0.7")
    assert (back[:6].hex(":"), back[6:12].hex(":")) == (IN_MAC, OUT_MAC)
    assert chosen_traffic(["udp; tcp from=out"]).directions == 2


def test_ranges_make_flows_and_ports_the_rest() -> None:
    ports = {frame[34:36] for frame in table("udp flows=1000").frames}
    assert len(ports) == 1000
    sources = {frame[26:30] for frame in table("udp dst=198.18.0.1 dport=53 src=10.0.0.0/16 flows=1000").frames}
    assert len(sources) == 1000
    assert all(source[:2] == bytes((10, 0)) for source in sources)
    both = {(frame[26:30], frame[34:36]) for frame in table("udp src=10.0.0.1-10.0.0.3 flows=300").frames}
    assert len(both) == 300
    assert len({source for source, _ in both}) == 3
    assert len(table("udp dst=@out flows=10000").frames) == 10_000
    assert len(table("udp sport=7").frames) == 1
    assert len(table("icmp").frames) == 256


def test_equal_words_are_equal_traffic() -> None:
    words = "udp src=10.0.0.0/8 flows=500 draw=zipf"
    assert table(words) == table(words)
    assert chosen_traffic([words]).digest == chosen_traffic([f" {words.replace(' ', '  ')}"]).digest
    assert chosen_traffic([words]).digest != chosen_traffic([words + " ttl=9"]).digest
    assert table(words).frames != table(words + " ttl=9").frames


@pytest.mark.parametrize("version", [4, 6])
def test_one_traffic_has_addresses_of_the_testbed_of_both_ip_versions(version: int) -> None:
    paths = directions(version, ("in", "out"), Port("i", SUT_MAC, IN_MAC), Port("o", "02:00:00:00:00:0d", OUT_MAC))
    words = "udp dst=@out4+7 flows=1; tcp src=@in6+5 flows=1; icmp src=@in4 flows=1; udp src=@out6 from=out flows=1"
    made = table(words, paths=paths)
    ends = [
        (str(ip_address(one[26:30])), str(ip_address(one[30:34]))) if one[12:14] == b"\x08\0"
        else (str(ip_address(one[22:38])), str(ip_address(one[38:54])))
        for one in made.frames
    ]  # fmt: skip
    assert ends[:2] == [("198.19.0.1", "198.18.0.7"), ("2001:2:0:2::5", "2001:2:0:1::1")]
    assert [layers(one)[1] for one in made.frames] == ["ipv4", "ipv6", "ipv4", "ipv6"]
    assert ends[3][1] == "2001:2:0:2::1"


def test_frames_have_two_tags_and_extension_headers_where_they_are_chosen() -> None:
    words = "udp dst=@out extensions=3 vlan=100 vlan2=200 flows=1; tcp extensions=1 fragments=2 flows=1"
    tagged, *fragments = table(words, paths=V6).frames
    assert layers(tagged) == ["ethernet", "vlan", "vlan", "ipv6", "options", "options", "options", "udp"]
    assert tagged[12:20] == bytes.fromhex("88a8 0064 8100 00c8")
    assert [layers(one) for one in fragments] == [["ethernet", "ipv6", "fragment"]] * 2
    assert fragments[0][54] == 60


def test_zipf_sends_the_first_flow_most_often() -> None:
    counts = Counter(table("udp flows=1000 draw=zipf").order)
    assert len(counts) > 900
    assert 0.10 < counts[0] / counts.total() < 0.17  # 1 / H(1000) is 0.134
    assert 1.6 < counts[0] / counts[1] < 2.4
    uniform = Counter(table("udp flows=1000 draw=uniform").order)
    assert max(uniform.values()) < 50


def test_parts_are_sent_by_their_weights() -> None:
    made = table("udp flows=10 weight=3; tcp flags=S flows=10")
    kinds = ["tcp" if made.frames[at][23] == 6 else "udp" for at in made.order]
    assert [Counter(kinds[at : at + 4]) for at in (0, 4, 8)] == [{"udp": 3, "tcp": 1}] * 3
    assert Counter(kinds)["udp"] == 3 * Counter(kinds)["tcp"]
    assert set(made.order) == set(range(20))
    assert table("udp flows=2", "tcp flows=2").directions == (0,) * 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "no traffic is chosen; say such as: udp"),
        ("upd dport=53", "'upd' is no word that can stand first; use udp, tcp, icmp"),
        ("udp dport=99999", "dport: 99999 is out of range; use 0 to 65535"),
        ("udp dport=x", "dport: 'x' is no number and no range"),
        ("udp dport=9-5", "begins above its end; write 5-9"),
        ("udp port=53", "udp has no 'port'; it has src, dst, ttl"),
        ("udp dport=53 dport=54", "dport is said twice"),
        ("udp 53", "'53' says nothing of udp; use key=value"),
        ("tcp flags=XY", "'XY' are no TCP flags"),
        ("udp dst=198.18.0.300", "is no address"),
        ("udp dst=198.18.0.1 src=fd00::1", "addresses of another IP version"),
        ("icmp dst=fd00::1", "icmp has addresses of another IP version; use those of IPv4"),
        ("udp dst=@far", "is no network of the testbed; use @out or @in"),
        ("udp sport=7 flows=2", "flows=2 are more than the 1 that its ranges make; give a longer range"),
        ("udp flows=70000", "flows: 70000 is out of range; use 1 to 65536"),
        ("udp size=64 in vxlan", "size=64 is too small: with its headers and the mark it has"),
        ("udp vlan=7 in ipip", "udp has no 'vlan'"),
        ("udp in mpls", "mpls has no label"),
        ("udp in mpls label=5 in gre", "mpls cannot be in gre"),
        ("udp in tcp", "'tcp' is no word that can stand behind `in`; use ipip, gre"),
        ("udp in srv6 src=fd00::1 dst=fd00::2", "srv6 has no segments here"),
        ("icmpv6", "icmpv6 is IPv6, and the data path is IPv4's; say src=@in6, on a path that has both"),
        ("udp dst=@out6", "the testbed has no IPv6 address; give src and dst"),
        ("udp dst=@out7", "is no network of the testbed"),
        ("tcp options=0x0204", "are no options of TCP; write 4 to 40 bytes, a multiple of 4"),
        ("tcp options=mss", "are no options of TCP"),
        ("udp extensions=2", "IPv4 has no extension headers"),
        ("udp vlan2=7", "udp has a second tag and no first; say vlan=100 too"),
        ("tcp options=0x12345", "options: has no whole bytes"),
        ("udp draw=often", "draw: 'often' is none; use turn or uniform or zipf"),
        ("udp payload='x", "no closing quotation"),
        ("udp payload=0x123", "payload: has no whole bytes"),
        ("udp dmac=02:00", "'02:00' is no MAC address"),
        ("ip fragments=2", "fragments are made of udp, tcp or icmp"),
        ("udp flows=9000 weight=997; tcp flows=60000", "packets until it begins again"),
    ],
)
def test_words_without_a_meaning_are_refused_in_one_line(words: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        table(words)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.sampled_from("udptcinrge=,.:;@/-+0123456789 xflows'\"\\"), max_size=40), max_size=3))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    try:
        table(*texts)
    except PdrGateError as error:
        assert "\n" not in str(error)


# --- Captures ---


def classic(*frames: bytes, link: int = 1) -> bytes:
    records = b"".join(struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in frames)
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link) + records


def block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def next_generation(*frames: bytes) -> bytes:
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(1, struct.pack("<HHI", 1, 0, 0))
    told = b"".join(block(6, struct.pack("<IIIII", 0, 0, 0, len(one), len(one)) + one) for one in frames)
    return section + interface + block(5, b"\0" * 12) + told


ARP = bytes.fromhex("ffffffffffff02000000000f0806") + bytes(28)


@settings(max_examples=80, deadline=None)
@given(
    packet=st.sampled_from(PACKETS),
    version=st.sampled_from([4, 6]),
    around=st.lists(st.sampled_from(AROUND[:5]), max_size=2),
    size=st.integers(64, 1518),
    padding=st.integers(0, 6),
    mark=MARKS,
)
def test_captured_frames_get_room_for_a_mark(
    packet: str, version: int, around: list[str], size: int, padding: int, mark: TailMark,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    (frame,) = table(" in ".join([with_addresses(packet, version), *map(plain, around)]) + " flows=1", size=size).frames
    if len(frame) + padding > 1514:
        padding = 0
    file = tmp_path_factory.mktemp("captures") / "one.pcap"
    file.write_bytes(classic(frame + b"\xee" * padding))
    (roomy,) = table(str(file)).frames
    assert len(roomy) == (len(frame) + MARK_ROOM if len(frame) + MARK_ROOM <= 1514 else len(frame))
    sent = marked(roomy, bytes(mark))
    assert layers(sent) == layers(frame)
    assert TailMark.of(sent) == mark


@pytest.mark.parametrize("write", [classic, next_generation])
def test_both_formats_are_read(tmp_path: FilePath, write: object) -> None:
    frames = table("udp flows=3; tcp flags=SA flows=2; udp flows=1 in vxlan", size=100).frames
    file = tmp_path / "some.pcapng"
    file.write_bytes(write(*frames, ARP))  # type: ignore[operator]
    made = table(f"{file} weight=2")
    assert len(made.frames) == 7
    assert [layers(frame) for frame in made.frames[:-1]] == [layers(frame) for frame in frames]
    assert all(frame[:12].hex(":") == f"{SUT_MAC}:{IN_MAC}" for frame in made.frames)
    assert len(made.frames[-1]) == 60
    kept = table(f"{file} macs=keep from=out")
    assert kept.frames[-1][:12] == ARP[:12]
    assert set(kept.directions) == {1}
    assert chosen_traffic([str(file)]).digest == chosen_traffic([str(file)]).digest
    assert str(tmp_path) not in chosen_traffic([str(file)]).words


def test_checksums_that_a_card_was_to_complete_are_complete(tmp_path: FilePath) -> None:
    (frame,) = table("udp flows=1").frames
    file = tmp_path / "partial.pcap"
    file.write_bytes(classic(frame[:40] + b"\x12\x34" + frame[42:]))
    assert layers(table(str(file)).frames[0]) == ["ethernet", "ipv4", "udp"]


def test_captures_that_cannot_be_sent_are_refused(tmp_path: FilePath) -> None:
    file = tmp_path / "bad.pcap"
    fragment = table("udp fragments=2 flows=1").frames[0]
    long = table("udp flows=1").frames[0] + bytes(2000)
    long = long[:16] + struct.pack("!H", len(long) - 14) + long[18:]
    for frame, told in ((fragment, "packet 1 is a fragment"), (long, "packet 1 has 2060 bytes, and 1514 is the most")):
        file.write_bytes(classic(frame))
        with pytest.raises(DataError, match=told):
            table(str(file))
    with pytest.raises(DataError, match="No such file"):
        table(str(tmp_path / "none.pcap"))
    file.write_bytes(classic(fragment, link=113))
    with pytest.raises(DataError, match="link type 113"):
        table(str(file))


@settings(max_examples=200, deadline=None)
@given(data=st.binary(min_size=14, max_size=120), ethertype=st.sampled_from([0x0800, 0x86DD, 0x8100]))
def test_any_captured_frame_is_sent_or_refused(
    data: bytes, ethertype: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = data[:12] + struct.pack("!H", ethertype) + bytes([0x45 if ethertype == 0x0800 else 0x60]) + data[12:]
    file = tmp_path_factory.mktemp("captures") / "any.pcap"
    file.write_bytes(classic(frame))
    try:
        (made,) = table(str(file)).frames
    except DataError:
        return
    assert made[-MARK_ROOM:] == bytes(MARK_ROOM)


# --- In a scenario ---


def test_a_scenario_with_traffic_is_another_question() -> None:
    traffic = chosen_traffic(["udp dst=@out dport=53", "tcp flags=S from=out"])
    scenario = Scenario("ipv4-routing", traffic=traffic)
    assert scenario.name == f"ipv4-routing-1cpu-4096-64B-traffic_{traffic.digest}"
    assert "64-byte frames like udp dst=@out dport=53; tcp flags=S from=out" in scenario.title
    assert scenario.terms == {"traffic": traffic.words}
    assert (scenario.frames.chosen, scenario.frames.directions) == (traffic, 2)
    assert Scenario("ipv4-routing").terms == {}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"data_path": "udp-delivery"}, "count pdrgate's own packets"),
        ({"data_path": "tcp-transfer"}, "is a closed loop and has no traffic"),
        ({"flows": 3}, "leave the scenario's flows out"),
        ({"frame_size": "imix"}, "leave IMIX out"),
        ({"directions": 2}, "leave directions out"),
    ],
)
def test_what_does_not_go_with_chosen_traffic_is_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Scenario(**{"data_path": "ipv4-routing", "traffic": chosen_traffic(["udp"]), **more})


def test_a_scenario_file_has_traffic_and_captures_beside_it(tmp_path: FilePath) -> None:
    (tmp_path / "some.pcap").write_bytes(classic(ARP))
    file = tmp_path / "nat.yaml"
    file.write_text("name: nat\ntraffic: [udp dst=@out flows=7, some.pcap weight=2]\n")
    traffic = scenario_of(file).traffic
    assert traffic is not None
    assert traffic.words == "udp dst=@out flows=7; some.pcap weight=2"
    file.write_text("name: nat\ntraffic: udp port=7\n")
    with pytest.raises(UsageError, match=r"nat\.yaml: traffic 'udp port=7': udp has no 'port'"):
        scenario_of(file)


def test_the_keyword_takes_parts_and_goes_on_with_them() -> None:
    state = State()
    ScenarioKeywords(state).send_packets_like("udp", "dport=53", "tcp flags=S weight=2")
    assert state.test.scenario.traffic == chosen_traffic(["udp dport=53; tcp flags=S weight=2"])
    with pytest.raises(UsageError, match="'upd' is no word"):
        ScenarioKeywords(state).send_packets_like("upd")


def test_the_command_line_tells_wrong_words_before_anything_is_set_up(
    tmp_path: FilePath, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", "--set", "traffic=udp dport=x", "--output", str(tmp_path)]) == EXIT_USAGE
    assert "dport: 'x' is no number" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_files_are_found_from_anywhere() -> None:
    assert from_anywhere("udp dport=5; a/b.pcap weight=2") == f"udp dport=5; {FilePath('a/b.pcap').absolute()} weight=2"


# --- Compared with what a router makes of them ---


@pytest.mark.parametrize(
    "words",
    ["udp fragments=3 payload=0x" + "0008" * 40, "tcp flags=S", "icmp", "udp in gre", "udp in ipip", "udp in vxlan",
     "ip proto=47", "udp in mpls label=7", "udp ttl=1"],
)  # fmt: skip
def test_a_router_makes_right_frames_of_all(words: str) -> None:
    hop = Hop(local_host(), Port("in", "02:00:00:00:01:01", IN_MAC), Port("out", "02:00:00:00:01:02", OUT_MAC))
    for frame in table(words).frames[:6]:
        sent = marked(frame, bytes(TailMark(7, 8, 9)))
        must_be = routed(sent, [hop], 0)
        assert frame_differences(must_be, must_be) == ()
        assert must_be[:12].hex(":") == f"{OUT_MAC}:02:00:00:00:01:02"
        assert layers(must_be) == layers(sent)
        changed = must_be[:-20] + bytes([must_be[-20] ^ 1]) + must_be[-19:]
        assert frame_differences(must_be, changed) != ()


def test_frames_without_ip_and_with_options_are_taken_as_they_are() -> None:
    hop = Hop(local_host(), Port("in", "02:00:00:00:01:01", IN_MAC), Port("out", "02:00:00:00:01:02", OUT_MAC))
    assert routed(ARP, [hop], 0)[12:] == ARP[12:]
    (frame,) = table("udp flows=1 size=100").frames
    longer = bytearray(frame[:34] + b"\1\1\1\1" + frame[34:])
    longer[14] = 0x46
    struct.pack_into("!H", longer, 16, len(longer) - 14)
    complete_ipv4(longer)
    assert layers(bytes(longer)) == ["ethernet", "ipv4", "udp"]
    assert frame_differences(bytes(longer), bytes(longer)) == ()
    assert layers(routed(bytes(longer), [hop], 0)) == ["ethernet", "ipv4", "udp"]
