"""Draws rain.png from summary.json: the rain of each month in each year. With matplotlib."""

import json

import matplotlib.pyplot as plt

OUTPUT = "/sandbox/outputs/rain.png"


def draw(summary):
    rain = [month["rain_mm_by_year"] for month in summary["months"]]
    years, names = summary["years"], [month["name"] for month in summary["months"]]
    highest = max(max(row) for row in rain)
    places = ((row, column) for row in range(len(names)) for column in range(len(years)))
    row, column = max(places, key=lambda place: rain[place[0]][place[1]])
    figure, axes = plt.subplots(figsize=(6.4, 7.2), layout="constrained")
    image = axes.imshow(rain, cmap="Blues", vmin=0, aspect="auto")
    for line, values in enumerate(rain):
        for place, value in enumerate(values):
            ink = "white" if value > 0.6 * highest else "#1f2933"
            axes.text(place, line, f"{value:.0f}", ha="center", va="center", color=ink)
    axes.set_xticks(range(len(years)), [str(year) for year in years])
    axes.set_yticks(range(len(names)), names)
    axes.set_title(f"{names[row]} {years[column]} was the wettest month: {highest:.0f} mm")
    figure.colorbar(image, label="Rain in the month, mm", shrink=0.6)
    figure.savefig(OUTPUT, dpi=120)


def main():
    with open("summary.json", encoding="utf-8") as file:
        draw(json.load(file))
    print(f"wrote {OUTPUT}")


if __name__ == "__main__":
    main()
