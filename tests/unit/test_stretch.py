"""What trials and transfers have in common: parts in the program, one flat line on disk."""

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
TRANSFER = Transfer(
    65536,
    2,
    "cubic",
    1.0,
    intended_rate=1e6,
    delivered=1000,
    seconds=1.25,
    senders=Senders(1100, 100, 2, (Look(0.5, 0.5, 600, 1, 1e-3, 1e-4, 20000, 65000),)),
    cpu=EndsCpu(0.1, 0.2, 0.5, 0.6),
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
    '{"window":65536,"streams":2,"congestion":"cubic","intended_duration":1.0,"intended_rate":1000000.0,'
    '"delivered":1000,"seconds":1.25,"requests":0,"sent":1100,"segment":100,"retransmitted":2,'
    '"looks":[{"end":0.5,'
    '"seconds":0.5,"sent":600,"retransmitted":1,"rtt":0.001,"rtt_deviation":0.0001,"congestion_window":20000,'
    '"advertised":65000}],"sut_cpu":0.1,"station_cpu":0.2,"sut_busy":0.5,"station_busy":0.6,'
    '"counters_before":{"in0":{"rx":1}},"counters_after":{"in0":{"rx":8}},"functions":{"f":[170,10]},'
    '"disturbed":[{"kind":"late","part":1.5,"words":"the machine was late"}],"scenario":"s","test":"S.T",'
    '"fingerprint":"0f","boot":"b","side":"candidate","build":"linux-b","pair":2,"repeat":3,"phase":"curve",'
    '"started":1000000000.0}'
)
"""As versions wrote them in which a trial and a transfer had no parts."""

STRETCHES = pytest.mark.parametrize(
    ("stretch", "line"), [(TRIAL, LINE_OF_A_TRIAL), (TRANSFER, LINE_OF_A_TRANSFER)], ids=["trial", "transfer"]
)


@STRETCHES
def test_a_line_on_disk_is_flat_and_as_it_always_was(stretch: Trial | Transfer, line: str) -> None:
    assert stretch.to_json() == line


@STRETCHES
def test_a_line_gets_its_parts(stretch: Trial | Transfer, line: str) -> None:
    assert type(stretch).from_mapping(json.loads(line)) == stretch


@STRETCHES
def test_no_two_parts_have_a_field_of_one_name(stretch: Trial | Transfer, line: str) -> None:
    own = [one.name for one in dataclasses.fields(stretch)]
    parts = [value for name in own if isinstance(value := getattr(stretch, name), FlatPart)]
    assert len(flattened(stretch)) == len(own) - len(parts) + sum(len(dataclasses.fields(part)) for part in parts)


@STRETCHES
@pytest.mark.parametrize("key", ["pair", "repeat", "started"])
def test_a_part_is_checked_as_it_is_read(stretch: Trial | Transfer, line: str, key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} is -1"):
        type(stretch).from_mapping(json.loads(line) | {key: -1})
