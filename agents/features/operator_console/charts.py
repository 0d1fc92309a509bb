"""Charts of the console: stacked bars by day as SVG, with attributes only, and their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.numbers import span
from agents.features.operator_console.numbers import ALL, Numbers, Period
from agents.hidden_text import visible

WIDTH, HEIGHT = 640, 120
MOST_SERIES = 5
"""The groups with their own colour; the others are added up."""
OTHERS = _("others")

Value = Callable[[Numbers], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of the console, of which there is a chart.

    `is_stacked`: the values of groups add up to the total. `of_tools`: the number exists for each
    tool.
    """

    key: str
    title: str | Promise
    value: Value
    text: Callable[[float], str]
    is_stacked: bool = True
    of_tools: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with the same numbers as a table: a row for each day, latest first."""

    key: str
    title: str | Promise
    total: str
    svg: SafeString
    heads: list[str]
    rows: list[tuple[date, list[str]]]


@dataclass(frozen=True, slots=True)
class Series:
    """A group, or the sum of several. `number` selects its colour."""

    name: str
    number: int
    groups: frozenset[str]


def _count(value: float) -> str:
    return number_format(round(value), force_grouping=True)


def _cost(value: float) -> str:
    decimals = 2 if not value or value >= 1_000_000 else 4
    return f"${number_format(round(value / 1_000_000, decimals), decimals, force_grouping=True)}"


def time_text(seconds: float) -> str:
    return span(timedelta(seconds=seconds))


MEASURES = (
    Measure("cost", _("Cost"), lambda found: found.microusd, _cost),
    Measure("tokens", _("Tokens"), lambda found: found.tokens, _count),
    Measure("runs", _("Runs"), lambda found: found.runs, _count),
    Measure("failed", _("Failed runs"), lambda found: found.failed_runs, _count),
    Measure("calls", _("Tool calls"), lambda found: found.tool_calls, _count, of_tools=True),
    Measure(
        "failed-calls",
        _("Failed tool calls"),
        lambda found: found.failed_tool_calls,
        _count,
        of_tools=True,
    ),
    Measure(
        "approval",
        _("Mean wait for a decision"),
        lambda found: found.mean_approval_seconds,
        time_text,
        is_stacked=False,
    ),
    Measure(
        "queue",
        _("Mean wait in the queue"),
        lambda found: found.mean_queue_seconds,
        time_text,
        is_stacked=False,
    ),
    Measure("work", _("Time of workers"), lambda found: found.worker_seconds, time_text),
)


def series_of(period: Period) -> list[Series]:
    """Return the groups with a colour, highest first, and one series for all others."""
    names = [name for name, _ in period.groups if name != ALL or period.by != "tool"]
    found = [
        Series(visible(name) or gettext("(none)"), number, frozenset((name,)))
        for number, name in enumerate(names[:MOST_SERIES])
    ]
    if len(names) > MOST_SERIES:
        found.append(Series(str(OTHERS), MOST_SERIES, frozenset(names[MOST_SERIES:])))
    return found


def charts_of(period: Period) -> list[Chart]:
    """Return the charts of a period."""
    series = series_of(period)
    sums: dict[tuple[date, int], Numbers] = {}
    whole: dict[date, Numbers] = {day: Numbers() for day in period.days}
    number_of = {group: each.number for each in series for group in each.groups}
    for (day, group), numbers in period.cells.items():
        whole[day].add(numbers)
        if group in number_of:
            sums.setdefault((day, number_of[group]), Numbers()).add(numbers)
    return [_chart(measure, period, series, sums, whole) for measure in MEASURES]


def _chart(
    measure: Measure,
    period: Period,
    series: list[Series],
    sums: dict[tuple[date, int], Numbers],
    whole: dict[date, Numbers],
) -> Chart:
    if measure.is_stacked and (period.by != "tool" or measure.of_tools):
        shown = [
            (each.name, each.number, [measure.value(_at(sums, day, each)) for day in period.days])
            for each in series
        ]
    else:
        shown = [(gettext("all"), 0, [measure.value(whole[day]) for day in period.days])]
    total = measure.value(period.total)
    rows = [
        (
            day,
            [
                "–" if values[position] is None else measure.text(values[position] or 0)
                for _, _, values in shown
            ],
        )
        for position, day in enumerate(period.days)
    ]
    return Chart(
        key=measure.key,
        title=measure.title,
        total="–" if total is None else measure.text(total),
        svg=stacked(measure.title, period.days, shown, measure.text),
        heads=[name for name, _, _ in shown],
        rows=rows[::-1],
    )


def _at(sums: dict[tuple[date, int], Numbers], day: date, series: Series) -> Numbers:
    return sums.get((day, series.number)) or Numbers()


def stacked(
    title: str | Promise,
    days: list[date],
    series: list[tuple[str, int, list[float | None]]],
    text: Callable[[float], str],
) -> SafeString:
    """Return a chart as SVG: a column for each day, with a part for each series.

    A series is (name, number of the colour, value of each day). A value of None or 0 has no part.
    """
    heights = [sum(values[at] or 0 for _, _, values in series) for at in range(len(days))]
    top = max(heights, default=0) or 1
    step = WIDTH / max(len(days), 1)
    bars = []
    for at, day in enumerate(days):
        below = 0.0
        for name, colour, values in series:
            value = values[at]
            if not value:
                continue
            height = HEIGHT * value / top
            below += height
            bars.append(
                (
                    colour,
                    f"{at * step + 0.5:.1f}",
                    f"{HEIGHT - below:.1f}",
                    f"{max(step - 1, 1):.1f}",
                    f"{height:.1f}",
                    f"{day:%Y-%m-%d}, {name}: {text(value)}",
                )
            )
    return format_html(
        '<svg class="console-chart" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg>',
        WIDTH,
        HEIGHT,
        gettext("%(title)s by day. The numbers are in the table below.") % {"title": title},
        format_html_join(
            "",
            '<rect class="series-{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
            bars,
        ),
    )
