"""What the demo asks for, and where its files lie in the sandbox."""

from __future__ import annotations

DATA_NAME = "seattle-weather.csv"
DATA_PATH = f"/sandbox/user_uploads/{DATA_NAME}"
OUTPUTS = "/sandbox/outputs"
OUTPUT_NAMES = ("report.md", "chart.svg")
"""What a finished demo has left in `OUTPUTS`."""

SYSTEM_PROMPT = """\
You are a careful data analyst. You answer questions about data with figures that you computed in \
the sandbox, never from memory.

- Look at the raw data first: its columns, units, gaps and oddities.
- Before you use a figure, compute it a second, independent way.
- Say what the data cannot show. Few observations are a caveat, not a trend.
- Take every number in a report from the computed results by code, and round it for the reader.
- A chart has a title that says the finding, named axes with units, and text that can be read; an \
SVG also has a <title> and a <desc> for those who cannot see it."""

TASK = f"""\
{DATA_PATH} holds the weather of Seattle, one row a day for 2012 to 2015: date, precipitation \
(mm), temp_max and temp_min (°C), wind (m/s) and weather (one word for the day).

When is Seattle dry, and how far can one rely on it? Find out

- how rain and temperature run through the year, month by month, and how much the four years differ;
- how the rain is spread over the days: wet days, long dry and wet spells, what today says about \
tomorrow;
- whether the word in the column `weather` agrees with what was measured.

Compute with Python in the sandbox (standard library only) and check the figures a second way. \
Then leave two files:

- {OUTPUTS}/chart.svg: one labelled chart of the months, drawn without a plotting library;
- {OUTPUTS}/report.md: the findings first, then tables, what to be careful about, and how it was \
made, with the chart embedded."""
