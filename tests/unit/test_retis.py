"""Retis: what it saw of a guest's kernel, told by who dropped, and a collector that is missing, fails, or works.

The events are of the real collector (1.6.4): 200 packets in a guest of Debian's 6.1, without a route.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
import re
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from console_lines import verdict_lines
from flat_values import changed
from html_fragments import fragments
from made_results import result, scenario
from markupsafe import Markup
from retis_server import local_retis

from pdrgate.gate.sut.dropped_packets import lossy_load, traced_file
from pdrgate.hosts.host import local_host
from pdrgate.observers.drop_trace import DropTracer
from pdrgate.observers.retis import Retis, collector, events
from pdrgate.observers.retis.collector import LARGEST_COLLECTION, Collected, Collection, version_of
from pdrgate.observers.retis.events import bindings_missing, read_events, way
from pdrgate.observers.retis.tracer import counted
from pdrgate.observers.watching import Observation, watching
from pdrgate.record.trial import Trial
from pdrgate.reports.ci.markdown import run_markdown
from pdrgate.results.drops import DropPlace, DropsResult
from pdrgate.results.losses import thousands
from pdrgate.results.model import Details
from pdrgate.values.errors import StorageError, TestbedError

EVENTS = Path(__file__).parents[1] / "data/retis-1.6.4.data.gz"
NAMESPACE = 4026531840
TRIAL = Trial(intended_load=4e3, intended_duration=0.05, offered=200, forwarded=0)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[events.Dropped, ...]:
    if bindings_missing():
        pytest.skip("PyPI has wheels of retis for x86_64 only")
    file = tmp_path_factory.mktemp("retis") / "retis.data"
    file.write_bytes(gzip.decompress(EVENTS.read_bytes()))
    return tuple(read_events(file))


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
    told = changed(scenario(), drops=found)
    sentence = (
        "The SUT's network stack was seen to drop 200 packets at 4 kpps (200 packets lost: 200 unexplained): "
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
    markdown = run_markdown(result(told))
    assert sentence.partition(" (")[0] in markdown
    assert markdown.count("| dropped by | reason | packets | on this way | way of most |\n") == 1
    assert (
        "\n| `dst_discard_out` | `NOT_SPECIFIED` | 200 | 128 | "
        "`… → ipv6_list_rcv → ip6_sublist_rcv → ip6_sublist_rcv_finish → dst_discard_out` |\n"
    ) in markdown
    assert msgspec.convert(msgspec.to_builtins(told.details), Details).drops == found


def test_many_places_are_told_in_short() -> None:
    places = tuple(
        DropPlace(reason="R", function=f"f{number}", packets=100 - number, way=(), by_way=1) for number in range(30)
    )
    found = dataclasses.replace(counted((), set(), TRIAL, "v1", "x"), seen=2565, places=places)
    told = changed(scenario(), drops=found)
    assert "| 25 others |  | 2 075 |  |" in run_markdown(result(told))
    assert "10 others" in "".join(fragments(told))


def test_pages_tell_why_there_is_no_table() -> None:
    for failure in ("", "it <ended>"):
        found = dataclasses.replace(counted((), {1}, TRIAL, "v1", "x"), failure=failure)
        if failure:
            found = dataclasses.replace(found, losses=None)
        told = changed(scenario(), drops=found)
        assert str(Markup("<p>{}</p>").format(found.sentence())) in "".join(fragments(told))
        assert "dropped by" not in run_markdown(result(told))


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
        "The SUT's network stack was seen to drop no packet at 4 kpps (200 packets lost"
    )  # fmt: skip
    assert DropsResult(load=1.0, duration=1.0, failure="why").sentence() == ("Nobody looked at what is dropped: why")


@pytest.fixture
def standing_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The collector that a host has from now on, as far as tests go: it writes the events of this file."""
    monkeypatch.setattr(collector, "_PAUSE", 0.02)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")
    written = tmp_path / "written"
    written.write_bytes(gzip.decompress(EVENTS.read_bytes()))
    local_retis(tmp_path / "bin", events=written)
    return written


