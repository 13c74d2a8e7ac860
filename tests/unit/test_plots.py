import dataclasses
import itertools
import math
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from flat_values import changed, flat_scenario, flat_side
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox
from simulated_sut import (
    Behaviour,
    Ceiling,
    IdealCurve,
    LoadLoss,
    RealisticCurve,
    SimulatedSut,
    TrashingCurve,
)

from pdrgate.record.trial import Trial
from pdrgate.reports import plots
from pdrgate.reports.plots import PLR_FLOOR
from pdrgate.reports.plots.load_loss import STARVED
from pdrgate.results.model import (
    AssessmentResult,
    BootResult,
    ChangeResult,
    ComparisonResult,
    GoalResult,
    LatencyResult,
    MeasurandResult,
    ScenarioResult,
    SideResult,
)
from pdrgate.results.verdict import Verdict
from pdrgate.search.goals import known_bounds
from pdrgate.stability import TirReading, assess, read_experiments
from pdrgate.values.units import Rate

PASTRAMI = Path(__file__).parents[3] / "shared/pastrami/bare-metal"
KNEE = RealisticCurve(1e6)
AROUND = (7e5, 9e5, 1e6, 1.1e6, 1.2e6)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def simulated(
    loads: Sequence[float],
    runs: int,
    curve: LoadLoss = KNEE,
    behaviour: Behaviour | None = None,
    ceiling: Ceiling | None = None,
    reading: TirReading = TirReading.STRICT,
    plr_threshold: float = 0.005,
) -> AssessmentResult:
    sut = SimulatedSut(curve, behaviour, seed=3, ceiling=ceiling)
    return assess(sut.repeat(loads, 1.0, runs), reading=reading, plr_threshold=plr_threshold).result()


CASES: dict[str, Callable[[], AssessmentResult]] = {
    "50 runs": lambda: simulated(AROUND, 50),
    "16 loads in two modes": lambda: simulated(
        [1e5 * step for step in range(1, 17)], 20, behaviour=Behaviour(modes=(1.0, 0.93))
    ),
    "31 loads": lambda: simulated([1e5 * step for step in range(1, 32)], 3),
    "1 run per load": lambda: simulated(AROUND, 1),
    "no loss at all": lambda: simulated((7e4, 8e4, 9e4, 1e5), 10, IdealCurve(1e9)),
    "no loss allowed": lambda: simulated(AROUND, 5, plr_threshold=0.0),
    "nothing forwarded": lambda: simulated((5.0, 9.0, 20.0), 4, TrashingCurve(IdealCurve(1.0), 1.0, 1.0)),
    "past the threshold from the first load": lambda: simulated((1.2e6, 1.3e6, 1.4e6), 5),
    "one load": lambda: simulated((1e6,), 3),
    "one load, one run": lambda: simulated((1e6,), 1),
    "generator-limited above": lambda: simulated(AROUND, 5, ceiling=Ceiling(0.95e6)),
    "all generator-limited": lambda: simulated((7e5, 9e5), 5, ceiling=Ceiling(0.5e6)),
}
CROWDED = ("16 loads in two modes", "generator-limited above")


@cache
def case(name: str) -> AssessmentResult:
    return CASES[name]()


def goal(name: str, loss_ratio: float, lower: float | None, upper: float | None) -> GoalResult:
    return GoalResult(name=name, loss_ratio=loss_ratio, width=0.01, outcome="found", lower=lower, upper=upper)


def compared(
    base: Sequence[float], candidate: Sequence[float], builds: tuple[str, str] = ("a", "b"), **further: ComparisonResult
) -> ScenarioResult:
    """Boots of two builds by their PDRs, and of a measurand of which less is better."""
    cost = MeasurandResult(name="cost of a packet", unit="ns", better="lower", value=1.0)
    boots = [
        BootResult(side=side, pair=pair, boot="", kernel="", values={"PDR": value, "cost of a packet": 1e9 / value})
        for pair, values in enumerate(zip(base, candidate, strict=True), 1)
        for side, value in zip(("baseline", "candidate"), values, strict=True)
    ]  # type: ignore[arg-type]
    return flat_scenario(
        name="s",
        title="t",
        verdict=Verdict.PASS,
        reason="",
        measurands=(cost,),
        sides=(SideResult(side="baseline", build=builds[0]), SideResult(side="candidate", build=builds[1])),
        boots=tuple(boots),
        **further,  # type: ignore[arg-type]
    )


