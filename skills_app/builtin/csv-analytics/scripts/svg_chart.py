"""Draw a chart as SVG, without packages. The same data give the same bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 880, 520
LEFT, RIGHT, TOP, BOTTOM = 84, 856, 64, 428
INK, QUIET, GRID = "#1f2933", "#52606d", "#e4e7eb"
COLORS = ("#2f6f9f", "#d9772b", "#3f8f5f", "#8a4f9e", "#b0413e", "#6b6b6b")
MAX_LABELS = 24


@dataclass(frozen=True)
class Chart:
    """The data of a chart.

    `names` are the places on the x axis. Each series has a label and a value, or None, for every
    name. A scatter chart has `points` (x, y) instead, and no names and series.
    """

    kind: str
    title: str
    x_label: str
    y_label: str
    names: list[str]
    series: list[tuple[str, list[float | None]]]
    points: list[tuple[float, float]]


def draw(chart: Chart) -> str:
    """Return the chart as an SVG document. Every text is escaped."""
    if chart.kind == "scatter":
        low_x, high_x, ticks_x = _axis([x for x, _ in chart.points], zero=False)
        low, high, ticks = _axis([y for _, y in chart.points], zero=False)
    else:
        values = [value for _, series in chart.series for value in series if value is not None]
        low, high, ticks = _axis(values, zero=chart.kind != "line")
    parts = [_frame(chart, ticks, low, high)]
    if chart.kind == "scatter":
        for tick in ticks_x:
            parts.append(
                _text(_place(tick, low_x, high_x, LEFT, RIGHT), BOTTOM + 20, number(tick), "middle")
            )
        for x, y in chart.points:
            parts.append(
                f'<circle cx="{_place(x, low_x, high_x, LEFT, RIGHT):.1f}" '
                f'cy="{_place(y, low, high, BOTTOM, TOP):.1f}" r="3.5" fill="{COLORS[0]}" '
                f'fill-opacity="0.6"><title>{number(x)}, {number(y)}</title></circle>'
            )
    else:
        parts.append(_names(chart))
        parts.append((_lines if chart.kind == "line" else _bars)(chart, low, high))
        parts.append(_legend(chart))
    return "\n".join([*filter(None, parts), "</svg>"]) + "\n"


def number(value: float) -> str:
    """Return a number as text with thousands separators and the minus sign U+2212.

    A number from 1,000 on is rounded to a whole number, and a smaller one to 6 significant digits.
    """
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.6g}"
    return text.replace("-", "\u2212")


def _axis(values: list[float], *, zero: bool) -> tuple[float, float, list[float]]:
    """Return (low, high, ticks) of an axis for `values`, all round numbers.

    With `zero`, the axis includes 0.
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    if low == high:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(at * step, 12) for at in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks


def _place(value: float, low: float, high: float, start: float, end: float) -> float:
    return start + (value - low) / (high - low) * (end - start)


def _text(x: float, y: float, words: str, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def _frame(chart: Chart, ticks: list[float], low: float, high: float) -> str:
    description = f"{chart.kind} chart of {chart.y_label} by {chart.x_label}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="13" '
        f'fill="{INK}">',
        f"<title>{escape(chart.title)}</title>",
        f"<desc>{escape(description)}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 34, chart.title, extra=' font-size="19" font-weight="600"'),
    ]
    for tick in ticks:
        y = _place(tick, low, high, BOTTOM, TOP)
        color = QUIET if tick == 0 else GRID
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}" stroke="{color}"/>')
        lines.append(_text(LEFT - 8, y + 4, number(tick), "end"))
    lines.append(_text((LEFT + RIGHT) / 2, HEIGHT - 12, chart.x_label, "middle"))
    middle = (TOP + BOTTOM) / 2
    turned = f' transform="rotate(-90 16 {middle:.1f})"'
    lines.append(_text(16, middle, chart.y_label, "middle", turned))
    return "\n".join(lines)


def _names(chart: Chart) -> str:
    count = len(chart.names)
    band = (RIGHT - LEFT) / max(1, count)
    every = math.ceil(count / MAX_LABELS)
    turned = any(len(name) * 7 > band * every - 4 for name in chart.names)
    labels = []
    for at in range(0, count, every):
        x = LEFT + band * (at + 0.5)
        name = chart.names[at] if len(chart.names[at]) <= 16 else chart.names[at][:15] + "…"
        if turned:
            extra = f' transform="rotate(-35 {x:.1f} {BOTTOM + 16})"'
            labels.append(_text(x, BOTTOM + 16, name, "end", extra))
        else:
            labels.append(_text(x, BOTTOM + 20, name, "middle"))
    return "\n".join(labels)


def _bars(chart: Chart, low: float, high: float) -> str:
    band = (RIGHT - LEFT) / max(1, len(chart.names))
    # The bars of a histogram touch, as its classes do.
    filled = 0.98 if chart.kind == "histogram" else 0.76
    width = band * filled / max(1, len(chart.series))
    zero = _place(0.0, low, high, BOTTOM, TOP)
    shapes = []
    for number_of, (label, series) in enumerate(chart.series):
        for at, value in enumerate(series):
            if value is None:
                continue
            x = LEFT + band * (at + (1 - filled) / 2) + width * number_of
            y = _place(value, low, high, BOTTOM, TOP)
            shapes.append(
                f'<rect x="{x:.1f}" y="{min(y, zero):.1f}" width="{width:.1f}" '
                f'height="{abs(y - zero):.1f}" fill="{COLORS[number_of % len(COLORS)]}">'
                f"<title>{escape(f'{chart.names[at]}, {label}: {number(value)}')}</title></rect>"
            )
    return "\n".join(shapes)


def _lines(chart: Chart, low: float, high: float) -> str:
    band = (RIGHT - LEFT) / max(1, len(chart.names))
    shapes = []
    for number_of, (label, series) in enumerate(chart.series):
        color = COLORS[number_of % len(COLORS)]
        path, pen_down = [], False
        for at, value in enumerate(series):
            if value is None:
                # Interrupt the line where a value is missing.
                pen_down = False
                continue
            x, y = LEFT + band * (at + 0.5), _place(value, low, high, BOTTOM, TOP)
            path.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}")
            pen_down = True
            shapes.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}">'
                f"<title>{escape(f'{chart.names[at]}, {label}: {number(value)}')}</title></circle>"
            )
        shapes.append(f'<path d="{" ".join(path)}" fill="none" stroke="{color}" stroke-width="2"/>')
    return "\n".join(shapes)


def _legend(chart: Chart) -> str:
    if len(chart.series) < 2:
        return ""
    parts, x = [], float(LEFT)
    for at, (label, _) in enumerate(chart.series):
        parts.append(
            f'<rect x="{x:.1f}" y="44" width="11" height="11" fill="{COLORS[at % len(COLORS)]}"/>'
        )
        parts.append(_text(x + 16, 54, label))
        x += 40 + 7.5 * len(label)
    return "\n".join(parts)