def test_a_collector_is_begun_and_ended(
    standing_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    fetched = tmp_path / "retis.data"
    with local_host() as host:
        assert version_of(host) == "v1.6.4"
        with Collection(host) as collection:
            folder = Path(collection._folder)
            assert (folder / "asked").read_text().startswith("collect --out events --collectors skb,skb-drop,dev,ns")
            assert collection.end(fetched) == Collected()
        assert fetched.read_bytes() == standing_in.read_bytes()
        assert not folder.exists()
        local_retis(tmp_path / "bin", error="Symbol skb:kfree_skb is not supported")
    with local_host() as host, pytest.raises(TestbedError) as error:
        Collection(host)
    assert str(error.value) == (
        "retis on local cannot look at this kernel: Symbol skb:kfree_skb is not supported"
    )  # fmt: skip


def test_a_collector_that_ends_as_it_is_looked_at_is_not_taken_for_one_that_never_began(tmp_path: Path) -> None:
    """It says that it has begun, and ends, right between the look's commands."""
    (tmp_path / "pid").write_text("1\n")
    (tmp_path / "said").touch()
    grep = tmp_path / "grep"  # by which the look asks whether it runs
    grep.write_text(f"#!/bin/sh\necho '4 probe(s) loaded' >>'{tmp_path}/said'\nexit 1\n")
    grep.chmod(0o755)
    with local_host() as host:
        look = f'PATH="{tmp_path}:$PATH"\n{collector._LOOK}'
        assert host.run("sh", "-c", look, "sh", str(tmp_path)).stdout == "4 probe(s) loaded\nended\n"


def test_a_collector_whose_number_is_not_written_yet_has_not_ended(tmp_path: Path) -> None:
    """Its file is there first; on a busy machine one look in fifty found it empty."""
    (tmp_path / "pid").touch()
    with local_host() as host:
        assert host.run("sh", "-c", collector._LOOK, "sh", str(tmp_path)).stdout == ""


def test_what_the_collector_was_too_slow_for_is_told(
    standing_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "WARN  lost 1200 event(s) from skb:kfree_skb\nWARN  total events lost: 1200"
    local_retis(tmp_path / "bin", events=standing_in, says=says)
    with local_host() as host, Collection(host) as collection:
        collected = collection.end(tmp_path / "retis.data")
    assert collected == Collected(missed=1200)
    assert counted((), {NAMESPACE}, TRIAL, "", "", collected).sentence().startswith(
        "The SUT's network stack was seen to drop no packet (1 200 others of the machine were missed) at 4 kpps"
    )  # fmt: skip


@pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")
def test_half_a_million_dropped_packets_fill_a_file_and_no_more(
    standing_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the host and here; what is in it is looked at without being kept."""
    startup, *dropped = standing_in.read_bytes().splitlines(keepends=True)
    standing_in.write_bytes(startup + b"".join(dropped) * 40)
    local_retis(tmp_path / "bin", events=standing_in, times=63)  # of 8000 events: 469 MB
    largest = LARGEST_COLLECTION // 4  # for it takes Python a while that counts what it has in memory
    monkeypatch.setattr(collector, "LARGEST_COLLECTION", largest)
    fetched = tmp_path / "retis.data"
    with local_host() as host, Collection(host) as collection:
        written = Path(collection._folder, "events")
        collected = collection.end(fetched)
        assert written.stat().st_size == largest
    assert collected == Collected(full=True)
    assert largest - 2 * len(dropped[0]) < fetched.stat().st_size < largest
    tracemalloc.start()
    try:
        found = counted(read_events(fetched), {NAMESPACE}, TRIAL, "v1.6.4", fetched.name, collected)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < largest / 16
    assert found.bounded
    assert found.seen == fetched.read_bytes().count(b'"skb-drop"') > 7_500
    assert found.places[0].function == "dst_discard_out"
    assert found.sentence().startswith(
        f"The SUT's network stack was seen to drop {thousands(found.seen)} packets (among the first that a trace has "
        "room for) at 4 kpps (200 packets lost"
    )  # fmt: skip


def test_no_more_is_read_than_is_wanted(seen: tuple[events.Dropped, ...], standing_in: Path) -> None:
    assert tuple(read_events(standing_in, 7)) == seen[:7]


@pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")
def test_what_the_bindings_cannot_read_is_told_by_their_reason(standing_in: Path) -> None:
    """And not by the end of their own stack."""
    standing_in.write_bytes(standing_in.read_bytes().replace(b"v1.6.4-dirty", b"unspec"))
    with pytest.raises(TestbedError) as error:
        tuple(read_events(standing_in))
    said = re.fullmatch(
        r".+: Retis's Python bindings cannot read it: (.+); is the collector newer than they\?", str(error.value)
    )
    assert said is not None, error.value
    assert "version" in said[1].lower(), said[1]


def test_reading_that_is_given_up_leaves_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(endless := tmp_path / "endless")  # which nobody writes
    monkeypatch.setattr(events, "_TIMEOUT", 0.1)
    with pytest.raises(TestbedError, match=r"endless: Retis's Python bindings did not read it within 0.1 s; is this m"):
        tuple(read_events(endless))


@pytest.mark.skipif(bool(bindings_missing()), reason="PyPI has wheels of retis for x86_64 only")
def test_a_trace_is_an_observer_and_tells_of_the_trial_that_it_watched(standing_in: Path, tmp_path: Path) -> None:
    with local_host() as host:
        tracer: DropTracer = Retis(host, {NAMESPACE})
        trace = tracer.trace(tmp_path / "retis.data")
        with watching([trace]) as watch:
            assert not (tmp_path / "retis.data").exists()
        again = tracer.trace(tmp_path / "nowhere" / "retis.data")
        with pytest.raises(StorageError, match=r"cannot write .*/nowhere/retis.data: No such file"), watching([again]):
            pass
    assert watch.observation == Observation()
    found = trace.drops(TRIAL)
    assert (found.seen, found.collector, found.file) == (200, "Retis v1.6.4", "retis.data")


def test_each_look_at_a_scenario_has_a_file_of_its_own(tmp_path: Path) -> None:
    tracer = SimpleNamespace(name="retis", version="", trace=None)
    for name in ("retis-a-b.data", "retis-a-b-2.data", "retis-a-b-3.data"):
        file = traced_file(tmp_path, tracer, "a/b")
        assert file == tmp_path / name
        file.touch()


def test_what_is_missing_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    with local_host() as host:
        if host.run("retis", "--version", check=False).exit_code == 127:
            with pytest.raises(TestbedError, match=r"^local has no retis that runs \(.*\); install it there \(dnf "):
                version_of(host)
    monkeypatch.setattr(events.importlib.util, "find_spec", lambda name: None)
    assert bindings_missing().endswith("pip install 'pdrgate[retis]'")
