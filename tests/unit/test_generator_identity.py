"""What a generator says of itself, in words and in a fingerprint."""

from pdrgate.traffic.generator import generator_identity, generator_in_words

TREX = {
    "name": "trex", "engine": "stl", "server": "v3.08", "client": "the server's own", "driver": "net_i40e",
    "ports": "0, 1", "captures": "a.pcap (0123), b.pcap (4567)",
}  # fmt: skip
EMBEDDED = {"name": "embedded", "engine": "xdp", "chosen": "the kernel has live frames"}


def test_in_words() -> None:
    assert generator_in_words(EMBEDDED) == "embedded, engine xdp (the kernel has live frames)"
    assert generator_in_words({"name": "simulated", "engine": "none"}) == "simulated, engine none"
    assert generator_in_words(TREX) == (
        "trex, engine stl (server v3.08; client the server's own; driver net_i40e; ports 0, 1; captures a.pcap (0123), "
        "b.pcap (4567))"
    )


def test_what_changes_the_traffic_is_in_the_fingerprint_and_nothing_else() -> None:
    assert generator_identity(EMBEDDED) == "embedded/xdp"
    assert generator_identity(TREX) == "trex/stl; server v3.08; driver net_i40e; captures a.pcap (0123), b.pcap (4567)"
    assert generator_identity(
        TREX | {"ports": "2, 3", "client": "trex-stl-lib 0.3", "chosen": "it is there"}
    ) == generator_identity(TREX)
    assert generator_identity(TREX | {"server": "v3.06"}) != generator_identity(TREX)
    assert generator_identity(TREX | {"core mask": "0x1"}) != generator_identity(TREX)
