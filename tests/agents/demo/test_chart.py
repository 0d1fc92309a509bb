"""The marks of the demo's chart are at the positions of the figures from SQL."""

from __future__ import annotations

import calendar
from xml.etree import ElementTree

import pytest

from tests.agents.demo.numbers_in_text import assert_agree, numbers
from tests.agents.demo.played import outputs_of_demo
from tests.agents.demo.weather import Weather

pytestmark = [pytest.mark.bubblewrap, pytest.mark.django_db(transaction=True)]

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def svg(monkeypatch: pytest.MonkeyPatch) -> ElementTree.Element:
    return ElementTree.fromstring(outputs_of_demo(monkeypatch)["chart.svg"])


@pytest.mark.slow
def test_the_chart_shows_every_month_and_year_at_its_height(
    svg: ElementTree.Element,
) -> None:
    weather = Weather()
    months, years = weather.months(), [year[0] for year in weather.years()]
    names = list(calendar.month_name)[1:]
    rain = svg.findall(f".//{SVG}rect[@class='rain']")
    dots = svg.findall(f".//{SVG}circle[@class='year']")
    heat = svg.findall(f".//{SVG}rect[@class='heat']")
    assert (len(rain), len(dots), len(heat)) == (12, 12 * len(years), 12)

    # Measure heights and places with the chart's own axes, as a reader does.
    rain_axis, heat_axis = axes(svg)
    for name, bar, (mean, *_) in zip(names, rain, months, strict=True):
        assert words(bar).startswith(f"{name}: ")
        check_length(float(bar.get("height", "")), mean, rain_axis)
    for number, dot in enumerate(dots):
        month, year = divmod(number, len(years))
        total = weather.rain_of(month + 1, years[year])
        assert words(dot).startswith(f"{names[month]} {years[year]}: ")
        assert_agree(numbers(words(dot))[1:], [total])
        check_length(rain_axis[0] - float(dot.get("cy", "")), total, rain_axis)
    for name, bar, (*_, high, low) in zip(names, heat, months, strict=True):
        assert words(bar).startswith(f"{name}: ")
        assert_agree(numbers(words(bar)), [low, high])
        check_length(heat_axis[0] - float(bar.get("y", "")), high, heat_axis)
        check_length(float(bar.get("height", "")), high - low, heat_axis)


def check_that_it_can_be_read(svg: ElementTree.Element) -> None:
    """Check that the chart can be read without seeing it and that its title is the finding."""
    title, description = svg.find(f"{SVG}title"), svg.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    weather = Weather()
    half, share = weather.wettest_half()
    names = list(calendar.month_name)
    assert f"{names[half[0]]} to {names[half[-1]]}" in (title.text or "")
    assert_agree(numbers(title.text or ""), [share])
    means = [month[0] for month in weather.months()]
    assert_agree(numbers(description.text or ""), [min(means), max(means)])


def axes(svg: ElementTree.Element) -> list[tuple[float, float]]:
    """Return for rain and heat the place of 0, and the units of the drawing for one mm or °."""
    ticks = [
        (float((text.text or "").rstrip("°")), float(text.get("y", "")), (text.text or "")[-1:])
        for text in svg.findall(f".//{SVG}text[@class='quiet end']")
        if numbers(text.text or "")
    ]
    found = []
    for is_heat in (False, True):
        places = {value: y - 5 for value, y, sign in ticks if (sign == "°") is is_heat}
        top = max(places)
        found.append((places[0.0], (places[0.0] - places[top]) / top))
    return found


def check_length(drawn: float, value: float, axis: tuple[float, float]) -> None:
    assert abs(drawn - value * axis[1]) < 0.2, (drawn, value, axis)


def words(shape: ElementTree.Element) -> str:
    title = shape.find(f"{SVG}title")
    assert title is not None
    return title.text or ""
