import itertools
import math
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from pdrgate.report import plots
from pdrgate.report.plots import PLR_FLOOR, GoalLine, bounds_so_far
from pdrgate.stability import Assessment, Reading, Verdict, assess, read_experiments
from pdrgate.traffic.simulated import (
    Behaviour,
    Ceiling,
    IdealCurve,
    LoadLoss,
    RealisticCurve,
    SimulatedSut,
    TrashingCurve,
)
from pdrgate.trial import Trial

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
    reading: Reading = Reading.STRICT,
) -> Assessment:
    sut = SimulatedSut(curve, behaviour, seed=3, ceiling=ceiling)
    return assess(sut.repeat(loads, 1.0, runs), reading=reading, source="simulated")


ASSESSMENTS: dict[str, Callable[[], Assessment]] = {
    "4 loads": lambda: simulated((7e5, 1e6, 1.1e6, 1.2e6), 5),
    "16 loads in two modes": lambda: simulated(
        [1e5 * step for step in range(1, 17)], 20, behaviour=Behaviour(modes=(1.0, 0.93))
    ),
    "31 loads and drift": lambda: simulated([1e5 * step for step in range(1, 32)], 8, behaviour=Behaviour(drift=5e-4)),
    "1 run per load": lambda: simulated(AROUND, 1),
    "50 runs": lambda: simulated(AROUND, 50),
    "no loss at all": lambda: simulated((7e4, 8e4, 9e4, 1e5), 10, IdealCurve(1e9)),
    "nothing forwarded": lambda: simulated((5.0, 9.0, 20.0), 4, TrashingCurve(IdealCurve(1.0), 1.0, 1.0)),
    "no potential saturation point": lambda: simulated((7e5, 9e5, 1.05e6), 5),
    "past the PDR from the first load": lambda: simulated((1.2e6, 1.3e6, 1.4e6), 5),
    "one load": lambda: simulated((1e6,), 3),
    "one load, one run": lambda: simulated((1e6,), 1),
    "generator-limited above": lambda: simulated(AROUND, 5, ceiling=Ceiling(0.95e6)),
    "all generator-limited": lambda: simulated((7e5, 9e5), 5, ceiling=Ceiling(0.5e6)),
    "loads far apart": lambda: simulated((10.0, 1e4, 1e6, 1.2e6, 1e9), 4),
    "loads close together": lambda: simulated([9.9e5 + 500 * step for step in range(30)], 4),
}


@pytest.fixture(params=ASSESSMENTS)
def found(request: pytest.FixtureRequest) -> Assessment:
    return ASSESSMENTS[request.param]()


