#!/usr/bin/env python3
"""Draw a chart of a CSV file: bar, line, histogram or scatter.

FILE.svg needs no package. FILE.png needs matplotlib in the toolbox.

Examples:
  chart_csv.py sales.csv --kind bar --x region --y sum:amount --output /sandbox/outputs/sales.svg
  chart_csv.py sales.csv --kind line --x month:ordered_on --y mean:amount --output line.svg
  chart_csv.py sales.csv --kind histogram --x amount --output histogram.svg
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from pathlib import Path

import csv_source
import reading
from aggregate_csv import aggregate
from expressions import MEASURES, parse_condition
from outcome import MISSING_PACKAGE, NOTHING, WRONG_CALL, Stop, deliver, run
from svg_chart import COLORS, MAX_LABELS, Chart, draw, number

MAX_POINTS = 20_000
MAX_NAMES = 200


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    csv_source.add_arguments(parser)
    reading.add_arguments(parser)
    parser.add_argument("--kind", choices=["bar", "line", "histogram", "scatter"], required=True)
    parser.add_argument("--x", required=True, help="a column; month:COLUMN and so on for dates")
    parser.add_argument("--y", action="append", default=[],
                        help="sum:COLUMN, mean:COLUMN, count, …; scatter: a column")  # fmt: skip
    parser.add_argument("--where", action="append", default=[], help="as in aggregate_csv.py")
    parser.add_argument("--sort", help="bars by value: --sort=-sum:amount")
    parser.add_argument("--top", type=int, help="show only this number of bars")
    parser.add_argument("--bins", type=int, default=20, help="of a histogram; default: 20")
    parser.add_argument("--title", help="a title that states the finding")
    given = parser.parse_args()
    if not given.output:
        raise Stop("Give --output, such as /sandbox/outputs/chart.svg.", WRONG_CALL)
    suffix = Path(given.output).suffix.lower()
    if suffix not in (".svg", ".png"):
        raise Stop("--output must end in .svg or .png.", WRONG_CALL)
    if suffix == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise Stop(
            "A PNG needs matplotlib, which is not in this agent's toolbox. Write a .svg instead.",
            MISSING_PACKAGE,
        )
    source = csv_source.open_source(given)
    chart, notes = _chart(source, given)
    if suffix == ".svg":
        deliver(draw(chart), given.output, source.path)
        print("drawn without a package", file=sys.stderr)
    else:
        version = _draw_with_matplotlib(chart, given.output)
        print(f"wrote {given.output}\ndrawn with matplotlib {version}", file=sys.stderr)
    for note in source.all_notes() + notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _chart(source: csv_source.Source, given: argparse.Namespace) -> tuple[Chart, list[str]]:
    if given.kind == "scatter":
        return _scatter(source, given)
    if given.kind == "histogram":
        return _histogram(source, given)
    for each in given.y:
        if each.partition(":")[0] not in MEASURES:
            raise Stop(f"--y {each}: write sum:{each}, mean:{each} or count.", WRONG_CALL)
    given.by, given.measure = [given.x], given.y or ["count"]
    header, rows, notes = aggregate(source, given)
    if not rows:
        raise Stop("No rows are left to draw.", NOTHING)
    if len(rows) > MAX_NAMES:
        raise Stop(
            f"{given.x} has {len(rows):,} values, too many to draw: use --top, or month:{given.x} "
            "for dates.",
            WRONG_CALL,
        )
    series = [(label, [row[at] for row in rows]) for at, label in enumerate(header[1:], 1)]
    names = [str(row[0]) for row in rows]
    y_label = header[1] if len(series) == 1 else "value"
    title = given.title or f"{', '.join(header[1:])} by {given.x}"
    return Chart(given.kind, title, given.x, y_label, names, series, []), notes


def _numbers(
    source: csv_source.Source, given: argparse.Namespace, columns: list[int]
) -> tuple[list[list[float]], list[str]]:
    cells = reading.cell_reader(source, given)
    conditions = [parse_condition(each, source) for each in given.where]
    found: list[list[float]] = []
    left_out = 0
    for row in source:
        if all(condition.holds(row, cells) for condition in conditions):
            values = [cells.read(row[column])[1] for column in columns]
            if all(isinstance(value, float) for value in values):
                found.append(values)  # type: ignore[arg-type]
            else:
                left_out += 1
    notes = [f"{left_out:,} rows without a number there were left out."] if left_out else []
    if not found:
        raise Stop("No row has numbers there.", NOTHING)
    return found, notes


def _scatter(source: csv_source.Source, given: argparse.Namespace) -> tuple[Chart, list[str]]:
    if len(given.y) != 1:
        raise Stop("A scatter chart needs one --y COLUMN.", WRONG_CALL)
    found, notes = _numbers(source, given, [source.column(given.x), source.column(given.y[0])])
    if len(found) > MAX_POINTS:
        step = math.ceil(len(found) / MAX_POINTS)
        notes.append(f"Every {step}th of {len(found):,} points is drawn.")
        found = found[::step]
    title = given.title or f"{given.y[0]} and {given.x}"
    points = [(x, y) for x, y in found]
    return Chart("scatter", title, given.x, given.y[0], [], [], points), notes


def _histogram(source: csv_source.Source, given: argparse.Namespace) -> tuple[Chart, list[str]]:
    if not 1 <= given.bins <= MAX_NAMES:
        raise Stop(f"--bins must be 1 to {MAX_NAMES}.", WRONG_CALL)
    found, notes = _numbers(source, given, [source.column(given.x)])
    values = [each[0] for each in found]
    low, high = min(values), max(values)
    step = (high - low) / given.bins or 1.0
    counts = [0] * given.bins
    for value in values:
        counts[min(given.bins - 1, int((value - low) / step))] += 1
    names = [
        f"{number(low + step * at)} – {number(low + step * (at + 1))}" for at in range(given.bins)
    ]
    title = given.title or f"How often {given.x} has which value"
    series: list[tuple[str, list[float | None]]] = [("rows", [float(each) for each in counts])]
    return Chart("histogram", title, given.x, "rows", names, series, []), notes


def _draw_with_matplotlib(chart: Chart, output: str) -> str:
    import matplotlib  # noqa: PLC0415  # only some toolboxes have it

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(8.8, 5.2), layout="constrained")
    if chart.kind == "scatter":
        axes.scatter(*zip(*chart.points, strict=True), s=12, alpha=0.6, color=COLORS[0])
    else:
        places = list(range(len(chart.names)))
        for at, (label, series) in enumerate(chart.series):
            values = [math.nan if value is None else value for value in series]
            color = COLORS[at % len(COLORS)]
            if chart.kind == "line":
                axes.plot(places, values, marker="o", markersize=3, label=label, color=color)
            else:
                width = 0.98 if chart.kind == "histogram" else 0.8 / len(chart.series)
                shift = (at - (len(chart.series) - 1) / 2) * width
                axes.bar(
                    [place + shift for place in places], values, width, label=label, color=color
                )
        every = math.ceil(len(places) / MAX_LABELS)
        # A dollar sign would start a formula.
        names = [name.replace("$", r"\$") for name in chart.names]
        axes.set_xticks(places[::every], names[::every], rotation=35, ha="right")
        if len(chart.series) > 1:
            axes.legend()
    axes.set_title(chart.title.replace("$", r"\$"), loc="left")
    axes.set_xlabel(chart.x_label.replace("$", r"\$"))
    axes.set_ylabel(chart.y_label.replace("$", r"\$"))
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150, metadata={"Software": None})
    return matplotlib.__version__


if __name__ == "__main__":
    run(main)
