import sys
from pathlib import Path

import pytest

from pdrgate.testbeds import load_testbed
from pdrgate.testbeds.config import GeneratorConfig
from pdrgate.testbeds.netns.netns_config import LocalNetns
from pdrgate.values.errors import EXIT_FAULT, TestbedError

SHIPPED = Path(__file__).parents[2] / "resources/testbeds/local-netns.yaml"
DEEP = 2 * sys.getrecursionlimit()

VALID = """\
name: lab-1
kind: local-netns
generator:
  kind: embedded
  engine: xdp
  cpu: 3
sut:
  hops: 2
  cpus: [2, 1]
  isolate: false
  knobs: {net.ipv4.ip_default_ttl: 32, net.ipv4.tcp_rmem: 4096 8192 16384}
"""


def test_the_shipped_testbed_loads():
    testbed = load_testbed(SHIPPED)
    assert (testbed.name, testbed.kind, testbed.generator.kind) == ("local-netns", "local-netns", "embedded")


def test_a_full_file_becomes_values(load):
    testbed = load(VALID)
    assert testbed == LocalNetns(
        name="lab-1",
        source=Path("x.yaml"),
        generator=GeneratorConfig("embedded", "xdp", 3),
        hops=2,
        cpus=(1, 2),
        isolate=False,
        knobs={"net.ipv4.ip_default_ttl": 32, "net.ipv4.tcp_rmem": "4096 8192 16384"},
    )


