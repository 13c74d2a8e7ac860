"""Capture files are read as scapy and Wireshark write them; what is cut or of another kind is told in one line."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.errors import UsageError
from pdrgate.traffic.packet_capture import MOST_PACKETS, packets_of

PACKETS = (bytes(range(60)), b"\xff" * 14, bytes(1500))


def pcap(packets: tuple[bytes, ...], order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    return head + b"".join(struct.pack(f"{order}IIII", 1, 2, len(one), len(one)) + one for one in packets)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)


def pcapng(packets: tuple[bytes, ...], order: str = "<", link: int = 1, simple: bool = False) -> bytes:
    section = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    interface = block(order, 1, struct.pack(f"{order}HHI", link, 0, 0))
    statistics = block(order, 5, bytes(12))
    enhanced = [
        block(order, 3, struct.pack(f"{order}I", len(one)) + one)
        if simple
        else block(order, 6, struct.pack(f"{order}IIIII", 0, 0, 0, len(one), len(one)) + one)
        for one in packets
    ]
    return section + interface + statistics + b"".join(enhanced)


@pytest.mark.parametrize(
    "content",
    [
        pcap(PACKETS), pcap(PACKETS, ">"), pcap(PACKETS, magic=0xA1B23C4D), pcap(PACKETS, link=0x4000_0001),
        pcapng(PACKETS), pcapng(PACKETS, ">"), pcapng(PACKETS, simple=True),
        pcapng(PACKETS[:1]) + pcapng(PACKETS[1:], ">"),
    ],
)  # fmt: skip
def test_packets_are_those_of_the_file_in_its_order(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "vectors.pcap"
    file.write_bytes(content)
    assert packets_of(file) == PACKETS


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no capture file"),
        (b"PK\x03\x04 something", "is no capture file"),
        (pcap(()), "holds no packet"),
        (pcap(PACKETS)[:-1], "is cut short after 2 packets"),
        (pcap(PACKETS)[:30], "is cut short after 0 packets"),
        (pcap(PACKETS)[:22], "is cut short after 0 packets"),
        (pcap(PACKETS, link=101), "holds packets of link type 101"),
        (pcap((b"\0" * 14,) * (MOST_PACKETS + 1)), f"more than {MOST_PACKETS} packets"),
        (pcapng(PACKETS)[:-5], "is cut short after 2 packets"),
        (pcapng(PACKETS, link=113), "holds packets of link type 113"),
        (pcapng(PACKETS)[:28] + block("<", 6, bytes(20)), "of interface 0, which it does not describe"),
        (pcapng(()) + struct.pack("<II", 6, 8), "a block of 8 bytes"),
        (pcap(()) + struct.pack("<IIII", 0, 0, 10, 99) + bytes(10), "only 10 of a packet's 99 bytes"),
        (pcap(()) + struct.pack("<IIII", 0, 0, 1 << 30, 1 << 30), "a packet of 1073741824 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_capture_is_told_in_one_line(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "vectors.pcap"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        packets_of(file)
    assert told in str(caught.value)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory; name a pcap"):
        packets_of(tmp_path / "none.pcap")


@given(st.binary(max_size=200), st.sampled_from([pcap(PACKETS)[:24], pcapng(PACKETS)[:28], pcapng(PACKETS)[:48]]))
def test_no_content_is_more_than_an_error(tmp_path_factory: pytest.TempPathFactory, rest: bytes, head: bytes) -> None:
    file = tmp_path_factory.mktemp("capture") / "vectors.pcap"
    file.write_bytes(head + rest)
    try:
        assert all(len(packet) <= len(rest) for packet in packets_of(file))
    except UsageError as error:
        assert "\n" not in str(error)
