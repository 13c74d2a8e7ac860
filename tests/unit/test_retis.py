"""Retis: what it saw of a guest's kernel, told by who dropped, and a collector that is missing, fails, or works.

The events are of the real collector (1.6.4): 200 packets in a guest of Debian's 6.1, without a route.
"""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import msgspec
import pytest
from console_lines import verdict_lines
from made_results import result, scenario

from pdrgate.errors import TestbedError
from pdrgate.gate.dropped import counted, lossy_load
from pdrgate.hosts.host import local_host
from pdrgate.observers.retis import Retis, bindings_missing, collector, events, read_events, way
from pdrgate.reports.scenario import fragments
from pdrgate.results.drops import DropsResult
from pdrgate.results.model import ScenarioResult
from pdrgate.trial import Trial

EVENTS = Path(__file__).parents[1] / "data/retis-1.6.4.data.gz"
FAKES = Path(__file__).parents[1] / "fakes"
NAMESPACE = 4026531840
TRIAL = Trial(intended_load=4e3, intended_duration=0.05, offered=200, forwarded=0)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[events.Dropped, ...]:
    if bindings_missing():
        pytest.skip("PyPI has wheels of retis for x86_64 only")
    file = tmp_path_factory.mktemp("retis") / "retis.data"
    file.write_bytes(gzip.decompress(EVENTS.read_bytes()))
    return read_events(file)


def test_who_dropped_and_on_which_way(seen: tuple[events.Dropped, ...]) -> None:
    found = counted(seen, {NAMESPACE}, TRIAL, "v1.6.4", "retis-x.data")
    (place,) = found.places
    assert (found.seen, place.packets, place.reason, place.function) == (200, 200, "NOT_SPECIFIED", "dst_discard_out")
    assert place.way[0] == "__napi_poll"
    assert place.way[-3:] == ("ip6_sublist_rcv", "ip6_sublist_rcv_finish", "dst_discard_out")
    assert found.example is not None
    assert found.example.packet.startswith("2001:2:0:2::1.1026 > 2001:2:0:1::17f3.32774 ")
    assert "UDP" in found.example.packet
    assert found.example.device == "eth0"
    assert counted(seen, {1}, TRIAL, "v1.6.4", "").seen == 0  # another namespace's
    told = dataclasses.replace(scenario(), drops=found)
    sentence = (
        "Retis saw the SUT's network stack drop 200 packets at 4 kpps (200 packets lost: 200 unexplained): "
        "200 by dst_discard_out (NOT_SPECIFIED)"
    )
    assert f"  {sentence}" in verdict_lines(result(told))
    tables = "".join(fragments(told))
    for words in (
        "retis-x.data",
        "ip6_sublist_rcv_finish → dst_discard_out",
        "One of these packets, from eth0: 2001:2",
    ):
        assert words in tables
    assert msgspec.convert(msgspec.to_builtins(told), ScenarioResult).drops == found


def test_a_stack_begins_with_the_packet_and_ends_with_who_dropped() -> None:
    newer = ("bpf_prog_1_x+0x1", "bpf_trace_run5+0x2", "sk_skb_reason_drop+0x3", "tcp_v6_rcv+0x4", "net_rx_action+0x5")
    assert way((*newer, "do_idle+0x1")) == ("tcp_v6_rcv",)
    assert way(()) == ()


def test_the_load_to_look_at_is_the_least_that_loses_too_much() -> None:
    trials = [
        dataclasses.replace(TRIAL, intended_load=load, forwarded=200 - lost)
        for load, lost in ((1e3, 0), (2e3, 1), (3e3, 20), (3e3, 30), (4e3, 90))
    ]
    assert lossy_load(trials, 0.01) == (3e3, 0.125)
    assert lossy_load(trials[:2], 0.01) == (2e3, 0.005)
    assert lossy_load(trials[:1], 0.01) is None


def test_nothing_seen_and_nothing_looked_at_are_told_apart() -> None:
    assert counted((), {NAMESPACE}, TRIAL, "v1.6.4", "").sentence().startswith(
        "Retis saw the SUT's network stack drop no packet at 4 kpps (200 packets lost"
    )  # fmt: skip
    assert DropsResult(load=1.0, duration=1.0, failure="why").sentence() == (
        "Retis did not look at what is dropped: why"
    )


def test_a_collector_is_begun_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_PAUSE", 0.02)
    monkeypatch.setenv("PATH", f"{FAKES}:/usr/sbin:/usr/bin:/sbin:/bin")
    written = tmp_path / "written"
    written.write_bytes(b"events\n\x00")
    monkeypatch.setenv("RETIS_EVENTS", str(written))
    with local_host() as host:
        retis = Retis(host)
        assert retis.version == "v1.6.4"
        with retis.collecting() as collection:
            folder = Path(collection._folder)
            assert (folder / "asked").read_text().startswith("collect --out events --collectors skb,skb-drop,dev,ns")
            assert collection.end() == b"events\n\x00"
        assert not folder.exists()
    monkeypatch.setenv("RETIS_ERROR", "Symbol skb:kfree_skb is not supported")
    with local_host() as host, pytest.raises(TestbedError) as error:
        Retis(host).collecting()
    assert str(error.value) == (
        "retis on local cannot look at this kernel: Symbol skb:kfree_skb is not supported"
    )  # fmt: skip


def test_what_is_missing_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    with local_host() as host:
        if host.run("retis", "--version", check=False).exit_code == 127:
            with pytest.raises(TestbedError, match=r"^local has no retis that runs \(.*\); install it there \(dnf "):
                Retis(host)
    monkeypatch.setattr(events.importlib.util, "find_spec", lambda name: None)
    assert bindings_missing().endswith("pip install 'pdrgate[retis]'")
