"""An assessment as HTML tables for Robot's log.

Inline styles only, no script, no background: colours are those of Robot's own log where it defines them (it does so for
its light and its dark mode), else the reader's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pdrgate.gate.build_comparison import Boot
from pdrgate.stability import Assessment, LoadPoint
from pdrgate.units import Rate, Ratio

_RULE = "border:0;border-bottom:1px solid var(--secondary-color, rgba(128,128,128,.4));"
_CELL = f"{_RULE}padding:.2em .7em;vertical-align:top;"
_NUMBER = f"{_CELL}text-align:right;"
_TEXT = f"{_CELL}text-align:left;"
_TABLE = "border-collapse:collapse;table-layout:auto;width:auto;white-space:nowrap;font-variant-numeric:tabular-nums;"
_CAPTION = "text-align:left;font-weight:bold;white-space:normal;padding:.3em .7em;"
_OUTCOMES = {
    True: ("✓ ok", "color:var(--pass-link-color, inherit);"),
    False: ("✗ failed", "color:var(--fail-link-color, inherit);font-weight:bold;"),
    None: ("? undecided", "color:var(--warn-link-color, inherit);font-weight:bold;"),
}


def checks_table(assessment: Assessment) -> str:
    """Each check: ok, failed or undecided, and its sentence."""
    rows = []
    for check in assessment.checks:
        word, style = _OUTCOMES[check.passed]
        cells = (
            f'<th scope="row" style="{_TEXT}font-weight:normal;">{escape(check.name)}</th>',
            _cell(word, f"{_TEXT}{style}"),
            _cell(check.sentence, f"{_TEXT}white-space:normal;"),
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    reason = f": {assessment.reason}" if assessment.reason else ""
    label = f"{assessment.labels[assessment.reading]} in the {assessment.reading} reading"
    caption = f"{assessment.verdict}{reason} ({label})"
    return _table(caption, (("check", False), ("outcome", False), ("why", False)), rows)


def loads_table(assessment: Assessment) -> str:
    """Each load: its repeats, what they lost and delivered, and the TIR of the step that ends there."""
    columns = (
        ("load", True),
        ("runs", True),
        ("PLR", True),
        ("sd", True),
        ("UCL95", True),
        ("ΔUCL95", True),
        ("delivery ratio", True),
        ("throughput", True),
        ("TIR", True),
        ("", False),
    )
    by_load = {
        point.load: _load_row(point, ratio, _remark(assessment, index))
        for index, (point, ratio) in enumerate(zip(assessment.curve.points, assessment.saturation.tir, strict=True))
    }
    by_load |= {load: _limited_row(load, len(columns)) for load in assessment.curve.limited_loads}
    caption = f"Load-loss curve, {_pdr(assessment)}"
    return _table(caption, columns, (by_load[load] for load in sorted(by_load)))


def boots_table(boots: Sequence[Boot]) -> str:
    """Each boot in the order they were measured: its side, kernel and PDR, or why it failed, with the call trace."""
    columns = (("pair", True), ("side", False), ("kernel", False), ("PDR", True), ("", False))
    rows = []
    for boot in boots:
        told = [boot.failure, *(boot.crash.trace if boot.crash else ()), *boot.complaints]
        cells = (
            _cell(str(boot.pair), _NUMBER),
            _cell(boot.side, _TEXT),
            _cell(boot.kernel, _TEXT),
            _cell("" if boot.pdr is None else str(Rate(boot.pdr)), _NUMBER),
            _cell("\n".join(line for line in told if line), f"{_TEXT}white-space:pre-wrap;"),
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return _table("Boots", columns, rows)


def _load_row(point: LoadPoint, tir: float | None, remark: str) -> str:
    runs = str(point.runs) + (f" (−{point.left_out} generator-limited)" if point.left_out else "")
    delta = "" if point.delta_ucl is None else f"{point.delta_ucl:.3f}"
    numbers = (
        str(Rate(point.load)),
        runs,
        _percent(point.plr),
        _percent(point.plr_sd),
        _percent(point.ucl),
        delta,
        f"{100 * point.delivery_ratio:.4f} %",
        str(Rate(point.throughput)),
        "" if tir is None else f"{round(tir, 3) + 0.0:.3f}".replace("-", "−"),
    )
    cells = "".join(_cell(number, _NUMBER) for number in numbers)
    return f"<tr>{cells}{_cell(remark, _TEXT)}</tr>"


def _limited_row(load: float, columns: int) -> str:
    said = f'<td colspan="{columns - 1}" style="{_TEXT}font-style:italic;">every trial was generator-limited</td>'
    return f"<tr>{_cell(str(Rate(load)), _NUMBER)}{said}</tr>"


def _remark(assessment: Assessment, index: int) -> str:
    saturation, points = assessment.saturation, assessment.curve.points
    threshold = assessment.plr_threshold
    remarks = []
    if points[index].plr > threshold and not any(point.plr > threshold for point in points[:index]):
        remarks.append("first past the PDR")
    if index == saturation.potential_index:
        remarks.append("potential saturation")
    if index == saturation.actual_index:
        remarks.append("saturated from here")
    return ", ".join(remarks)


def _pdr(assessment: Assessment) -> str:
    pdr, name = assessment.pdr, f"PDR at PLR {Ratio(assessment.plr_threshold)}"
    if pdr.load is None:
        low, high = pdr.bracket
        where = f"> {Rate(low)}" if low is not None else f"< {Rate(high)}" if high is not None else "unknown"
        return f"{name} {where}"
    ends = [f"{word} {Rate(end)}" for word, end in (("from", pdr.lower), ("to", pdr.upper)) if end is not None]
    return f"{name} {Rate(pdr.load)}, " + (f"95 % interval {' '.join(ends)}" if ends else "no interval")


def _percent(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if 0 < ratio < 1e-6:
        return "< 0.0001 %"
    return "0 %" if ratio == 0 else f"{100 * ratio:.4f} %"


def _cell(text: str, style: str) -> str:
    return f'<td style="{style}">{escape(text)}</td>'


def _table(caption: str, columns: Iterable[tuple[str, bool]], rows: Iterable[str]) -> str:
    """``columns`` are names, and whether numbers stand there; ``rows`` are HTML already."""
    heads = "".join(
        f'<th scope="col" style="{_NUMBER if numeric else _TEXT}">{escape(name)}</th>' for name, numeric in columns
    )
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>'
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div style="overflow-x:auto;"><table style="{_TABLE}">{title}{body}</table></div>'
