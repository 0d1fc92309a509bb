"""Computes summary.json, with all that the report says, from the daily records. With pandas."""

import calendar
import json

import pandas as pd

DATA = "/sandbox/user_uploads/seattle-weather.csv"
HOT = 30.0


def read_days():
    days = pd.read_csv(DATA, parse_dates=["date"]).sort_values("date", ignore_index=True)
    days["year"], days["month"] = days["date"].dt.year, days["date"].dt.month
    days["wet"] = days["precipitation"] > 0
    days["middle"] = (days["temp_max"] + days["temp_min"]) / 2
    days["hot"] = days["temp_max"] >= HOT
    return days


def by_month(days):
    totals = days.pivot_table(index="month", columns="year", values="precipitation", aggfunc="sum")
    means = days.groupby("month")[["wet", "temp_max", "temp_min"]].mean()
    for month in totals.index:
        yield {
            "name": calendar.month_name[month],
            "rain_mm_by_year": totals.loc[month].tolist(),
            "rain_mm": float(totals.loc[month].mean()),
            "wet_days_pct": 100 * float(means.loc[month, "wet"]),
            "high": float(means.loc[month, "temp_max"]),
            "low": float(means.loc[month, "temp_min"]),
        }


def by_year(days):
    for year, own in days.groupby("year"):
        yield {
            "year": int(year),
            "rain_mm": float(own["precipitation"].sum()),
            "wet_days": int(own["wet"].sum()),
            "mean_temp": float(own["middle"].mean()),
            "hot_days": int(own["hot"].sum()),
        }


def wet_half(months):
    """Return the six consecutive months with the most rain."""
    rain = pd.Series([month["rain_mm"] for month in months])
    # Twice the year, so that a window can include New Year. Only the twelve windows that start in
    # it.
    windows = pd.concat([rain, rain], ignore_index=True).rolling(6).sum().iloc[5:17]
    start = int(windows.to_numpy().argmax())
    names = [months[(start + step) % 12]["name"] for step in range(6)]
    return {"months": names, "share_pct": 100 * float(windows.max() / rain.sum())}


def longest_spell(days, wet):
    spells = days.groupby((days["wet"] != days["wet"].shift()).cumsum()).agg(
        wet=("wet", "first"), days=("wet", "size"), first=("date", "min"), last=("date", "max")
    )
    own = spells[spells["wet"] == wet]
    longest = own.loc[own["days"].idxmax()]
    return {
        "days": int(longest["days"]),
        "from": str(longest["first"].date()),
        "to": str(longest["last"].date()),
    }


def days_for_half_of_the_rain(days):
    rain = days["precipitation"].sort_values(ascending=False)
    return int((rain.cumsum() < rain.sum() / 2).sum()) + 1


def tomorrow(days):
    """Return how often the next day is wet, in percent, after a wet and after a dry day."""
    after = days["wet"].iloc[1:].groupby(days["wet"].shift().iloc[1:].astype(bool)).mean()
    return {"after_wet_pct": 100 * float(after[True]), "after_dry_pct": 100 * float(after[False])}


def labels(days):
    for label, wet in days.groupby("weather")["wet"]:
        yield {"label": label, "days": int(wet.size), "wet_days": int(wet.sum())}


def summarise(days):
    months = list(by_month(days))
    span = (days["date"].iloc[-1] - days["date"].iloc[0]).days + 1
    return {
        "made_with": "pandas",
        "days": len(days),
        "first": str(days["date"].iloc[0].date()),
        "last": str(days["date"].iloc[-1].date()),
        "missing_dates": span - int(days["date"].nunique()),
        "years": sorted(int(year) for year in days["year"].unique()),
        "wet_days": int(days["wet"].sum()),
        "months": months,
        "by_year": list(by_year(days)),
        "wet_half": wet_half(months),
        "half_of_rain_days": days_for_half_of_the_rain(days),
        "tomorrow": tomorrow(days),
        "longest_dry": longest_spell(days, False),
        "longest_wet": longest_spell(days, True),
        "labels": list(labels(days)),
    }


def main():
    with open("summary.json", "w", encoding="utf-8") as file:
        json.dump(summarise(read_days()), file, indent=1)


if __name__ == "__main__":
    main()