def comparison(tolerance: float, changes: tuple[ChangeResult, ...] = ()) -> ComparisonResult:
    return ComparisonResult(
        baseline="a", tolerance=tolerance, change=0.0, lower=0.0, upper=0.0, confidence=0.95, changes=changes
    )


def size_of(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png[12:16] == b"IHDR"
    width, height = struct.unpack(">II", png[16:24])
    assert png[-8:-4] == b"IEND"
    return width, height


def lines(figure: Figure, label: str) -> list[Line2D]:
    return [each for axes in figure.axes for each in axes.lines if str(each.get_label()).startswith(label)]


def line(figure: Figure, label: str) -> Line2D:
    (found,) = lines(figure, label)
    return found


def data(found: Line2D) -> tuple[list[float], list[float]]:
    return list(found.get_xdata()), list(found.get_ydata())  # type: ignore[arg-type]


def means(figure: Figure) -> tuple[list[float], list[float]]:
    """Where the load-loss curve's marks with their intervals are."""
    (container,) = figure.axes[0].containers
    return data(container[0])


def words(figure: Figure) -> list[str]:
    """All texts but those of the axes' numbers."""
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    return [text.get_text() for text in texts]


def header(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def overlaps(figure: Figure) -> list[str]:
    """What leaves the picture, and pairs of header lines, legend and axes with their numbers that lie on each other."""
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    boxes = {text.get_text(): text.get_window_extent() for text in figure.texts if text.get_text()}
    boxes |= {f"legend {number}": legend.get_window_extent() for number, legend in enumerate(figure.legends)}
    boxes |= {f"axes at {axes.get_position().bounds}": axes.get_tightbbox() for axes in figure.axes}
    wide, high = figure.canvas.get_width_height()
    found = [
        name for name, box in boxes.items() if box.x0 < -1 or box.y0 < -1 or box.x1 > wide + 1 or box.y1 > high + 1
    ]
    for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
        shared = Bbox.intersection(first, second)
        if shared is not None and min(shared.width, shared.height) > 4:  # a text's box is higher than its letters
            found.append(f"{one!r} and {other!r}")
    return found


# --- every picture over every odd input ---


@pytest.mark.parametrize("name", [name for name in CASES if name not in (*CROWDED, "50 runs", "31 loads")])
def test_any_assessment_is_drawn(name: str) -> None:
    for figure in (plots.load_loss(case(name), "t"), plots.rates(case(name), "t"), plots.repeats(case(name), "t")):
        figure.set_layout_engine("none")  # the dearest part, and the next test's matter
        figure.draw_without_rendering()


@pytest.mark.parametrize("name", CROWDED)
def test_nothing_lies_on_anything_else(name: str) -> None:
    title, subtitle = "A title that goes on and on " * 6, "IPv6 routing, unpinned " * 9
    assert overlaps(plots.load_loss(case(name), title, subtitle)) == []
    assert overlaps(plots.rates(case(name), title, subtitle)) == []
    assert overlaps(plots.repeats(case(name), title)) == []


def test_every_picture_is_a_png_of_the_same_size() -> None:
    found = case("generator-limited above")
    for figure in (
        plots.load_loss(found, title="A title", subtitle="below it"),
        plots.rates(found, title="a $ and $x^{$"),
        plots.repeats(case("nothing forwarded"), title=""),
        plots.search_path([], title=r"\alpha_{", goals=[]),
        plots.pairs(compared([1e6], [0.9e6])),
    ):
        assert figure is not None
        assert size_of(plots.png(figure)) == (1100, 704)


def test_pairs_of_boots_show_each_measurand_the_tolerance_and_what_was_known_after_each() -> None:
    base, candidate = [1e6, 1.01e6, 0.99e6, 1e6], [0.9e6, 0.92e6, 0.89e6, 0.9e6]
    cost = ChangeResult(
        measurand="cost of a packet", change=0.1, lower=0.1, upper=0.1, confidence=0.95, tolerance=0.03, baseline=1.0,
        candidate=1.0, unit="ns", better="lower", verdict=Verdict.REGRESSION,
    )  # fmt: skip
    scenario = compared(base, candidate, ("linux-a " * 6, "linux-b"), comparison=comparison(0.02, (cost,)))
    figure = plots.pairs(scenario)
    costs, pdrs, of_cost, of_pdr = figure.axes
    assert [list(line.get_ydata()) for line in pdrs.lines] == [base, candidate]
    assert [list(line.get_ydata()) for line in costs.lines] == [
        [1e9 / value for value in side] for side in (base, candidate)
    ]
    assert pdrs.get_title(loc="left") == "PDR"
    assert costs.get_title(loc="left") == "cost of a packet\n+10.0%"
    assert scenario.verdict in {text.get_text() for text in figure.texts}
    low, high = of_pdr.get_ylim()
    assert low < -10 < -2 < 0 < high
    low, high = of_cost.get_ylim()
    assert low < 0 < 3 < 11 < high
    so_far = next(line for line in of_pdr.lines if line.get_label() == "change so far")
    assert so_far.get_ydata()[-1] == pytest.approx(-9.75, abs=0.05)
    tolerances = {
        line.get_ydata()[0]: line.get_label() for line in (*of_cost.lines, *of_pdr.lines) if "tol" in line.get_label()
    }
    assert tolerances == {3.0: "tolerance, 3.0% more", -2.0: "tolerance, 2.0% less"}
    assert overlaps(figure) == []


def test_only_pairs_of_which_both_boots_came_to_a_number_are_drawn() -> None:
    scenario = compared([1e6, 1e6, 1e6], [0.9e6, 0.9e6, 0.9e6])
    failed = dataclasses.replace(scenario.builds.boots[2], values={}, failure="it does not boot")
    scenario = changed(scenario, boots=(*scenario.builds.boots[:2], failed, *scenario.builds.boots[3:]))
    assert [list(line.get_xdata()) for line in plots.pairs(scenario).axes[0].lines] == [[1, 3], [1, 3]]
    assert plots.pairs(changed(scenario, boots=(failed,))) is None


def test_what_is_told_and_not_judged_takes_no_room_in_the_picture_of_pairs() -> None:
    scenario = compared([1e6, 1e6], [0.9e6, 0.9e6])
    boots = tuple(dataclasses.replace(boot, values={**boot.values, "calls": 40.0}) for boot in scenario.builds.boots)
    titles = [axes.get_title(loc="left") for axes in plots.pairs(changed(scenario, boots=boots)).axes]
    assert "PDR" in titles and not any(title.startswith("calls") for title in titles)


def test_the_verdict_the_label_and_the_failed_checks_sentence_are_written() -> None:
    good = words(plots.load_loss(case("50 runs"), "t", "sub"))
    assert {"t", "sub", "STABLE · GOOD (strict reading)"} <= set(good)
    limited = case("generator-limited above")
    text = header(plots.rates(limited, "t"))
    assert "GENERATOR LIMITED · BAD (strict reading)" in text
    assert f"GENERATOR_LIMITED: {limited.reason}" in text
    disturbed = header(plots.load_loss(limited, "t", "", plots.Stamp("DISTURBED", "others had CPU 1")))
    assert "DISTURBED: others had CPU 1" in disturbed and "BAD" not in disturbed
    assert "BAD (tolerant reading)" in header(plots.repeats(simulated((7e5, 9e5), 3, reading=TirReading.TOLERANT), "t"))


@pytest.mark.skipif(not PASTRAMI.is_dir(), reason="PASTRAMI's published experiments are not here")
@pytest.mark.parametrize(("kernel", "said"), [("6.8", "STABLE · GOOD"), ("5.15", "UNSTABLE · BAD")])
def test_published_experiments(kernel: str, said: str) -> None:
    (experiment,) = read_experiments(PASTRAMI / f"clab_tb1_raw_50_k{kernel}_intel_bare-metal_as-is.txt")
    found = assess(experiment.trials).result()
    for figure in (plots.load_loss(found, "t", "s"), plots.rates(found, "t", "s")):
        assert overlaps(figure) == []
        assert said in header(figure)
        assert found.reason in header(figure)


# --- the load-loss curve ---


def test_the_curve_has_the_mean_of_every_load_and_crosses_the_threshold_where_it_says() -> None:
    found = case("50 runs")
    figure = plots.load_loss(found, "t")
    assert means(figure) == (
        [point.load for point in found.loads],
        [max(PLR_FLOOR, point.plr) for point in found.loads],
    )
    between = max((data(each) for each in figure.axes[0].lines), key=lambda each: len(each[0]))
    crossing = next(load for load, plr in zip(*between, strict=True) if plr > 0.005)
    assert found.pdr.load is not None
    assert crossing == pytest.approx(found.pdr.load, rel=1e-3)
    assert any(data(each)[0] == [found.pdr.load] * 2 for each in figure.axes[0].lines)
    assert f"PLR crosses 0.5 % at {found.pdr.load / 1e3:.4g} kpps" in words(figure)
    (interval,) = (text for text in words(figure) if text.startswith("95 % interval of the crossing"))
    assert f"{found.pdr.lower / 1e3:.4g} kpps to " in interval  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no loss at all", "PLR does not cross 0.5 % up to 100 kpps"),
        ("past the threshold from the first load", "PLR is past 0.5 % already at 1.2 Mpps"),
        ("all generator-limited", "every trial was generator-limited: there is no curve"),
    ],
)
def test_a_crossing_that_was_not_measured_is_said_not_drawn(name: str, said: str) -> None:
    for figure in (plots.load_loss(case(name), "t"), plots.rates(case(name), "t")):
        assert said in words(figure)
        assert not any("crossing" in text for text in words(figure))


