"""Takes from summary.json the figures that check.sh computes again, into figures.csv."""

import csv
import json


def figures(summary):
    """Yield (key, value) of each figure."""
    for number, month in enumerate(summary["months"], start=1):
        for field in ("rain_mm", "wet_days_pct", "high", "low"):
            yield f"month {number:02d} {field}", month[field]
    for year in summary["by_year"]:
        for field in ("rain_mm", "wet_days", "mean_temp", "hot_days"):
            yield f"year {year['year']} {field}", year[field]
    for label in summary["labels"]:
        yield f"label {label['label']} days", label["days"]
        yield f"label {label['label']} wet_days", label["wet_days"]


def main():
    with open("summary.json", encoding="utf-8") as file:
        summary = json.load(file)
    with open("/sandbox/shared/figures.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(figures(summary))
    months = sorted(summary["months"], key=lambda month: month["rain_mm"])
    headline = {
        "days": summary["days"],
        "missing_dates": summary["missing_dates"],
        "driest_month": months[0]["name"],
        "driest_rain_mm": round(months[0]["rain_mm"], 1),
        "wettest_month": months[-1]["name"],
        "wettest_rain_mm": round(months[-1]["rain_mm"], 1),
        "wet_half": summary["wet_half"]["months"],
        "wet_half_share_pct": round(summary["wet_half"]["share_pct"], 1),
        "half_of_rain_days": summary["half_of_rain_days"],
    }
    print(json.dumps(headline))


if __name__ == "__main__":
    main()
