"""Draws chart.svg from summary.json: rain and temperature by month, and how the years differ."""

import json
from xml.sax.saxutils import escape

OUTPUT = "/sandbox/outputs/chart.svg"
WIDTH, HEIGHT = 960, 720
LEFT, RIGHT = 76, 936
RAIN_TOP, RAIN_BOTTOM = 132, 408
HEAT_TOP, HEAT_BOTTOM = 496, 660
INK, QUIET, GRID = "#1f2933", "#5b6770", "#e1e6ea"
WET, DRY, DOT, WARM = "#2f6f9f", "#9ec9e2", "#12324a", "#d9772b"
STYLE = f"""
text {{ font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
  font-size: 14px; fill: {INK}; }}
.title {{ font-size: 23px; font-weight: 650; }}
.quiet {{ fill: {QUIET}; font-size: 13px; }}
.value {{ paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }}
.panel {{ font-size: 15px; font-weight: 650; }}
.middle {{ text-anchor: middle; }}
.end {{ text-anchor: end; }}
.grid {{ stroke: {GRID}; stroke-width: 1; }}
.axis {{ stroke: {QUIET}; stroke-width: 1; }}
"""


def headline(summary):
    return "Rain and temperature in Seattle, month by month"


def number(value, digits=0):
    return f"{value:.{digits}f}".replace("-", "\u2212")


def text(x, y, words, *classes):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{" ".join(classes)}">{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def mark(shape, kind, words):
    """Return a shape with its value as a tooltip and for screen readers."""
    name, attributes = shape
    return f'<{name} class="{kind}" {attributes}><title>{escape(words)}</title></{name}>'


def rectangle(x, y, width, height, fill, radius):
    return "rect", (
        f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius}" fill="{fill}"'
    )


def circle(x, y):
    return "circle", (
        f'cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{DOT}" stroke="#ffffff" stroke-width="1.2"'
    )


def scale(low, high, bottom, top):
    return lambda value: bottom + (value - low) / (high - low) * (top - bottom)


def ticks(y, values, unit):
    for value in values:
        yield line(LEFT, y(value), RIGHT, y(value), "grid")
        yield text(LEFT - 10, y(value) + 5, number(value) + unit, "quiet", "end")


def rain_panel(summary, centre, step):
    most = max(max(month["rain_mm_by_year"]) for month in summary["months"])
    top = 50 * (int(most // 50) + 1)
    y = scale(0, top, RAIN_BOTTOM, RAIN_TOP)
    yield text(LEFT, RAIN_TOP - 18, "Rain in a month, mm", "panel")
    yield from ticks(y, range(0, top + 1, 50), "")
    wet = summary["wet_half"]["months"]
    width, years = step * 0.66, summary["years"]
    for place, month in enumerate(summary["months"]):
        name, rain = month["name"], month["rain_mm"]
        shape = rectangle(
            centre(place) - width / 2, y(rain), width, RAIN_BOTTOM - y(rain),
            WET if name in wet else DRY, 2,
        )  # fmt: skip
        yield mark(shape, "rain", f"{name}: {rain:.1f} mm of rain on average")
        for turn, year in enumerate(years):
            amount = month["rain_mm_by_year"][turn]
            x = centre(place) + (turn - (len(years) - 1) / 2) * width / len(years)
            yield mark(circle(x, y(amount)), "year", f"{name} {year}: {amount:.1f} mm")
        yield text(centre(place), RAIN_BOTTOM + 22, name[:3], "middle")
        yield text(centre(place), RAIN_BOTTOM + 41, number(rain, 1), "quiet", "middle")
    yield line(LEFT, RAIN_BOTTOM, RIGHT, RAIN_BOTTOM, "axis")
    yield text(LEFT - 10, RAIN_BOTTOM + 41, "mean", "quiet", "end")


def heat_panel(summary, centre, step):
    months = summary["months"]
    low = 10 * int(min(month["low"] for month in months) // 10)
    high = 10 * (int(max(month["high"] for month in months) // 10) + 1)
    y = scale(low, high, HEAT_BOTTOM, HEAT_TOP)
    yield text(LEFT, HEAT_TOP - 18, "Mean daily low to mean daily high, °C", "panel")
    yield from ticks(y, range(low, high + 1, 10), "°")
    width = step * 0.3
    for place, month in enumerate(months):
        x, warm, cold = centre(place), month["high"], month["low"]
        shape = rectangle(x - width / 2, y(warm), width, y(cold) - y(warm), WARM, width / 2)
        yield mark(shape, "heat", f"{month['name']}: {cold:.1f} to {warm:.1f} °C")
        yield text(x, y(warm) - 6, number(warm), "quiet", "middle", "value")
        yield text(x, y(cold) + 15, number(cold), "quiet", "middle", "value")
        yield text(x, HEAT_BOTTOM + 24, month["name"][:3], "middle")


def legend(summary):
    half, years = summary["wet_half"]["months"], summary["years"]
    x, y = RIGHT - 470, RAIN_TOP - 23
    for colour, words, width in (
        (WET, f"wet half, {half[0][:3]} to {half[-1][:3]}", 172),
        (DRY, "dry half", 102),
    ):
        yield f'<rect x="{x}" y="{y - 6}" width="12" height="12" rx="2" fill="{colour}"/>'
        yield text(x + 18, y + 5, words, "quiet")
        x += width
    yield f'<circle cx="{x + 6}" cy="{y}" r="4" fill="{DOT}"/>'
    yield text(x + 16, y + 5, f"each year, {years[0]} to {years[-1]}", "quiet")


def draw(summary):
    step = (RIGHT - LEFT) / 12

    def centre(place):
        return LEFT + (place + 0.5) * step

    title = headline(summary)
    months = sorted(summary["months"], key=lambda month: month["rain_mm"])
    description = (
        f"Bars of mean monthly rain with a dot for each year, and the range from the mean daily "
        f"low to the mean daily high. Driest is {months[0]['name']} with "
        f"{months[0]['rain_mm']:.0f} mm, wettest {months[-1]['name']} with "
        f"{months[-1]['rain_mm']:.0f} mm."
    )
    years = f"{summary['years'][0]} to {summary['years'][-1]}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title description">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(28, 46, title, "title"),
        text(28, 71, f"{summary['days']:,} days of Seattle's weather, {years}", "quiet"),
        *legend(summary),
        *rain_panel(summary, centre, step),
        *heat_panel(summary, centre, step),
        text(28, HEIGHT - 12, "Data: NOAA daily summaries, public domain", "quiet"),
        "</svg>",
    ])  # fmt: skip


def main():
    with open("summary.json", encoding="utf-8") as file:
        drawing = draw(json.load(file))
    with open(OUTPUT, "w", encoding="utf-8") as file:
        file.write(drawing + "\n")
    print(f"wrote {OUTPUT}: {len(drawing.encode())} bytes")


if __name__ == "__main__":
    main()