def test_what_a_queue_hid_is_in_the_curve_and_what_trials_lost_lies_beside_it() -> None:
    """A deep buffer loses nothing in a short trial: that curve crosses the threshold far above the PDR."""
    found = case("50 runs")
    hidden = tuple(dataclasses.replace(point, plr=0.0, lcl=0.0, ucl=0.0, steady_plr=point.plr) for point in found.loads)
    figure = plots.load_loss(dataclasses.replace(found, loads=hidden), "t")
    loads, plrs = data(line(figure, "PLR, with what the queue grew by"))
    assert loads == [point.load for point in found.loads]
    assert plrs == pytest.approx([max(point.plr, PLR_FLOOR) for point in found.loads])
    assert means(figure)[1] == [PLR_FLOOR] * len(hidden)


def test_every_repeat_is_a_dot_and_what_is_below_the_floor_lies_on_it_and_says_so() -> None:
    figure = plots.load_loss(case("no loss at all"), "t")
    assert data(line(figure, "each repeat"))[1] == [PLR_FLOOR] * 40
    assert means(figure)[1] == [PLR_FLOOR] * 4
    figure.draw_without_rendering()
    assert "≤ $10^{-6}$" in [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_delta_ucl_is_on_its_own_scale_with_gaps_where_there_is_none() -> None:
    found = case("50 runs")
    figure = plots.load_loss(found, "t")
    red = line(figure, "ΔUCL95")
    for value, point in zip(data(red)[1], found.loads, strict=True):
        assert value == point.delta_ucl or (point.delta_ucl is None and math.isnan(value))
    assert red.axes is figure.axes[1]
    assert "ΔUCL95" in figure.axes[1].get_ylabel()


def test_one_run_per_load_has_neither_interval_nor_delta_ucl() -> None:
    figure = plots.load_loss(case("1 run per load"), "t")
    assert "PLR (one run per load: no interval)" in words(figure)
    assert len(figure.axes) == 1
    assert not lines(figure, "each repeat")


def test_saturation_is_shaded_from_where_it_was_expected_and_found() -> None:
    stable, flipping = case("50 runs"), case("16 loads in two modes")
    assert "saturated from 1.1 Mpps" in words(plots.load_loss(stable, "t"))
    figure = plots.load_loss(flipping, "t")
    begins = {patch.get_label(): patch.get_x() for patch in figure.axes[0].patches}  # type: ignore[attr-defined]
    assert begins["no lasting saturation from 1.1 Mpps"] == pytest.approx(1.1e6)
    assert begins["saturated from 1.6 Mpps"] == pytest.approx(1.6e6)


def test_generator_limited_loads_are_crosses() -> None:
    found = case("generator-limited above")
    for figure in (plots.load_loss(found, "t"), plots.rates(found, "t")):
        assert data(line(figure, "every trial was generator-limited"))[0] == list(found.generator_limited_loads)


# --- the rates ---


def test_rates_show_throughput_delivery_ratio_the_ideal_and_every_tir() -> None:
    found = case("50 runs")
    figure = plots.rates(found, "t")
    throughputs = [point.throughput for point in found.loads]
    assert data(line(figure, "rate handled")) == ([point.load for point in found.loads], throughputs)
    ratios, bound = [100 * (1 - point.plr) for point in found.loads], [99.5, 99.5]
    assert [data(each)[1] for each in lines(figure, "delivery ratio")] == [bound, ratios]
    ideal = data(line(figure, "ideal"))
    assert ideal[0] == ideal[1]
    written = [text.get_text() for text in figure.axes[1].texts]
    assert written == [f"{ratio:.2f}".replace("-0.00", "0.00") for ratio in found.saturation.tir]


def test_axes_say_the_unit_that_suits_the_loads() -> None:
    axis = plots.rates(case("50 runs"), "t").axes[2].xaxis
    assert [axis.get_major_formatter()(load) for load in (20.0, 9e5, 1.25e6)] == ["20 pps", "900 kpps", "1.25 Mpps"]


# --- the repeats ---


def test_repeats_has_a_panel_per_load_and_one_for_the_pdr_in_measured_order() -> None:
    found = case("16 loads in two modes")
    panels = {axes.get_title(loc="left"): axes for axes in plots.repeats(found, "t").axes}
    assert list(panels)[:3] == ["PLR crosses 0.5 %", "100 kpps", "200 kpps"]
    assert len(panels) == 17
    point = next(point for point in found.loads if point.load == pytest.approx(1.1e6))
    middle = sum(sorted(point.throughputs)[9:11]) / 2
    numbers, changes = data(panels["1.1 Mpps"].lines[-1])
    assert numbers == list(range(1, 21))
    assert changes == pytest.approx([100 * (value / middle - 1) for value in point.throughputs])


def test_of_very_many_loads_those_nearest_to_the_pdr_are_shown() -> None:
    figure = plots.repeats(case("31 loads"), "t")
    assert len(figure.axes) == 20
    assert "12 loads left out" in header(figure)
    assert "1 Mpps" in [axes.get_title(loc="left") for axes in figure.axes]


# --- the search ---


def trial(load: float, loss: float, seconds: float = 1.0, unsent: int = 0) -> Trial:
    return Trial(load, seconds, 1_000_000, round(1_000_000 * (1 - loss)), unsent=unsent, sending_time=seconds)


SEARCH = (
    trial(2e6, 0.4, 0.5),
    trial(1e6, 0.0, 0.5),
    trial(1.2e6, 0.02, 0.5),
    trial(1.1e6, 0.004),
    trial(1.2e6, 0.001),
    trial(1.3e6, 0.0, unsent=90_000),
)


def test_known_bounds_follow_the_longest_trials_and_most_of_them() -> None:
    assert [known_bounds(SEARCH[:count], 0.005) for count in range(7)] == [
        (None, None),
        (None, 2e6),
        (1e6, 2e6),
        (1e6, 1.2e6),
        (1.1e6, 1.2e6),
        (1.2e6, 2e6),  # the longer trial overrules the shorter
        (1.2e6, 2e6),  # the generator's limit is not the SUT's
    ]
    thrice = [trial(1e6, 0.1), trial(1e6, 0.0), trial(1e6, 0.1)]
    assert [known_bounds(thrice[:count], 0.005) for count in (1, 2, 3)] == [(None, 1e6), (1e6, None), (None, 1e6)]


def test_the_search_shows_each_goals_bounds_so_far_as_steps_and_those_in_the_end_as_lines() -> None:
    goals = [goal("PDR", 0.005, 1.2e6, 2e6), goal("NDR", 0.0, 1e6, None)]
    figure = plots.search_path(SEARCH, "t", goals)
    lower, upper = (data(each)[1] for each in lines(figure, "PDR search: bounds so far"))
    assert lower[1:] == [1e6, 1e6, 1.1e6, 1.2e6, 1.2e6]
    assert upper == [2e6, 2e6, 1.2e6, 1.2e6, 2e6, 2e6]
    assert [data(each)[1][0] for each in lines(figure, "PDR search bounds: 1.2 Mpps to 2 Mpps")] == [1.2e6, 2e6]
    assert [data(each)[1][0] for each in lines(figure, "NDR search bounds: from 1 Mpps")] == [1e6]


def test_trials_are_marked_by_their_loss() -> None:
    figure = plots.search_path(SEARCH, "t", [goal("PDR", 0.005, None, None)])
    marks = {str(each.get_label()): data(each) for each in figure.axes[0].lines if each.get_linestyle() == "None"}
    assert marks == {
        "no loss": ([2], [1e6]),
        "loss ≤ 0.5 %": ([4, 5], [1.1e6, 1.2e6]),
        "loss > 0.5 %": ([1, 3], [2e6, 1.2e6]),
        "generator-limited": ([6], [1.3e6]),
    }


@pytest.mark.parametrize(
    ("trials", "goals"),
    [
        ([], [goal("PDR", 0.005, None, None)]),
        (SEARCH[:1], [goal("PDR", 0.005, None, 2e6)]),
        (SEARCH, [goal(f"goal {number}", number / 100, 1.2e6, 1.3e6) for number in range(8)]),
        ([trial(1e3 * 1.1**number, 0.0) for number in range(120)], [goal("PDR", 0.005, 8.4e7, 8.5e7)]),
        ([*SEARCH, trial(0.0, 0.0)], [goal("PDR", 0.005, 1.2e6, 1.2e6)]),
    ],
)
def test_any_search_is_drawn(trials: Sequence[Trial], goals: Sequence[GoalResult]) -> None:
    assert overlaps(plots.search_path(trials, "t", goals, "s")) == []


def test_bounds_close_together_get_a_close_up() -> None:
    figure = plots.search_path(SEARCH, "t", [goal("PDR", 0.005, 1.2e6, 1.21e6)])
    assert [axes.get_ylabel() for axes in figure.axes] == ["intended load", "close-up of the bounds"]
    low, high = figure.axes[1].get_ylim()
    assert low < 1.2e6 < 1.21e6 < high < 1.3e6


def test_latency_of_two_builds_is_in_one_picture_and_of_none_there_is_none() -> None:
    half = LatencyResult(share=0.5, load=9e3, trials=3, probes=900, p50=4e-5, p90=9e-5, p99=4e-4, longest=2e-3)
    full = dataclasses.replace(half, share=0.99, load=18e3, p50=5e-4, p90=8e-4, p99=1e-3, instructions=5300.0)
    plain = ScenarioResult(name="", title="IPv4 routing", verdict=Verdict.PASS, reason="")
    sides = tuple(flat_side(side=side, build="", latency=(half, full)) for side in ("baseline", "candidate"))
    assert plots.latency_plot(plain) is None
    for shown in (changed(plain, latency=(half,)), changed(plain, sides=sides)):
        assert plots.latency_plot(shown) is not None


def test_what_receivers_get_at_the_least_is_marked_and_said() -> None:
    found = case(next(iter(CASES)))
    rates = {1: 0.6, 2: 0.4}
    starved = tuple(
        dataclasses.replace(point, least=rates[index] * point.load) if index in rates else point
        for index, point in enumerate(found.loads)
    )
    figure = plots.load_loss(dataclasses.replace(found, loads=starved), "t")
    marked = data(line(figure, STARVED))
    assert marked == ([starved[1].load, starved[2].load], pytest.approx([0.4, 0.6]))
    assert f"{Rate(0.4 * starved[2].load)} of {Rate(starved[2].load)} delivered" in words(figure)
    assert not lines(plots.load_loss(found, "t"), STARVED)