def size_of(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png[12:16] == b"IHDR"
    width, height = struct.unpack(">II", png[16:24])
    assert png[-8:-4] == b"IEND"
    return width, height


def line(figure: Figure, label: str) -> Line2D:
    (found,) = (each for axes in figure.axes for each in axes.lines if str(each.get_label()).startswith(label))
    return found


def data(found: Line2D) -> tuple[list[float], list[float]]:
    return list(found.get_xdata()), list(found.get_ydata())  # type: ignore[arg-type]


def words(figure: Figure) -> str:
    texts = [text.get_text() for text in figure.texts]
    texts += [text.get_text() for axes in figure.axes for text in axes.texts]
    texts += [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return "\n".join(texts)


def overlaps(figure: Figure) -> list[str]:
    """Pairs of header texts, labels, legends and axes with their tick labels that lie on each other."""
    figure.draw_without_rendering()
    boxes: list[tuple[str, Bbox]] = [(text.get_text(), text.get_window_extent()) for text in figure.texts]
    boxes += [("the legend", legend.get_window_extent()) for legend in figure.legends]
    for index, axes in enumerate(figure.axes):
        twins = [other for other in figure.axes[:index] if other.get_position().bounds == axes.get_position().bounds]
        boxes += [] if twins else [(f"axes {index}", inside(axes))]
    canvas = Bbox.from_bounds(0, 0, *figure.canvas.get_width_height())
    found = [
        f"{name!r} leaves the picture"
        for name, box in boxes
        if box.x0 < 0 or box.y0 < 0 or box.x1 > canvas.x1 or box.y1 > canvas.y1
    ]
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        # half a line's height is the empty part of a text's box
        if (
            min(first.x1, second.x1) - max(first.x0, second.x0) > 1
            and min(first.y1, second.y1) - max(first.y0, second.y0) > 6
        ):
            found.append(f"{one!r} and {other!r}")
    return found


def inside(axes: Axes) -> Bbox:
    """The axes with their labels; what is clipped to them does not count."""
    return Bbox.union(
        [axes.get_window_extent(), *filter(None, [axis.get_tightbbox() for axis in axes._axis_map.values()])]
    )


# --- every picture over every odd input ---


def test_every_picture_is_a_png_of_the_same_size(found: Assessment) -> None:
    for png in (
        plots.load_loss(found, title="A title", subtitle="below it"),
        plots.rates(found, title="A title"),
        plots.repeats(found, title="A title"),
    ):
        assert size_of(png) == (1100, 704)


def test_nothing_lies_on_anything_else(found: Assessment) -> None:
    title, subtitle = "A title that goes on and on " * 6, "IPv6 routing, unpinned " * 9
    assert overlaps(plots._load_loss_figure(found, title, subtitle)) == []
    assert overlaps(plots._rates_figure(found, title, subtitle)) == []
    assert overlaps(plots._repeats_figure(found, title)) == []


@pytest.mark.parametrize("title", ["", "a $ and $x^{$", "\n\ttabs\n", "路由 🚀 \x00", r"\alpha_{", "_hidden"])
def test_any_title_is_drawn_as_it_is(title: str) -> None:
    found = ASSESSMENTS["4 loads"]()
    size_of(plots.load_loss(found, title=title, subtitle=title))
    size_of(plots.search_path([], title=title, subtitle=title, goals=[GoalLine(title, 0.005, 1.0, 2.0)]))


# --- the load-loss curve ---


def test_the_curve_has_the_mean_of_every_load_and_crosses_the_threshold_at_the_pdr() -> None:
    found = ASSESSMENTS["50 runs"]()
    figure = plots._load_loss_figure(found, "t", "")
    loads, plrs = data(line(figure, "mean PLR, 95 %"))
    assert dict(zip(loads, plrs, strict=True)) == {
        point.load: point.plr for point in found.curve.points if point.plr > PLR_FLOOR
    }
    crossing = next(
        x0 + (x1 - x0) * (0.005 - y0) / (y1 - y0)
        for (x0, y0), (x1, y1) in itertools.pairwise(list(zip(*data(line_between(figure)), strict=True)))
        if y0 <= 0.005 < y1
    )
    assert found.pdr.load is not None
    assert crossing == pytest.approx(found.pdr.load, rel=1e-4)
    assert data(line(figure, "PDR"))[0] == [found.pdr.load] * 2


def line_between(figure: Figure) -> Line2D:
    return max(
        (
            each
            for each in figure.axes[1].lines
            if each.get_linestyle() == "-" and each.get_marker() in ("None", None, "")
        ),
        key=lambda each: len(data(each)[0]),
    )


def test_every_repeat_is_a_dot_and_no_loss_lies_on_the_floor_and_says_so() -> None:
    found = ASSESSMENTS["no loss at all"]()
    figure = plots._load_loss_figure(found, "t", "")
    assert data(line(figure, "PLR of each repeat"))[1] == [PLR_FLOOR] * 40
    loads, plrs = data(line(figure, "mean PLR 0 or below"))
    assert loads == list(found.curve.loads)
    assert plrs == [PLR_FLOOR] * 4
    assert "mean PLR 0 or below 10⁻⁶, drawn there" in words(figure)
    assert "≤ 10⁻⁶" in [label.get_text() for label in figure.axes[1].get_yticklabels()]


def test_delta_ucl_is_on_its_own_scale_with_gaps_where_there_is_none() -> None:
    found = ASSESSMENTS["4 loads"]()
    figure = plots._load_loss_figure(found, "t", "")
    red = line(figure, "normalised ΔUCL95")
    for value, point in zip(data(red)[1], found.curve.points, strict=True):
        assert value == point.delta_ucl or (point.delta_ucl is None and math.isnan(value))
    assert red.axes is figure.axes[0]
    assert "ΔUCL95" in figure.axes[0].get_ylabel()


def test_one_run_per_load_has_neither_interval_nor_delta_ucl() -> None:
    figure = plots._load_loss_figure(ASSESSMENTS["1 run per load"](), "t", "")
    assert "one run per load: no interval" in words(figure)
    assert "ΔUCL95" not in words(figure)
    assert not figure.axes[0].yaxis.get_visible()


def test_the_verdict_the_label_and_the_failed_checks_sentence_are_written() -> None:
    good = plots._load_loss_figure(ASSESSMENTS["50 runs"](), "t", "sub")
    assert {"GOOD (strict reading)", "STABLE", "t", "sub"} <= set(words(good).split("\n"))
    limited = ASSESSMENTS["generator-limited above"]()
    assert limited.verdict is Verdict.GENERATOR_LIMITED
    text = words(plots._load_loss_figure(limited, "t", ""))
    assert "GENERATOR LIMITED" in text
    assert f"GENERATOR_LIMITED: {limited.reason}" in text.replace("\n", " ")
    assert "BAD (tolerant reading)" in words(
        plots._load_loss_figure(simulated((7e5, 9e5), 3, reading=Reading.TOLERANT), "t", "")
    )


def test_the_saturation_region_begins_at_the_potential_saturation_point() -> None:
    found = ASSESSMENTS["50 runs"]()
    assert found.saturation.potential_index is not None
    figure = plots._load_loss_figure(found, "t", "")
    (region,) = (patch for patch in figure.axes[0].patches if patch.get_label() == "saturated")
    potential = found.curve.loads[found.saturation.potential_index]
    assert region.get_x() == potential  # type: ignore[attr-defined]
    assert "saturated from 1.1 Mpps on" in words(figure)
    assert "no potential saturation point" in words(
        plots._load_loss_figure(ASSESSMENTS["no potential saturation point"](), "t", "")
    )


def test_a_missing_pdr_is_said_not_drawn() -> None:
    for case, text in {
        "no loss at all": "PDR at PLR 0.5 %: > 100 kpps, outside the measured loads",
        "past the PDR from the first load": "PDR at PLR 0.5 %: < 1.2 Mpps, outside the measured loads",
        "all generator-limited": "PDR at PLR 0.5 %: unknown",
    }.items():
        figure = plots._load_loss_figure(ASSESSMENTS[case](), "t", "")
        assert text in words(figure)
        assert not any(each.get_label() == "PDR" for axes in figure.axes for each in axes.lines)


def test_generator_limited_loads_are_crosses() -> None:
    found = ASSESSMENTS["generator-limited above"]()
    for figure in (plots._load_loss_figure(found, "t", ""), plots._rates_figure(found, "t", "")):
        assert data(line(figure, "load where every trial"))[0] == list(found.curve.limited_loads)
    assert "there is no curve" in words(plots._rates_figure(ASSESSMENTS["all generator-limited"](), "t", ""))


# --- the rates ---


def test_rates_show_throughput_delivery_ratio_the_ideal_and_every_tir() -> None:
    found = ASSESSMENTS["50 runs"]()
    figure = plots._rates_figure(found, "t", "")
    assert data(line(figure, "forwarding rate T")) == (
        list(found.curve.loads),
        [point.throughput for point in found.curve.points],
    )
    assert data(line(figure, "delivery ratio"))[1] == [100 * point.delivery_ratio for point in found.curve.points]
    ideal = data(line(figure, "ideal"))
    assert ideal[0] == ideal[1]
    written = [text.get_text() for text in figure.axes[1].texts]
    assert written == [f"{ratio:.2f}".replace("-0.00", "0.00").replace("-", "−") for ratio in found.saturation.tir[1:]]
    assert "DR 99.5 %" in words(figure)


def test_tir_is_left_out_where_a_step_is_too_narrow_to_write_in() -> None:
    figure = plots._rates_figure(ASSESSMENTS["loads far apart"](), "t", "")
    assert len(figure.axes[1].texts) == 1


@pytest.mark.parametrize(("load", "unit"), [(20.0, "pps"), (9e4, "kpps"), (2e6, "Mpps")])
def test_axes_say_the_unit_that_suits_the_loads(load: float, unit: str) -> None:
    found = simulated((load / 2, load * 0.8, load), 3)
    figure = plots._rates_figure(found, "t", "")
    assert figure.axes[0].get_ylabel() == f"forwarding rate ({unit})"
    assert figure.axes[2].get_xlabel() == f"offered load ({unit})"


# --- the repeats ---


def test_repeats_has_a_panel_per_load_and_one_for_the_pdr_in_measured_order() -> None:
    found = ASSESSMENTS["16 loads in two modes"]()
    figure = plots._repeats_figure(found, "t")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == ["PDR", "100 kpps", "200 kpps"]
    assert len(titles) == 17
    axes = figure.axes[titles.index("1.1 Mpps")]
    (dots,) = (each for each in axes.lines if each.get_label() == "a repeat")
    point = next(point for point in found.curve.points if point.load == pytest.approx(1.1e6))
    middle = sorted(point.throughputs)[9] / 2 + sorted(point.throughputs)[10] / 2
    assert data(dots)[0] == list(range(1, 21))
    assert data(dots)[1] == pytest.approx([100 * (value / middle - 1) for value in point.throughputs])
    assert sum(each.get_label() == "two modes" for each in axes.lines) == 2
    assert "two modes" in words(figure)


def test_of_very_many_loads_those_nearest_to_the_pdr_are_shown() -> None:
    figure = plots._repeats_figure(ASSESSMENTS["31 loads and drift"](), "t")
    assert len(figure.axes) == 20
    assert "12 loads far from the PDR are left out" in words(figure)
    assert "1 Mpps" in [axes.get_title(loc="left") for axes in figure.axes]


def test_the_quarters_of_a_drifting_load_rise() -> None:
    figure = plots._repeats_figure(ASSESSMENTS["31 loads and drift"](), "t")
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left") == "1.5 Mpps")
    levels = [data(each)[1][0] for each in axes.lines if each.get_label() == "mean of a quarter"]
    assert len(levels) == 4
    assert levels == sorted(levels)


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


def test_bounds_so_far_follow_the_longest_trials_and_most_of_their_time() -> None:
    assert bounds_so_far(SEARCH, 0.005) == [
        (None, 2e6),
        (1e6, 2e6),
        (1e6, 1.2e6),
        (1.1e6, 1.2e6),
        (1.2e6, 2e6),  # the longer trial overrules the shorter
        (1.2e6, 1.3e6),  # the generator could not send it: too high
    ]
    assert bounds_so_far([trial(1e6, 0.1), trial(1e6, 0.0), trial(1e6, 0.1)], 0.005) == [
        (None, 1e6),
        (1e6, None),
        (None, 1e6),
    ]
    assert bounds_so_far([], 0.0) == []


def test_the_search_shows_bounds_only_where_they_end_at_those_that_the_search_gave() -> None:
    goals = [GoalLine("PDR", 0.005, 1.2e6, 1.3e6), GoalLine("NDR", 0.0, 1.05e6, 1.1e6)]
    figure = plots._search_path_figure(SEARCH, "t", goals, "")
    assert data(line(figure, "PDR: lower"))[1][1:] == [1e6, 1e6, 1.1e6, 1.2e6, 1.2e6]
    assert data(line(figure, "PDR: upper"))[1] == [2e6, 2e6, 1.2e6, 1.2e6, 2e6, 1.3e6]
    assert data(line(figure, "NDR: upper"))[1][-1] == 1.1e6
    assert "NDR: lower" not in words(figure)  # 1 Mpps by the trials, 1.05 Mpps by the search
    drawn = words(figure)
    assert "PDR: loss ≤ 0.5 %\n1.2 to 1.3 Mpps" in drawn
    assert "NDR: no loss\n1.05 to 1.1 Mpps" in drawn


def offsets(drawn: PathCollection) -> list[tuple[float, ...]]:
    return [tuple(offset) for offset in np.asarray(drawn.get_offsets())]


def test_trials_are_marked_by_their_loss_and_sized_by_their_duration() -> None:
    goals = [GoalLine("PDR", 0.005, 1.2e6, 1.3e6), GoalLine("NDR", 0.0, None, None)]
    figure = plots._search_path_figure(SEARCH, "t", goals, "")
    drawn = [each for each in figure.axes[0].collections if isinstance(each, PathCollection) and len(offsets(each))]
    marked = {str(each.get_label()): offsets(each) for each in drawn}
    assert marked == {
        "no loss": [(2, 1e6)],
        "loss ≤ 0.5 %": [(4, 1.1e6), (5, 1.2e6)],
        "loss > 0.5 %": [(1, 2e6), (3, 1.2e6)],
        "generator-limited: too high": [(6, 1.3e6)],
    }
    sizes = [each.get_sizes()[0] for each in drawn]
    assert sizes[0] < sizes[1]
    assert "trial of 500 ms" in words(figure)


@pytest.mark.parametrize(
    ("trials", "goals"),
    [
        ([], []),
        ([], [GoalLine("PDR", 0.005, None, None)]),
        (SEARCH[:1], []),
        (SEARCH[:1], [GoalLine("PDR", 0.005, None, 2e6)]),
        (SEARCH, [GoalLine("PDR", 0.005, 1.2e6, 1.3e6)]),
        (SEARCH, [GoalLine(f"goal {number} " * 9, number / 100, 1.2e6, 1.3e6) for number in range(8)]),
        ([trial(1e3 * 1.1**number, 0.0) for number in range(120)], [GoalLine("PDR", 0.005, 8.4e7, 8.5e7)]),
        ([*SEARCH, trial(0.0, 0.0)], [GoalLine("PDR", 0.005, 1.2e6, 1.2e6)]),
    ],
)
def test_any_search_is_drawn(trials: Sequence[Trial], goals: Sequence[GoalLine]) -> None:
    assert size_of(plots.search_path(trials, title="t", goals=goals, subtitle="s")) == (1100, 704)
    assert overlaps(plots._search_path_figure(trials, "t", goals, "s")) == []


def test_bounds_close_together_get_a_close_up() -> None:
    figure = plots._search_path_figure(SEARCH, "t", [GoalLine("PDR", 0.005, 1.2e6, 1.21e6)], "")
    assert [axes.get_ylabel() for axes in figure.axes] == ["intended load (Mpps)", "close-up (Mpps)"]
    low, high = figure.axes[1].get_ylim()
    assert low < 1.2e6 < 1.21e6 < high < 1.3e6


# --- the module ---


def test_importing_it_does_not_import_matplotlib_and_drawing_does_not_import_pyplot() -> None:
    code = (
        "import sys, pdrgate.report.plots as plots; assert 'matplotlib' not in sys.modules;"
        "plots.search_path([], title='', goals=[]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    libraries = Path(plots.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(libraries), "HOME": "/tmp"})


@pytest.mark.skipif(not PASTRAMI.is_dir(), reason="PASTRAMI's published experiments are not here")
@pytest.mark.parametrize(("kernel", "label", "verdict"), [("6.8", "GOOD", "STABLE"), ("5.15", "BAD", "UNSTABLE")])
def test_published_experiments(kernel: str, label: str, verdict: str) -> None:
    (experiment,) = read_experiments(PASTRAMI / f"clab_tb1_raw_50_k{kernel}_intel_bare-metal_as-is.txt")
    found = assess(experiment.trials)
    for figure in (plots._load_loss_figure(found, "t", "s"), plots._rates_figure(found, "t", "s")):
        assert overlaps(figure) == []
        assert {f"{label} (strict reading)", verdict} <= set(words(figure).split("\n"))
        assert found.reason in words(figure)
