"""A comparison that is tried again: what of earlier tries counts, and how often three of them err."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_testbed import Watcher
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.builds.identity import build_identity
from pdrgate.builds.kernel_build import BuildError, KernelBuild
from pdrgate.gate.comparisons.pairs.tries import Tries
from pdrgate.history.address import HISTORY_FILE, Address
from pdrgate.history.database.experience import Experience
from pdrgate.history.database.version import SCHEMA_TABLE
from pdrgate.replication import PairsRule, Samples, Standing, Try, contradiction
from pdrgate.replication.earlier_tries import CLOCKS, LASTING, Pairs, counting
from pdrgate.results.model import Side
from pdrgate.results.verdict import Verdict

ONE: Pairs = ((1e6, 1.01e6), (1.1e6, 1.1e6))
TWO: Pairs = ((1e6, 1.02e6), (1.1e6, 1.1e6))
BUILDS: dict[Side, str] = {"baseline": "aa", "candidate": "bb"}
PRINTS: dict[Side, dict[str, str]] = {"baseline": {"kernel": "6.1"}, "candidate": {"kernel": "6.2"}}


def attempt(run: str = "1", when: float = 0.0, pairs: Pairs = ONE, **more: bool) -> Try:
    return Try(run=run, when=when, verdict="REGRESSION", pairs={"PDR": pairs}, **more)


def samples(pairs: Sequence[tuple[float, float]]) -> Samples:
    return Samples(
        "PDR", "packets/s", "higher", 0.02, tuple(old for old, _ in pairs), tuple(new for _, new in pairs)
    )  # fmt: skip


# --- Which tries count ---


def test_all_tries_since_the_last_that_began_afresh_count() -> None:
    first, second, third = attempt("1"), attempt("2"), attempt("3")
    assert counting([], 0.0) == ()
    assert counting([first, second, third], 0.0) == (first, second, third)
    anew = dataclasses.replace(second, afresh=True)
    assert counting([first, anew, third], 0.0) == (anew, third)


def test_a_run_that_goes_on_stands_in_the_place_of_what_it_was() -> None:
    first, other, again = attempt("1"), attempt("2"), attempt("1", resumed=True)
    assert counting([first, other, again], 0.0) == (other, again)


def test_a_try_counts_for_a_week() -> None:
    assert counting([attempt(when=0.0), attempt("2", when=10.0)], LASTING + 5) == (attempt("2", when=10.0),)


@pytest.mark.parametrize(("ahead", "counts"), [(CLOCKS - 1, True), (CLOCKS + 1, False), (1e18, False)])
def test_a_try_of_the_future_does_not_count(ahead: float, counts: bool) -> None:
    assert bool(counting([attempt(when=100.0 + ahead)], 100.0)) is counts


def test_what_is_no_try_forgets_no_other_one() -> None:
    first = attempt("1")
    for hostile in (
        attempt("2", pairs=(), afresh=True),
        attempt("1", pairs=(), resumed=True),
        attempt("2", when=1e9, afresh=True),
    ):
        assert counting([first, hostile], 0.0) == (first,)


def test_pairs_that_stand_there_twice_count_once() -> None:
    other = attempt("1", pairs=(*ONE, *ONE))  # of a worker that began in the same second
    assert counting([attempt("1"), attempt("1", when=-1.0), other], 0.0) == (attempt("1"), other)


@pytest.mark.parametrize(
    "changed",
    [
        {"run": ""}, {"run": "r" * 1001}, {"verdict": "PASS\n::error::"}, {"verdict": ""},
        {"pairs": {"PDR": ONE * 1000}}, {"when": -math.inf}, {"when": math.nan},
    ],
)  # fmt: skip
def test_what_no_try_writes_does_not_count(changed: dict[str, object]) -> None:
    assert counting([dataclasses.replace(attempt(), **changed)], 0.0) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pairs",
    [
        (), ((1e6, 1e6),), ((1e6, 0.0), (1e6, 1e6)), ((1e6, math.inf), (1e6, 1e6)), ((-1e6, 1e6), (1e6, 1e6)),
        ((1e300, 1e-300), (1e6, 1e6)), ((5e-324, 1e6), (1e6, 1e6)),
    ],
)  # fmt: skip
def test_what_tells_nothing_does_not_count(pairs: Pairs) -> None:
    assert counting([attempt(pairs=pairs)], 0.0) == ()


def test_measurands_of_other_numbers_of_pairs_are_no_try() -> None:
    torn = Try(run="1", when=0.0, verdict="PASS", pairs={"PDR": ONE, "saturation throughput": ONE[:1]})
    assert counting([torn], 0.0) == ()


# --- Their pairs beside the new ones ---


@given(
    st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.5, 2.0)), min_size=2, max_size=7),
    st.lists(st.tuples(st.floats(1e6, 2e6), st.floats(1e6, 2e6)), min_size=1, max_size=7),
)
def test_ratios_are_taken_over_and_levels_are_not(
    then: list[tuple[float, float]], now: list[tuple[float, float]]
) -> None:
    """A machine that is a million times faster today has no builds that scatter by that."""
    found = samples(now).after([tuple(then)])
    kept = then[: len(then) // 2 * 2]
    ratios = [new / old for old, new in zip(found.baseline, found.candidate, strict=True)]
    assert ratios == pytest.approx([new / old for old, new in (*kept, *now)])
    assert found.baseline[len(kept) :] == tuple(old for old, _ in now)
    assert min(found.baseline) > 1e5


def test_without_pairs_of_either_there_is_nothing_to_take_over() -> None:
    assert samples([]).after([ONE]) == samples([])
    assert samples(ONE).after([]) == samples(ONE).after([ONE[:1]]) == samples(ONE)


def test_a_retry_ends_after_two_pairs_where_earlier_ones_and_they_tell() -> None:
    source = random.Random(1)
    pairs = [(1e6, 1e6 * (1 + source.gauss(0, 0.003))) for _ in range(6)]
    rule = PairsRule()
    assert rule.standing([samples(pairs[:2])]).verdict is None
    assert rule.standing([samples(pairs[2:]).after([tuple(pairs[:2])])], earlier=2).verdict is Verdict.PASS
    for own in (1, 2, 3):
        after = samples(pairs[:own]).after([tuple(pairs[2:])])
        assert (rule.standing([after], earlier=4).verdict is Verdict.PASS) is (own == 2)
    assert [rule.wants(pair, 4) for pair in (1, 2, 3, 4)] == [True, True, False, True]
    assert rule.wants(3, 1)


def test_a_try_that_is_over_before_two_pairs_says_nothing_by_what_earlier_ones_left() -> None:
    after = samples([(1e6, 1e6)]).after([((1e6, 0.8e6), (1e6, 0.81e6), (1e6, 0.8e6), (1e6, 0.79e6))])
    assert PairsRule().standing([after], earlier=4, ended=True).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("change", "wrong"), [(0.0, {"REGRESSION"}), (-0.0396, {"PASS", "IMPROVEMENT"})])
def test_tried_three_times_it_errs_in_one_of_a_hundred(change: float, wrong: set[str]) -> None:
    """Where pairs deviate by half as much again as the tolerance, and three tries are all that CI allows."""
    rule = PairsRule(most=16)
    source = random.Random(1)
    erred = 0
    for _ in range(200):
        tries: list[Pairs] = []
        said = set()
        for _ in range(3):
            earlier = sum(map(len, tries))
            pairs: list[tuple[float, float]] = []
            verdict = None
            while verdict is None:
                pairs.append((1e6, 1e6 * (1 + change) * (1 + source.gauss(0, 0.03))))
                verdict = rule.standing([samples(pairs).after(tries)], earlier=earlier).verdict
            said.add(str(verdict))
            tries.append(tuple(pairs))
        erred += bool(said & wrong)
    assert erred <= 2


# --- Pairs that contradict the fresh ones ---


def compared(fresh: Pairs, *tries: Pairs, most: int = 48) -> tuple[Standing, bool]:
    """What the rule says of fresh pairs after those tries, and whether these contradict it; as a comparison asks it."""
    own = samples(fresh)
    apart = contradiction(own, tries) is not None
    earlier = 0 if apart else sum(map(len, tries))
    standing = PairsRule(most=most).standing([own if apart else own.after(tries)], earlier=earlier)
    return standing, apart


def of(change: float, pairs: int, deviation: float = 0.002, seed: int = 1) -> Pairs:
    source = random.Random(seed)
    return tuple((1e6, 1e6 * (1 + change) * math.exp(source.gauss(0, deviation))) for _ in range(pairs))


@pytest.mark.parametrize("slower", [-0.3, -0.1, -0.06, -0.04])
@pytest.mark.parametrize(
    "forged",
    [
        (of(0.0, 14),), (of(0.0, 10),), (of(0.0, 4),), (of(0.0, 200),), (of(0.0, 14, 0.0),), (of(0.05, 14),),
        tuple(of(0.0, 2, seed=seed) for seed in range(20)), (of(0.0, 900, 0.2),), (of(0.1, 900, 0.3),),
        tuple(of(0.05, 900, 0.4, seed=seed) for seed in range(4)),
    ],
)  # fmt: skip
def test_no_pairs_of_earlier_tries_make_a_slower_build_pass(slower: float, forged: tuple[Pairs, ...]) -> None:
    """Few or many, alike or scattered so that nothing contradicts them."""
    fresh = of(slower, 16, seed=7)
    said = [compared(fresh[:pairs], *forged)[0].verdict for pairs in range(2, 17, 2)]
    assert not {Verdict.PASS, Verdict.IMPROVEMENT} & set(said)
    # Nothing keeps the build's own pairs from ending it, where theirs contradict.
    if compared(fresh[:4], *forged)[1]:
        assert said[1] is Verdict.REGRESSION
    ended, _ = compared(fresh[:2], *forged, most=2)
    assert ended.verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)


def test_the_pairs_of_a_machine_that_was_another_one_do_not_count() -> None:
    standing, apart = compared(of(0.0, 4), of(-0.3, 14))
    assert apart
    assert standing.verdict is Verdict.PASS  # to the rule; see test_shape_of_comparisons for what becomes of it
    assert standing.changes[0].change == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("deviation", [0.002, 0.05])
def test_pairs_of_one_ratio_seldom_contradict_each_other_whatever_their_tails(deviation: float) -> None:
    source = random.Random(1)

    def pairs(count: int) -> Pairs:
        return tuple(
            (1e6, 1e6 * math.exp(deviation * source.gauss(0, 1) / source.uniform(0.05, 1))) for _ in range(count)
        )

    apart = sum(contradiction(samples(pairs(2)), [pairs(12)]) is not None for _ in range(1000))
    assert apart <= 30


def test_a_contradiction_tells_both_ratios_and_whether_the_earlier_was_slower() -> None:
    found = contradiction(samples(of(0.0, 4)), [of(-0.3, 8)])
    assert found is not None
    assert found.slower
    assert str(found).startswith("PDR -30.")
    cost = dataclasses.replace(samples(of(0.3, 4)), better="lower")
    faster = contradiction(cost, [of(0.0, 8)])
    assert faster is not None
    assert (faster.slower, round(faster.fresh, 1)) == (False, 0.3)
    assert contradiction(samples(of(0.0, 4)), []) is None


# --- In a history ---


def found(folder: Path, **how: bool) -> tuple[Tries, Watcher]:
    watcher = Watcher()
    options = {"afresh": False, "resumed": False} | how
    kept = Experience(Address.beside(folder), patience=0.01)
    tries = Tries(kept, f"run {len(how)} \udcff", **options, observer=watcher)
    tries.find(BUILDS, PRINTS)
    return tries, watcher


def test_a_try_is_found_by_the_next_one_which_says_so(tmp_path: Path) -> None:
    first, watcher = found(tmp_path)
    assert (first.earlier.tries, watcher.sentences) == ((), [])
    first.keep(Verdict.REGRESSION, {"PDR": ONE, "cost": ONE})
    second, watcher = found(tmp_path)
    assert watcher.sentences == [
        "this is try 2 of these two builds: 2 pairs of earlier ones (REGRESSION) count too, and with --afresh they do "
        "not"
    ]
    assert second.earlier.of("PDR") == [ONE]
    assert second.earlier.having(["PDR", "other"]).tries == ()
    assert second.earlier.having(["PDR"]).pairs == 2


def test_tries_that_contradict_do_not_count_and_are_told(tmp_path: Path) -> None:
    first, _ = found(tmp_path)
    first.keep(Verdict.PASS, {"PDR": of(0.0, 14)})
    earlier = found(tmp_path)[0].earlier
    assert earlier.agreeing([samples(of(0.0, 2, seed=3))]) is earlier
    apart = earlier.agreeing([samples(of(-0.3, 2))])
    assert (apart.tries, apart.pairs, apart.samples, apart.of("PDR")) == ((), 0, [], [])
    assert apart.in_words().startswith(
        "the pairs of earlier tries of these two builds contradict these and do not count (PDR "
    )
    assert "-29.8% now" in apart.in_words()


def test_afresh_forgets_for_good(tmp_path: Path) -> None:
    found(tmp_path)[0].keep(Verdict.REGRESSION, {"PDR": ONE})
    anew, watcher = found(tmp_path, afresh=True)
    assert (anew.earlier.tries, watcher.sentences) == ((), [])
    anew.keep(Verdict.INCONCLUSIVE, {"PDR": ONE})
    later, _ = found(tmp_path)
    assert [one.verdict for one in later.earlier.tries] == ["INCONCLUSIVE"]


def test_a_run_that_is_resumed_is_no_earlier_try_of_itself(tmp_path: Path) -> None:
    found(tmp_path, resumed=True)[0].keep(Verdict.INCONCLUSIVE, {"PDR": ONE})
    assert found(tmp_path, resumed=True)[0].earlier.tries == ()
    assert len(found(tmp_path)[0].earlier.tries) == 1


@pytest.mark.parametrize("verdict", [Verdict.DISTURBED, Verdict.ERROR, Verdict.GENERATOR_LIMITED, Verdict.NO_BASELINE])
def test_what_the_machine_did_is_no_try(tmp_path: Path, verdict: Verdict) -> None:
    found(tmp_path)[0].keep(verdict, {"PDR": ONE})
    assert found(tmp_path)[0].earlier.tries == ()


@pytest.mark.parametrize(
    ("builds", "prints"),
    [
        ({"baseline": "bb", "candidate": "aa"}, PRINTS),
        ({"baseline": "aa", "candidate": "cc"}, PRINTS),
        (BUILDS, PRINTS | {"candidate": {"kernel": "6.2", "turbo": "off"}}),
        (BUILDS | {"candidate": ""}, PRINTS),
        (BUILDS, PRINTS | {"baseline": {}}),
    ],
)
def test_other_builds_and_other_fingerprints_are_no_tries_of_these(
    tmp_path: Path, builds: dict[Side, str], prints: dict[Side, dict[str, str]]
) -> None:
    found(tmp_path)[0].keep(Verdict.REGRESSION, {"PDR": ONE})
    watcher = Watcher()
    tries = Tries(Experience(Address.beside(tmp_path)), "2", afresh=False, resumed=False, observer=watcher)
    tries.find(builds, prints)
    assert (tries.earlier.tries, watcher.sentences) == ((), [])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("BEGIN IMMEDIATE", "database is locked; another program is writing to it"),
        (f"UPDATE {SCHEMA_TABLE} SET schema = 5", " is of schema 5, and this pdrgate reads schema 4"),
        ("DROP TABLE experience", "no such table: experience"),
    ],
)
def test_a_history_that_fails_changes_no_verdict(tmp_path: Path, fault: str, said: str) -> None:
    found(tmp_path)[0].keep(Verdict.REGRESSION, {"PDR": ONE})
    with contextlib.closing(sqlite3.connect(tmp_path / HISTORY_FILE, isolation_level=None)) as other:
        other.execute(fault)
        tries, watcher = found(tmp_path)
        tries.keep(Verdict.PASS, {"PDR": TWO})
    assert tries.earlier.tries == ()
    assert [one.partition(":")[0] for one in watcher.sentences] == [
        "earlier tries of these builds are not known", "this try is not kept for a retry"
    ]  # fmt: skip
    assert all(said in one for one in watcher.sentences)


def test_a_row_that_is_damaged_costs_itself(tmp_path: Path) -> None:
    for pairs in (ONE, TWO):
        found(tmp_path)[0].keep(Verdict.PASS, {"PDR": pairs})
    with contextlib.closing(sqlite3.connect(tmp_path / HISTORY_FILE, isolation_level=None)) as damaged:
        damaged.execute("UPDATE experience SET content = '{}' WHERE id = 1")
    assert len(found(tmp_path)[0].earlier.tries) == 1


# --- What a build is ---


def test_a_build_is_its_image_and_its_modules(tmp_path: Path) -> None:
    image, modules = tmp_path / "bzImage", tmp_path / "modules"
    image.write_bytes(b"kernel")
    (modules / "kernel").mkdir(parents=True)
    (modules / "modules.order").write_text("kernel/a.ko\nkernel/gone.ko\n")
    (modules / "kernel/a.ko").write_bytes(b"module")
    build = KernelBuild("a name", "", image, "6.1", "#1", modules)
    first = build_identity(build)
    assert build_identity(dataclasses.replace(build, name="another name", source="elsewhere")) == first
    (modules / "kernel/a.ko").write_bytes(b"longer module")
    changed = build_identity(build)
    assert changed != first
    assert build_identity(dataclasses.replace(build, modules=None)) not in (first, changed)
    image.write_bytes(b"Kernel")
    assert build_identity(build) != changed
    image.unlink()
    with pytest.raises(BuildError, match=r"bzImage: cannot read it: No such file or directory$"):
        build_identity(build)
