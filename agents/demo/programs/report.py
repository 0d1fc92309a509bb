"""Writes report.md. Every number in it is taken from summary.json."""

import json
import os

OUTPUT = "/sandbox/shared/drafts/report.md"
PICTURES = "/sandbox/outputs"
HEAT_MAP = "rain.png"
RARELY_WET_PCT = 20


def signed(value, digits=1):
    return f"{value:.{digits}f}".replace("-", "\u2212")


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---" if place == 0 else "--:" for place in range(len(head))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def findings(summary):
    months = sorted(summary["months"], key=lambda month: month["rain_mm"])
    driest, wettest = months[0], months[-1]
    half, tomorrow = summary["wet_half"], summary["tomorrow"]
    heavy, days = summary["half_of_rain_days"], summary["days"]
    dry, wet = summary["longest_dry"], summary["longest_wet"]
    years = sorted(summary["by_year"], key=lambda year: year["mean_temp"])
    reliable = [month for month in summary["months"] if month["wet_days_pct"] < RARELY_WET_PCT]
    shares = ", ".join(f"{month['name']} {month['wet_days_pct']:.1f} %" for month in reliable)
    yield (
        f"- **Most reliably dry: {' and '.join(month['name'] for month in reliable)}.** "
        f"In no other month are fewer than {RARELY_WET_PCT} % of the days wet ({shares})."
    )
    yield (
        f"- **Two halves of a year.** {half['share_pct']:.1f} % of the rain falls in the six "
        f"months from {half['months'][0]} to {half['months'][-1]}."
    )
    yield (
        f"- **{driest['name']} is the driest month** with {driest['rain_mm']:.1f} mm on average; "
        f"even the wettest {driest['name']} of the four had only "
        f"{max(driest['rain_mm_by_year']):.1f} mm. {wettest['name']} is the wettest with "
        f"{wettest['rain_mm']:.1f} mm."
    )
    yield (
        f"- **A few days bring most of it.** Half of all rain fell on {heavy} of {days:,} days, "
        f"{100 * heavy / days:.1f} %. It rained on {summary['wet_days']} days in all, "
        f"{100 * summary['wet_days'] / days:.1f} %."
    )
    yield (
        f"- **Weather keeps going.** After a wet day the next one is wet "
        f"{tomorrow['after_wet_pct']:.1f} % of the time, after a dry day "
        f"{tomorrow['after_dry_pct']:.1f} %. The longest dry spell was {dry['days']} days "
        f"({dry['from']} to {dry['to']}), the longest wet one {wet['days']} days "
        f"({wet['from']} to {wet['to']})."
    )
    yield (
        f"- **The years differ.** The coolest was {years[0]['year']} with a mean of "
        f"{signed(years[0]['mean_temp'])} °C, the warmest {years[-1]['year']} with "
        f"{signed(years[-1]['mean_temp'])} °C."
    )


def month_table(summary):
    head = [
        "Month", "Rain, mm", "Driest to wettest year, mm", "Wet days, %",
        "Mean high, °C", "Mean low, °C",
    ]  # fmt: skip
    return table(
        head,
        (
            [
                month["name"],
                f"{month['rain_mm']:.1f}",
                f"{min(month['rain_mm_by_year']):.1f} to {max(month['rain_mm_by_year']):.1f}",
                f"{month['wet_days_pct']:.1f}",
                signed(month["high"]),
                signed(month["low"]),
            ]
            for month in summary["months"]
        ),
    )


def year_table(summary):
    return table(
        ["Year", "Rain, mm", "Wet days", "Mean temperature, °C", "Days of 30 °C or more"],
        (
            [
                str(year["year"]),
                f"{year['rain_mm']:.1f}",
                str(year["wet_days"]),
                signed(year["mean_temp"]),
                str(year["hot_days"]),
            ]
            for year in summary["by_year"]
        ),
    )


def label_table(summary):
    return table(
        ["Label", "Days", "with rain measured", "without"],
        (
            [
                label["label"],
                str(label["days"]),
                str(label["wet_days"]),
                str(label["days"] - label["wet_days"]),
            ]
            for label in summary["labels"]
        ),
    )


def second_picture():
    if os.path.exists(os.path.join(PICTURES, HEAT_MAP)):
        yield from (f"![Rain of each month in each year]({HEAT_MAP})", "")


def report(summary):
    return [
        f"# When is Seattle dry? {summary['years'][0]} to {summary['years'][-1]}",
        "",
        "> Written by the **offline scripted model**: a fixed script, no language model. The tools",
        "> were real: every number was computed in the sandbox from the daily records.",
        "",
        "## Findings",
        "",
        *findings(summary),
        "",
        "![Rain and temperature by month](chart.svg)",
        "",
        *second_picture(),
        "## Month by month",
        "",
        "Rain is the mean of the monthly totals. A day is wet when any rain was measured.",
        "",
        *month_table(summary),
        "",
        "## Year by year",
        "",
        *year_table(summary),
        "",
        "## What to be careful about",
        "",
        f"- {len(summary['years'])} years are too few for a trend: nothing here is about climate.",
        "- The word in the column `weather` and the measured rain often disagree. Every figure",
        "  above is from the measurement, none from the word.",
        "",
        *label_table(summary),
        "",
        "## How this was made",
        "",
        f"- `seattle-weather.csv`, {summary['days']:,} days from {summary['first']} to",
        f"  {summary['last']}, {summary['missing_dates']} dates missing (NOAA, public domain).",
        f"- Figures by {summary['made_with']}; those of the months, years and labels were",
        "  computed a second time with awk and agreed before they were used.",
        "",
    ]


def main():
    with open("summary.json", encoding="utf-8") as file:
        lines = report(json.load(file))
    with open(OUTPUT, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"wrote {OUTPUT}: {len(lines)} lines")


if __name__ == "__main__":
    main()
