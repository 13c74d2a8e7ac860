"""The parts of a trial, which stand in one flat line on disk."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pdrgate.record.cause import Cause, CauseKind
from pdrgate.record.parts import FlatPart, flattened
from pdrgate.record.phase import Phase
from pdrgate.record.stretch import Belonging, Latency, Occasion, Seen
from pdrgate.record.transfer import EndsCpu, Look, Senders, Transfer
from pdrgate.record.trial import Aside, CarriedFrame, Trial

BELONGING = Belonging("s", "S.T", "0f", "b", "candidate", "linux-b", 2)
SEEN = Seen(
    counters_before={"in0": {"rx": 1}},
    counters_after={"in0": {"rx": 8}},
    functions={"f": (170, 10)},
    disturbed=(Cause(CauseKind.LATE, 1.5, "the machine was late"),),
)
TRIAL = Trial(
    1000.5,
    0.25,
    250,
    240,
    drained=3,
    unsent=1,
    aside=Aside(2, 4, 5, 3, 6, 8, 7, "dropped", 9, (CarriedFrame(1, "aa", "ab", returned=True),)),
    sending_time=0.26,
    under_way=(1, 2),
    seen=dataclasses.replace(
        SEEN, latency=Latency(1e-6, 2e-6, 3e-6, 4e-6, 20, (1e-7,) * 4), stacks={"g;f": (170, 10)}, counted=0.3
    ),
    belonging=BELONGING,
    occasion=Occasion(3, "PDR", Phase.REPEAT, 1e9),
)
TRANSFER = dataclasses.replace(
    Trial.of_transfer(
        Transfer(
            65536,
            2,
            "cubic",
            intended_rate=1e6,
            delivered=1000,
            seconds=1.25,
            senders=Senders(1100, 100, 2, (Look(0.5, 0.5, 600, 1, 1e-3, 1e-4, 20000, 65000),)),
            cpu=EndsCpu(0.1, 0.2, 0.5, 0.6),
        ),
        1.0,
    ),
    seen=SEEN,
    belonging=BELONGING,
    occasion=Occasion(3, phase=Phase.CURVE, started=1e9),
)
LINE_OF_A_TRIAL = (
    '{"intended_load":1000.5,"intended_duration":0.25,"offered":250,"forwarded":240,"drained":3,"unsent":1,'
    '"refused":2,"stray":4,"returned":5,"twice":3,"left":6,"numbered":8,"overtaken":7,"fate":"dropped","looked_at":9,"frames":[{"direction":1,'
    '"sent":"aa","got":"ab","returned":true}],"sending_time":0.26,"under_way":[1,2],"latency":{"p50":1e-6,'
    '"p90":2e-6,"p99":3e-6,"max":4e-6,"count":20,"within":[1e-7,1e-7,1e-7,1e-7]},'
    '"counters_before":{"in0":{"rx":1}},"counters_after":{"in0":{"rx":8}},"functions":{"f":[170,10]},'
    '"stacks":{"g;f":[170,10]},"memory":null,"callers":{},"counted":0.3,"disturbed":[{"kind":"late","part":1.5,'
    '"words":"the machine was late"}],"scenario":"s","test":"S.T","fingerprint":"0f","boot":"b",'
    '"side":"candidate","build":"linux-b","pair":2,"repeat":3,"goal":"PDR","phase":"repeat",'
    '"started":1000000000.0}'
)
LINE_OF_A_TRANSFER = (
    '{"intended_load":0.0,"intended_duration":1.0,"offered":0,"forwarded":0,"drained":0,"unsent":0,"refused":0,'
    '"stray":0,"returned":0,"twice":0,"left":0,"numbered":0,"overtaken":0,"fate":"forwarded","looked_at":0,"frames":[],'
    '"sending_time":0.0,"under_way":[],"transfer":{"window":65536,"streams":2,"congestion":"cubic",'
    '"intended_rate":1000000.0,"delivered":1000,"seconds":1.25,"requests":0,"senders":{"sent":1100,"segment":100,'
    '"retransmitted":2,"looks":[{"end":0.5,"seconds":0.5,"sent":600,"retransmitted":1,"rtt":0.001,'
    '"rtt_deviation":0.0001,"congestion_window":20000,"advertised":65000}]},"cpu":{"sut_cpu":0.1,"station_cpu":0.2,'
    '"sut_busy":0.5,"station_busy":0.6}},"latency":null,'
    '"counters_before":{"in0":{"rx":1}},"counters_after":{"in0":{"rx":8}},"functions":{"f":[170,10]},"stacks":{},'
    '"memory":null,"callers":{},"counted":0.0,'
    '"disturbed":[{"kind":"late","part":1.5,"words":"the machine was late"}],"scenario":"s","test":"S.T",'
    '"fingerprint":"0f","boot":"b","side":"candidate","build":"linux-b","pair":2,"repeat":3,"goal":"",'
    '"phase":"curve","started":1000000000.0}'
)

KINDS = pytest.mark.parametrize(
    ("trial", "line"), [(TRIAL, LINE_OF_A_TRIAL), (TRANSFER, LINE_OF_A_TRANSFER)], ids=["open loop", "closed loop"]
)


@KINDS
def test_a_line_on_disk_is_flat(trial: Trial, line: str) -> None:
    assert trial.to_json() == line


@KINDS
def test_a_line_gets_its_parts(trial: Trial, line: str) -> None:
    assert Trial.from_mapping(json.loads(line)) == trial


@KINDS
def test_no_two_parts_have_a_field_of_one_name(trial: Trial, line: str) -> None:
    own = [one.name for one in dataclasses.fields(trial)]
    parts = [value for name in own if isinstance(value := getattr(trial, name), FlatPart)]
    assert len(flattened(trial)) == len(own) - len(parts) + sum(len(dataclasses.fields(part)) for part in parts)


@KINDS
@pytest.mark.parametrize("key", ["pair", "repeat", "started"])
def test_a_part_is_checked_as_it_is_read(trial: Trial, line: str, key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is -1"):
        Trial.from_mapping(json.loads(line) | {key: -1})
