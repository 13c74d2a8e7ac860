"""Scenarios: other questions have other names."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from pdrgate.builds.bpf_build import own_build
from pdrgate.data_paths.catalogue import DATA_PATHS, TcpStreams
from pdrgate.data_paths.set_up import set_up_of
from pdrgate.gate.run.profile import PROFILES
from pdrgate.gate.run.scenario import Scenario
from pdrgate.gate.sut.load_search import goals_of
from pdrgate.traffic.chosen.traffic_words import chosen_traffic
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import UsageError


def test_scenarios_have_names_titles_and_frames() -> None:
    plain = Scenario()
    assert plain.name == "ipv6-routing-1cpu-4096-64B"
    assert plain.title == "IPv6 routing, 1 cpu, buffer 4096 packets, 64-byte frames"
    assert plain.frames == Frames()
    other = Scenario("ipv4-routing", "unpinned", 512, 128, flows=7, directions=2, probe_rate=10)
    assert other.name == "ipv4-routing-unpinned-512-128B-bidirectional-7flows-10probes"
    assert other.title == (
        "IPv4 routing, unpinned, buffer 512 packets, 128-byte frames, both directions, 7 flows, 10 probes/s"
    )
    assert other.frames == Frames(4, 128, 7, directions=2, probe_rate=10)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"data_path": "bridge"},
            f"there is no data path 'bridge'; there are ipv6-routing, ipv4-routing, {', '.join(list(DATA_PATHS)[2:])}",
        ),
        ({"pinning": "3 cpus"}, "pinning: '3 cpus' is none; choose one of unpinned, 1 cpu, 2 cpus"),
        ({"buffer": 0}, "buffer: 0 is no whole number from 1 to 1000000"),
        ({"frame_size": 9000}, "frame size 9000 is out of range; use 64 to 1518 bytes (with FCS)"),
        ({"directions": 0}, "0 directions do not exist; use 1 or 2"),
        ({"overload": 2}, "overload: 2 is no number from 2.5 to 1000"),
        (
            {"data_path": "udp-delivery", "receivers": 2, "cpu_shares": (97, 1, 1, 1)},
            "CPU shares of 97/1/1/1 % are none for 2 receivers; give each at least 1, and not more than 100 in all",
        ),
        ({"data_path": "udp-delivery", "background": 65}, "65 processes beside are out of range; use 0 to 64"),
        ({"receivers": 2}, "ipv6-routing has no receivers; use udp-delivery"),
        ({"data_path": "udp-delivery", "receivers": 9}, "9 receivers are out of range; use 1 to 8"),
        (
            {"data_path": "udp-delivery", "socket_buffer": 1},
            "socket buffers of 1 KiB make no sense; use 1024, 2048 or 4096",
        ),
        (
            {"data_path": "udp-delivery", "call": "read"},
            "receivers cannot call 'read'; there are recvmsg and recvmmsg",
        ),
        (
            {"data_path": "udp-delivery", "busy_poll": -1},
            "busy polling for -1 us makes no sense; use 50, or 0 for none",
        ),
        (
            {"data_path": "udp-delivery", "directions": 2},
            "udp-delivery ends at the SUT, and nothing comes from behind it; send one way",
        ),
    ],
)
def test_scenarios_that_do_not_exist(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Scenario(**values)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_a_mix_of_sizes_is_a_scenario_of_its_own() -> None:
    scenario = Scenario(frame_size="imix")
    assert scenario.frames.imix
    assert [(weight, frames.size) for weight, frames in scenario.frames.shares] == [(7, 64), (4, 570), (1, 1518)]
    assert scenario.name == "ipv6-routing-1cpu-4096-imix"
    assert scenario.title.endswith("IMIX frames")


FINER = Scenario(width=0.005)
QUESTIONS = [
    Scenario(), Scenario(loss_ratio=0.1), Scenario(loss_ratio=0.01), Scenario(loss_ratio=0.0), Scenario(width=0.05),
    Scenario(probe_rate=1000), Scenario(probe_rate=100), Scenario(flows=1), Scenario(directions=2),
    Scenario(buffer=512),
    FINER, Scenario(frame_size=128), Scenario(frame_size="imix"), Scenario(pinning="2 cpus"), Scenario("ipv4-routing"),
]  # fmt: skip


def test_different_questions_have_different_names() -> None:
    """A PDR@10 % once was the baseline of a PDR@0.5 %."""
    for one, other in itertools.combinations(QUESTIONS, 2):
        assert one.name != other.name


def test_a_name_is_one_question_in_every_profile() -> None:
    """Who asked for no width and who asked for 1 % once had one name, though standard searched to half of that."""
    for profile in PROFILES.values():
        widths = [goals_of(profile, one)[-1].width for one in (Scenario(), FINER)]
        assert widths == [max(asked, profile.finest_width) for asked in (0.01, FINER.width)]


def test_every_field_of_a_question_is_in_its_name() -> None:
    other = {
        "data_path": "ipv4-routing", "pinning": "2 cpus", "frame_size": 128, "directions": 2, "receivers": 2,
        "socket_buffer": 4096, "call": "recvmmsg", "overload": 8, "gro": "off",
        "cpu_shares": (50,), "background": 2, "fate": "dropped", "tcp": TcpStreams(2), "set_up": set_up_of(["true"]),
        "traffic": chosen_traffic(["udp"]), "program": own_build("xdp_router"),
    }  # fmt: skip
    for field in dataclasses.fields(Scenario):
        delivers = field.name in ("receivers", "socket_buffer", "call", "busy_poll", "cpu_shares", "background")
        plain = Scenario("udp-delivery" if delivers else "tcp-transfer" if field.name == "tcp" else "ipv6-routing")
        value = other.get(field.name, 0.25 if "." in str(field.default) else 77)
        assert dataclasses.replace(plain, **{field.name: value}).name != plain.name


def test_a_delivery_says_who_receives() -> None:
    scenario = Scenario("udp-delivery", receivers=4, socket_buffer=1024, call="recvmmsg", busy_poll=50)
    assert scenario.title.endswith(
        "64-byte frames, 4 receivers by recvmmsg, socket buffers of 1 MiB, busy polling for 50 us"
    )
    assert Scenario("udp-delivery").title.endswith("1 receiver by recvmsg, a socket buffer of 2 MiB")
    shared = Scenario("udp-delivery", receivers=2, cpu_shares=(97, 1), background=1)
    assert shared.title.endswith("socket buffers of 2 MiB, CPU shares of 97/1 %, beside 1 busy process")
    assert Scenario().delivery is None
    batched = Scenario("udp-delivery", gro="off", wait=1000)
    assert batched.title.endswith("2 MiB, GRO off, ports that wait 1000 us for further packets")


def test_the_goal_is_in_the_title_where_it_is_not_the_usual_one() -> None:
    assert Scenario(loss_ratio=0.1).title.endswith(", PDR@10.00%")
    assert Scenario(loss_ratio=1e-5).title.endswith(", PDR at 1e-05 loss")


def test_steps_of_a_scenario_on_ip_routing_are_not_called_ip_routing() -> None:
    """What sockets, tunnels or filters of the steps do with packets is the path; IP routing lies beneath."""
    steps = set_up_of(["ip address add 198.18.0.1/32 dev lo"])
    told = Scenario(data_path="ip-routing", set_up=steps).title
    assert told.startswith("steps of its own on IP routing, ")
    assert "set up by ip address add 198.18.0.1/32 dev lo" in told
    assert Scenario(data_path="ipv6-routing", set_up=steps).title.startswith("IPv6 routing, ")
