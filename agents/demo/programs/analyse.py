"""Computes summary.json, with all that the report says, from the daily records.

Runs in the sandbox with any Python 3 and the standard library alone.
"""

import csv
import json
from datetime import date, timedelta
from math import fsum

DATA = "/sandbox/user_uploads/seattle-weather.csv"
MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
HOT = 30.0


def read_days():
    with open(DATA, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {
            "date": date(*map(int, row["date"].split("/"))),
            "rain": float(row["precipitation"]),
            "wet": float(row["precipitation"]) > 0,
            "high": float(row["temp_max"]),
            "low": float(row["temp_min"]),
            "label": row["weather"],
        }
        for row in rows
    ]


def mean(values):
    values = list(values)
    return fsum(values) / len(values)


def by_month(days, years):
    for number, name in enumerate(MONTHS, start=1):
        own = [day for day in days if day["date"].month == number]
        rain = [fsum(day["rain"] for day in own if day["date"].year == year) for year in years]
        yield {
            "name": name,
            "rain_mm_by_year": rain,
            "rain_mm": mean(rain),
            "wet_days_pct": 100 * mean(day["wet"] for day in own),
            "high": mean(day["high"] for day in own),
            "low": mean(day["low"] for day in own),
        }


def by_year(days, years):
    for year in years:
        own = [day for day in days if day["date"].year == year]
        yield {
            "year": year,
            "rain_mm": fsum(day["rain"] for day in own),
            "wet_days": sum(day["wet"] for day in own),
            "mean_temp": mean((day["high"] + day["low"]) / 2 for day in own),
            "hot_days": sum(day["high"] >= HOT for day in own),
        }


def wet_half(months):
    """Return the six consecutive months with the most rain."""

    def window(start):
        return [(start + step) % 12 for step in range(6)]

    def rain(start):
        return fsum(months[place]["rain_mm"] for place in window(start))

    start = max(range(12), key=rain)
    total = fsum(month["rain_mm"] for month in months)
    names = [MONTHS[place] for place in window(start)]
    return {"months": names, "share_pct": 100 * rain(start) / total}


def longest_spell(days, wet):
    best = run = 0
    last = days[0]["date"]
    for day in days:
        run = run + 1 if day["wet"] is wet else 0
        if run > best:
            best, last = run, day["date"]
    return {"days": best, "from": str(last - timedelta(days=best - 1)), "to": str(last)}


def days_for_half_of_the_rain(days):
    heaviest = sorted((day["rain"] for day in days), reverse=True)
    half, sum_so_far, count = fsum(heaviest) / 2, 0.0, 0
    while sum_so_far < half:
        sum_so_far += heaviest[count]
        count += 1
    return count


def tomorrow(days):
    """Return how often the next day is wet, in percent, after a wet and after a dry day."""
    after: dict[bool, list[bool]] = {True: [], False: []}
    for place in range(1, len(days)):
        after[days[place - 1]["wet"]].append(days[place]["wet"])
    return {"after_wet_pct": 100 * mean(after[True]), "after_dry_pct": 100 * mean(after[False])}


def labels(days):
    for label in sorted({day["label"] for day in days}):
        own = [day for day in days if day["label"] == label]
        yield {"label": label, "days": len(own), "wet_days": sum(day["wet"] for day in own)}


def summarise(days):
    years = sorted({day["date"].year for day in days})
    months = list(by_month(days, years))
    span = (days[-1]["date"] - days[0]["date"]).days + 1
    return {
        "made_with": "Python (standard library)",
        "days": len(days),
        "first": str(days[0]["date"]),
        "last": str(days[-1]["date"]),
        "missing_dates": span - len({day["date"] for day in days}),
        "years": years,
        "wet_days": sum(day["wet"] for day in days),
        "months": months,
        "by_year": list(by_year(days, years)),
        "wet_half": wet_half(months),
        "half_of_rain_days": days_for_half_of_the_rain(days),
        "tomorrow": tomorrow(days),
        "longest_dry": longest_spell(days, False),
        "longest_wet": longest_spell(days, True),
        "labels": list(labels(days)),
    }


def main():
    days = sorted(read_days(), key=lambda day: day["date"])
    with open("summary.json", "w", encoding="utf-8") as file:
        json.dump(summarise(days), file, indent=1)


if __name__ == "__main__":
    main()
