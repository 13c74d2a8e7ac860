"""Where packets were lost, as a run tells it: console, tables, picture, result.json."""

import msgspec
from console_lines import verdict_lines
from flat_values import changed, flat_side
from html_fragments import fragments
from made_results import result, scenario

from pdrgate.history.results import encoded, read_result, write_result
from pdrgate.reports import plots
from pdrgate.reports.pages.scenario_pictures import pictures
from pdrgate.results.losses import LossResult, PlaceLoss

RING = PlaceLoss(where="in the receive ring of in0", hint="ethtool -G", packets=12_700)
ROUTE = PlaceLoss(where="without a route", packets=140)
QDISC = PlaceLoss(where="in the qdisc fq_codel of out0", hint="limit", packets=900)
ONE = LossResult.of(1_000_000, 1_000_000 - 12_840, (ROUTE, RING))
OTHER = LossResult.of(1_000_000, 998_000, (QDISC,))
SINGLE = changed(scenario(), losses=ONE)
TWO = changed(
    scenario(),
    losses=OTHER,
    sides=(
        flat_side(side="baseline", build="a", losses=ONE),
        flat_side(side="candidate", build="b", losses=OTHER),
    ),
)


def test_the_console_has_a_sentence_for_each_build():
    sentence = "12 840 packets lost: 12 700 in the receive ring of in0 (ethtool -G), 140 without a route"
    assert f"  {sentence}" in verdict_lines(result(SINGLE))
    told = verdict_lines(result(TWO))
    assert f"  baseline: {sentence}" in told
    assert "  candidate: 2 000 packets lost: 900 in the qdisc fq_codel of out0 (limit), 1 100 unexplained" in told
    assert any(line.startswith("  candidate: 1 100 lost packets (0.11% of the offered packets) are") for line in told)


def test_the_table_adds_up():
    (table,) = (one for one in fragments(SINGLE) if "handled + what each place lost" in one)
    for word in ("1 000 000 packets offered", "987 160 handled", "in the receive ring of in0", "12 700", "1.270%"):
        assert word in table
    assert "unexplained" not in table
    assert not any("packets offered" in one for one in fragments(scenario()))


def test_the_picture_has_a_bar_for_each_place_of_each_build():
    assert "Where packets were lost" in [one.title for one in pictures(TWO)]
    figure = plots.lost_packets_plot(TWO)
    assert figure is not None
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "in the receive ring of in0\n(ethtool -G)",
        "in the qdisc fq_codel of out0\n(limit)",
        "without a route",
        "unexplained",
    ]
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    assert widths == [[0.0127, 0.0, 0.00014, 0.0], [0.0, 0.0009, 0.0, 0.0011]]


def test_without_losses_there_is_no_picture():
    assert plots.lost_packets_plot(scenario()) is None
    assert plots.lost_packets_plot(changed(scenario(), losses=LossResult.of(10, 10, ()))) is None


def test_a_result_keeps_them(tmp_path):
    run = result(TWO)
    write_result(tmp_path / "result.json", run)
    assert read_result(tmp_path) == run
    older = msgspec.json.decode(encoded(run))
    del older["scenarios"][0]["losses"]
    (tmp_path / "result.json").write_bytes(msgspec.json.encode(older))
    assert read_result(tmp_path).scenarios[0].findings.losses is None
