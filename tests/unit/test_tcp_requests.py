"""Small requests by TCP: what a scenario says of them, and what their transfers come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flat_values import flat_transfer

from pdrgate.data_paths.tcp_streams import TcpStreams
from pdrgate.gate.run.scenario import Scenario
from pdrgate.measurands import TransferSetting, of_transfers
from pdrgate.measurands.counted.cost import with_pair_beside
from pdrgate.measurands.transfers.answered_requests import RequestCost, RequestLatency, RequestRate
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import USER_SPACE
from pdrgate.record.transfer import Look
from pdrgate.record.trial import Trial
from pdrgate.values.errors import UsageError

ASKED = TcpStreams(request=64, buffers="kernel")


def answered(requests: int, latency: float, instructions: float | None, ticks: int = 0, idle: int = 0) -> Trial:
    look = Look(
        end=0.5, seconds=0.5, sent=64 * requests, retransmitted=0, rtt=latency, rtt_deviation=0.0, congestion_window=0
    )
    functions = {} if instructions is None else {
        "tcp_ack": (instructions, 1.0), USER_SPACE: (1e6, 0.0), "update_process_times": (100.0, ticks),
        "tick_nohz_idle_exit": (100.0, idle),
    }  # fmt: skip
    return flat_transfer(
        65536,
        1,
        "cubic",
        1.0,
        delivered=64 * requests,
        seconds=0.5,
        requests=requests,
        sent=64 * requests,
        looks=(look,),
        functions=functions,
        phase=Phase.REPEAT,
    )


def test_a_scenario_of_requests_has_a_name_of_its_own() -> None:
    for streams in (ASKED, replace(ASKED, anew=True)):
        scenario = Scenario("tcp-transfer", tcp=streams)
        assert str(streams) in scenario.title


@pytest.mark.parametrize(
    ("more", "said"),
    [({"request": 1 << 20}, "out of range"), ({"count": 2}, "one stream"), ({"direction": "sends"}, "one stream")],
)
def test_requests_that_cannot_be_made_are_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(ASKED, **more)


def test_a_connection_of_its_own_is_that_of_a_request() -> None:
    with pytest.raises(UsageError, match="how many bytes"):
        TcpStreams(anew=True)


def test_only_requests_have_their_measurands() -> None:
    of_requests = {RequestRate.name, RequestLatency.name, RequestCost.name}
    bulk, small = ({one.name for one in of_transfers(TransferSetting(65536, 1.0, 2, request=size))} for size in (0, 64))
    assert not of_requests & bulk
    assert of_requests <= small


def test_their_transfers_come_to_rate_latency_and_cost() -> None:
    made = [answered(500, 1e-3, 1.5e7), answered(400, 1.2e-3, 1.3e7)]
    assert RequestRate().value(made) == pytest.approx(900)
    assert RequestLatency().value(made) == pytest.approx(1e-3)
    assert RequestCost().value(made) == pytest.approx((3e4 + 3.25e4) / 2, rel=1e-4)


def test_a_request_costs_no_more_where_the_peer_keeps_the_kernel_waiting() -> None:
    prompt, waited = answered(500, 1e-3, 1.5e7), answered(500, 5e-3, 1.5e7 + 1200 * 7000, ticks=400, idle=800)
    assert RequestCost().value([waited]) == pytest.approx(RequestCost().value([prompt]))


def test_a_kernel_is_granted_no_more_waits_than_the_kernel_beside_it() -> None:
    honest = [by(answered(500, 1e-3, 1.5e7, idle=1000), "baseline")]
    calls_at_will = [by(answered(500, 1e-3, 1.5e7 + 500 * 5 * 7000, idle=1000 + 500 * 5), "candidate")]
    cost = RequestCost().value(honest)
    assert cost is not None
    assert RequestCost().value(calls_at_will) == pytest.approx(cost)
    assert RequestCost().value(with_pair_beside(calls_at_will, honest)) == pytest.approx(cost + 5 * 7000)
    assert RequestCost().value(with_pair_beside(honest, calls_at_will)) == pytest.approx(cost)
    assert RequestRate().value(with_pair_beside(honest, calls_at_will)) == RequestRate().value(honest)


def by(transfer: Trial, boot: str) -> Trial:
    return replace(transfer, belonging=replace(transfer.belonging, boot=boot))


def test_what_was_not_counted_has_no_cost() -> None:
    assert RequestCost().value([answered(500, 1e-3, None)]) is None
    assert RequestRate().value([]) is None
