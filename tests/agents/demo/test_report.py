"""Every number of the demo's report, compared with the same from SQL."""

from __future__ import annotations

import calendar

import pytest

from tests.agents.demo.numbers_in_text import assert_agree, numbers
from tests.agents.demo.played import outputs_of_demo
from tests.agents.demo.weather import Weather

pytestmark = [pytest.mark.bubblewrap, pytest.mark.django_db(transaction=True)]

NAMES = list(calendar.month_name)


class Reader:
    """Reads the report and keeps in `left` the numbers that were not compared."""

    def __init__(self, report: str) -> None:
        self.report = self.left = report

    def compare(self, text: str, *expected: float) -> None:
        assert_agree(numbers(text), list(expected))
        self.cross_out(text)

    def cross_out(self, text: str) -> None:
        assert text in self.left, f"{text!r} is not in the report, or was read before"
        self.left = self.left.replace(text, "", 1)

    def finding(self, beginning: str) -> str:
        lines = self.report.splitlines()
        (line,) = [line for line in lines if line.startswith(f"- **{beginning}")]
        return line

    def table(self, heading: str) -> list[str]:
        """Return the body lines of the table whose first column is called `heading`."""
        lines = self.report.splitlines()
        start = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading} |"))
        rest = lines[start + 2 :]
        end = next(place for place, line in enumerate(rest) if not line.startswith("|"))
        return rest[:end]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(outputs_of_demo(monkeypatch)["report.md"].decode())


@pytest.mark.slow
def test_every_number_of_the_report_is_right(reader: Reader) -> None:
    assert "Figures by Python (standard library)" in reader.report
    compare_every_number(reader)


def compare_every_number(reader: Reader) -> None:
    """Fail for a wrong number, and for a number that was not compared."""
    weather = Weather()
    read_tables(reader, weather)
    read_rain(reader, weather)
    read_days(reader, weather)
    read_years(reader, weather)
    read_what_it_is_about(reader, weather)
    assert numbers(reader.left) == [], "these numbers were compared with nothing"


def read_tables(reader: Reader, weather: Weather) -> None:
    rows = zip(NAMES[1:], reader.table("Month"), weather.months(), strict=True)
    for name, line, (mean, least, most, wet, high, low) in rows:
        assert line.startswith(f"| {name} |")
        reader.compare(line, mean, least, most, wet, high, low)
    for line, year in zip(reader.table("Year"), weather.years(), strict=True):
        reader.compare(line, *year)
    for line, (label, *counts) in zip(reader.table("Label"), weather.labels(), strict=True):
        assert line.startswith(f"| {label} |")
        reader.compare(line, *counts)
    reader.cross_out("Days of 30 °C or more")


def read_rain(reader: Reader, weather: Weather) -> None:
    months = weather.months()
    rarely_wet = [place for place in range(12) if months[place][3] < 20]
    line = reader.finding("Most reliably dry")
    assert f"{' and '.join(NAMES[place + 1] for place in rarely_wet)}.**" in line
    reader.compare(line, 20, *(months[place][3] for place in rarely_wet))

    half, share = weather.wettest_half()
    line = reader.finding("Two halves")
    assert f"from {NAMES[half[0]]} to {NAMES[half[-1]]}." in line
    reader.compare(line, share)

    means = [month[0] for month in months]
    driest, wettest = means.index(min(means)), means.index(max(means))
    line = reader.finding(NAMES[driest + 1])
    assert f"{NAMES[wettest + 1]} is the wettest" in line
    reader.compare(line, means[driest], months[driest][2], means[wettest])


def read_days(reader: Reader, weather: Weather) -> None:
    days, wet_days = weather.row("SELECT count(*), sum(wet) FROM days")
    heavy = weather.days_for_half_of_the_rain()
    line = reader.finding("A few days")
    reader.compare(line, heavy, days, 100 * heavy / days, wet_days, 100 * wet_days / days)

    line = reader.finding("Weather keeps going")
    for spell in ("dry", "wet"):
        length, first, last = weather.longest_spell(wet=spell == "wet")
        words = f"{length} days ({first} to {last})"
        assert words in line.partition(f"longest {spell} ")[2]
        reader.cross_out(words)
        line = line.replace(words, "")
    reader.compare(line, weather.wet_after(wet=True), weather.wet_after(wet=False))


def read_years(reader: Reader, weather: Weather) -> None:
    by_mean = sorted(weather.years(), key=lambda year: year[3])
    coolest, warmest = by_mean[0], by_mean[-1]
    line = reader.finding("The years differ")
    reader.compare(line, coolest[0], coolest[3], warmest[0], warmest[3])


def read_what_it_is_about(reader: Reader, weather: Weather) -> None:
    years = [year[0] for year in weather.years()]
    reader.compare(f"# When is Seattle dry? {years[0]} to {years[-1]}", years[0], years[-1])
    reader.compare(f"- {len(years)} years are too few", len(years))
    days, first, last, missing = weather.row(
        "SELECT count(*), min(date), max(date),"
        " julianday(max(date)) - julianday(min(date)) + 1 - count(DISTINCT date) FROM days"
    )
    reader.cross_out(f"{days:,} days from {first} to\n  {last}, {missing:.0f} dates missing")
