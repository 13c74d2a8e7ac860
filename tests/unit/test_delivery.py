"""Traffic that ends at the SUT: what a trial has of the generator, and what of who received."""

from __future__ import annotations

import pytest
from causes import because
from flat_values import changed, flat_scenario, flat_trial
from html_fragments import fragments

from pdrgate.gate.verdicts.arrivals import arrivals
from pdrgate.record.phase import Phase
from pdrgate.record.trial import LOOKS, Trial
from pdrgate.reports.words.arrival_words import arrivals_part
from pdrgate.results.verdict import Verdict
from pdrgate.traffic.delivery import Delivered, counted_by
from pdrgate.traffic.frames import Frames
from pdrgate.values.errors import SutError, UsageError

SENT_BY_LOOK = tuple(1000 * look // LOOKS for look in range(1, LOOKS + 1))


class Sender:
    """A generator whose packets all leave, and of which none comes back."""

    def __init__(self, under_way: tuple[int, ...] = SENT_BY_LOOK) -> None:
        self.frames: list[Frames] = []
        self.open = True
        self.refused = 0
        self.under_way = under_way

    def describe(self) -> dict[str, str]:
        return {"name": "sender", "engine": "none"}

    def trial(self, load: float, duration: float, frames: Frames) -> Trial:
        self.frames.append(frames)
        return flat_trial(
            load, duration, 1000, 0, refused=self.refused, stray=2, under_way=self.under_way,
            sending_time=duration * 1.0005, started=1.0,
        )  # fmt: skip

    def close(self) -> None:
        self.open = False


class Receiver:
    """One that gets half of what is sent at once, and 100 packets more in the end."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def begin(self, mark: int, count: int, duration: float) -> None:
        self.asked.append(("begin", mark, count, duration))

    def end(self, sending_time: float) -> Delivered:
        self.asked.append(("end", sending_time))
        halves = tuple(sent // 2 for sent in SENT_BY_LOOK)
        return Delivered(600, halves, 3, {"receiver0": {"received": 600, "dropped": 400}})


def test_a_trial_has_what_was_sent_and_what_was_received() -> None:
    sender, receiver = Sender(), Receiver()
    generator = counted_by(receiver, sender)
    trial = generator.trial(1000.0, 1.0, Frames(4))
    assert (trial.offered, trial.forwarded, trial.drained, trial.aside.stray) == (1000, 600, 100, 5)
    assert trial.under_way == tuple(sent - sent // 2 for sent in SENT_BY_LOOK)
    assert trial.delivery_ratio == 0.5  # when sending ended
    assert trial.loss_ratio == 0.4
    assert trial.steady_loss_ratio == pytest.approx(0.5, abs=0.01)
    assert trial.seen.counter_changes == {"receiver0": {"received": 600, "dropped": 400}}
    assert generator.describe() == sender.describe()
    generator.close()
    assert not sender.open


def test_all_that_was_received_of_bursts_had_drained() -> None:
    """Nothing is looked at while one is sent, and all of it is an overload."""
    trial = counted_by(Receiver(), Sender(under_way=())).trial(250e3, 0.004, Frames(4))
    assert (trial.forwarded, trial.drained, trial.under_way) == (600, 600, ())
    assert trial.steady_loss_ratio == 1.0


class Liar(Receiver):
    """One that tells what it is made for."""

    def __init__(self, received: int, by_look: tuple[int, ...] = SENT_BY_LOOK, stray: int = 0) -> None:
        super().__init__()
        self._told = Delivered(received, by_look, stray, {})

    def end(self, sending_time: float) -> Delivered:
        return self._told


@pytest.mark.parametrize(
    ("liar", "refused", "told"),
    [
        (Liar(2000), 0, "2000 packets in a trial that put 1000 in front of it"),
        (Liar(1000), 100, "1000 packets in a trial that put 900 in front of it"),
        (Liar(500), 0, "report what cannot be"),  # had more when sending ended than in the end
        (Liar(1000, SENT_BY_LOOK[::-1]), 0, "report what cannot be"),
        (Liar(1000, SENT_BY_LOOK[1:]), 0, "report what cannot be"),
        (Liar(-1, (-1,) * LOOKS), 0, "report what cannot be"),
        (Liar(1000, stray=-5), 0, "report what cannot be"),
    ],
)
def test_no_receiver_is_believed_beyond_what_was_put_in_front_of_it(liar: Liar, refused: int, told: str) -> None:
    sender = Sender()
    sender.refused = refused
    with pytest.raises(SutError, match=told):
        counted_by(liar, sender).trial(1000.0, 1.0, Frames(4))


def test_each_trial_has_a_mark_of_its_own_that_its_receivers_know() -> None:
    sender, receiver = Sender(), Receiver()
    generator = counted_by(receiver, sender)
    for _ in range(2):
        generator.trial(1000.0, 1.0, Frames(4))
    begun = [asked for asked in receiver.asked if asked[0] == "begin"]
    assert [frames.mark for frames in sender.frames] == [asked[1] for asked in begun]
    assert begun[0][1] != begun[1][1]
    assert begun[0][2:] == (1000, 1.0)
    assert receiver.asked[1] == ("end", pytest.approx(1.0005))


def test_nobody_is_asked_for_a_trial_that_has_no_meaning() -> None:
    receiver = Receiver()
    with pytest.raises(UsageError, match="a trial at a load of 0 packets/s has no meaning"):
        counted_by(receiver, Sender()).trial(0, 1.0, Frames(4))
    assert receiver.asked == []


def test_where_packets_come_back_the_generator_counts_them() -> None:
    sender = Sender()
    assert counted_by(None, sender) is sender


def arrived(load: float, **counted: int) -> Trial:
    """A repeat of which two receivers got the same."""
    counters = {f"receiver{number}": {"received": 500, "calls": 250, **counted} for number in range(2)}
    return flat_trial(load, 1.0, 1000, 1000, sending_time=1.0, started=1.0, phase=Phase.REPEAT, counters_after=counters)


def test_gaps_are_told_by_the_class_that_so_many_lie_in_or_below() -> None:
    trials = [
        arrived(2000.0, gap_1us=90, gap_64us=8, gap_longer_than_16384us=2), arrived(1000.0, gap_2us=1),
        changed(arrived(1000.0, gap_1us=5), phase=Phase.SEARCH),
        changed(arrived(1000.0, gap_1us=5), disturbed=because("a stall")),
    ]  # fmt: skip
    slow, fast = arrivals(trials)
    assert (slow.load, slow.trials, slow.gaps, slow.p50, slow.p99) == (1000.0, 1, 2, 2e-6, 2e-6)
    assert (fast.gaps, fast.p50, fast.p90, fast.p99) == (200, 1e-6, 1e-6, None)
    assert fast.packets_per_call == 2.0
    assert arrivals([flat_trial(1000.0, 1.0, 1000, 1000, sending_time=1.0, phase=Phase.REPEAT)]) == ()
    shown = flat_scenario(name="udp", title="UDP", verdict=Verdict.PASS, reason="", arrivals=(slow, fast))
    assert list(arrivals_part(shown).lines) == [
        "arrivals: half of the gaps < 2 µs, 99 % < 2 µs at 1 kpps (2 packets a call); half of the gaps < 1 µs, 99 % "
        "longer at 2 kpps (2 packets a call)"
    ]
    assert "Arrivals at the receivers" in "".join(fragments(shown))