def test_what_may_be_left_out_is_chosen_later(load):
    testbed = load("name: a\nkind: local-netns\ngenerator: {kind: embedded}\nsut: {hops: 1}\n")
    assert testbed == LocalNetns(
        name="a", source=Path("x.yaml"), generator=GeneratorConfig("embedded", "auto", None), hops=1, cpus=None,
        isolate=True, knobs={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hops: 2", "hops: two", "x.yaml:8: sut.hops: 'two' is not of type 'integer'; write a whole number from 1 to "
         "8, the routed hops in a row"),
        ("hops: 2", "hops: yes", "x.yaml:8: sut.hops: True is not of type 'integer'; write a whole number from 1 to "
         "8, the routed hops in a row"),
        ("hops: 2", "hops: 9", "x.yaml:8: sut.hops: 9 is greater than the maximum of 8; write a whole number from 1 to "
         "8, the routed hops in a row"),
        ("hops: 2", "hop: 2", "x.yaml:8: sut.hop: unknown key; did you mean hops? (and 1 more)"),
        ("  hops: 2\n", "", "x.yaml:7: sut: the key hops is missing; add it, see resources/testbeds/local-netns.yaml"),
        ("hops: 2", "hops: 2\n  hops: 3", "x.yaml:9: sut.hops: is there twice, also in line 8; keep one"),
        ("hops: 2", "hops: 2\n  42: x", "x.yaml:9: sut.42: unknown key; known are hops, cpus, isolate, knobs"),
        ("cpus: [2, 1]", "cpus: [1, x]", "x.yaml:9: sut.cpus: [1, 'x'] does not fit; write auto or a list of CPU "
         "numbers, each once"),
        ("cpus: [2, 1]", "cpus: [3]", "x.yaml:9: sut.cpus: CPU 3 is the generator's too (generator.cpu); the two must "
         "not share one"),
        ("isolate: false", "isolate: maybe", "x.yaml:10: sut.isolate: 'maybe' is not of type 'boolean'; write true or "
         "false: whether packet work goes before other processes on the SUT's CPUs"),
        ("net.ipv4.ip_default_ttl", "ttl", "x.yaml:11: sut.knobs.ttl: unknown key; write sysctls by name "
         "(net.ipv4.ip_forward: 1), or the keys sysctls, ports, cpu, irqbalance, firewall, neighbours, missing"),
        ("net.ipv4.ip_default_ttl", "net..ttl", "x.yaml:11: sut.knobs: 'net..ttl' is no sysctl name; write one such as "
         "net.ipv4.ip_forward"),
        ("net.ipv4.ip_default_ttl", "kernel.panic", "x.yaml:11: sut.knobs: kernel.panic is a setting of the whole "
         "machine; only those of net. belong to the SUT's namespace"),
        ("kind: local-netns", "kind: rock", "x.yaml:2: kind: 'rock' is not one of local-netns, local-vm, rack; did "
         "you mean rack?"),
        ("kind: local-netns", "knid: local-netns", "x.yaml:1: the file: the key kind is missing; is knid meant "
         "for it?"),
        ("name: lab-1", "name: lab 1", "x.yaml:1: name: 'lab 1' does not fit; write a name of letters, digits, '.', "
         "'_' and '-'"),
        ("sut:\n", "sut\n", "x.yaml:8:7: is no YAML: could not find expected ':'; check indentation and colons there"),
        ("  hops", "\thops", "x.yaml:8:1: is no YAML: found character '\\t' that cannot start any token; check "
         "indentation and colons there"),
        ("name: lab-1", "name: 2026-02-30", "x.yaml:1: what stands here is no timestamp; write one, or put "
         "it in quotes"),
        ("name: lab-1", "name: !!timestamp a", "x.yaml:1: what stands here is no timestamp; write one, or put "
         "it in quotes"),
        ("hops: 2", "hops: !!int two", "x.yaml:8: what stands here is no int; write one, or put it in quotes"),
        ("hops: 2", "hops: 0b_", "x.yaml:8: what stands here is no int; write one, or put it in quotes"),
        ("hops: 2", f"hops: {'1' * 5000}", "x.yaml:8: what stands here is no int; write one, or put it in quotes"),
        ("hops: 2", f"hops: 0x{'f' * 5000}", "x.yaml:8: what stands here is no int; write one, or put it in quotes"),
        ("hops: 2", "hops: !!float two", "x.yaml:8: what stands here is no float; write one, or put it in quotes"),
        ("isolate: false", "isolate: !!bool maybe", "x.yaml:10: what stands here is no bool; write one, or "
         "put it in quotes"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_key(load, old, new, message):
    assert old in VALID
    with pytest.raises(TestbedError) as error:
        load(VALID.replace(old, new, 1))
    assert str(error.value) == message
    assert error.value.exit_code == EXIT_FAULT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.yaml:1: the file is empty; start from resources/testbeds/local-netns.yaml"),
        ("# only words\n", "x.yaml:1: the file is empty; start from resources/testbeds/local-netns.yaml"),
        ("\n- a\n", "x.yaml:2: is no testbed; start with lines such as `name: local-netns`"),
        ("a: &a [*a]\n", "x.yaml:1: the file: the key kind is missing; add it, see "
         "resources/testbeds/local-netns.yaml (and 1 more)"),
        ("a: 1\n---\nb: 1\n", "x.yaml:2:1: is no YAML: but found another document; check indentation and colons there"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_testbed_at_all(load, text, message):
    with pytest.raises(TestbedError) as error:
        load(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * DEEP + "]" * DEEP, "".join(" " * depth + "a:\n" for depth in range(DEEP))],
    ids=["brackets", "indentation"],
)
def test_a_file_that_is_nested_too_deeply(load, text):
    with pytest.raises(TestbedError) as error:
        load(text)
    assert str(error.value) == (
        "x.yaml: is nested too deeply for a testbed; start from resources/testbeds/local-netns.yaml"
    )


def test_a_byte_order_mark_is_no_part_of_the_text(load):
    assert load(f"\ufeff{VALID}") == load(VALID)
    with pytest.raises(TestbedError, match=r"x\.yaml:1: the file: the key kind is missing; is knid meant for it\?"):
        load(f"\ufeff{VALID}".replace("kind:", "knid:", 1))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(
        TestbedError, match=r"nope\.yaml: cannot read it: No such file or directory; name a testbed file"
    ):
        load_testbed(tmp_path / "nope.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00name")
    with pytest.raises(TestbedError, match=r"binary\.yaml: is no UTF-8 text"):
        load_testbed(tmp_path / "binary.yaml")
    (tmp_path / "control.yaml").write_bytes(b"name: \x01")
    with pytest.raises(TestbedError, match=r"control\.yaml: is no YAML: unacceptable character"):
        load_testbed(tmp_path / "control.yaml")


def test_a_device_without_an_end_is_no_testbed() -> None:
    with pytest.raises(TestbedError, match=r"/dev/zero: is larger than 16 MiB; name a testbed file"):
        load_testbed("/dev/zero")
